// Package node holds no Go code, only tests: the official Node SDKs of Stripe and
// PayPal, unmodified, against samekey's standalone fakes on loopback sockets.
// What they must show is in the folder test.
package node
