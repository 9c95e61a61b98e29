// Package stripemock holds no code, only tests: Stripe's own stripe-mock, which
// checks requests against Stripe's specification, accepts what package stripe
// sends.
package stripemock
