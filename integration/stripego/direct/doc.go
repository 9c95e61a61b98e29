// Package direct holds no code, only tests: stripe-go, unmodified and without
// samekey, works against samekey's fake of Stripe. Its methods reach every
// operation, its own errors come of what goes wrong, and every answer that it
// gets has the form of Stripe's specification.
package direct
