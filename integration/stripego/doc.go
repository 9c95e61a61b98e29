// Package stripego holds no code, only tests: an unmodified stripe-go over
// package dropin, against samekey's fake of Stripe on loopback sockets.
package stripego
