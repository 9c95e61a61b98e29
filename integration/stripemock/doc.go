// Package stripemock asks Stripe's own specification, as stripe-mock carries it.
// Specification judges the answers of samekey's fake. The tests of this package
// have stripe-mock itself judge what package stripe sends. It is for tests only.
package stripemock
