// Package plutov holds no code, only tests: an unmodified plutov/paypal over
// package dropin, against samekey's fake of PayPal on loopback sockets.
package plutov
