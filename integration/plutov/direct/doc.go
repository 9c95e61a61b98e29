// Package direct holds no code, only tests: plutov/paypal, unmodified and without
// samekey, works against samekey's fake of PayPal. Its methods reach every
// operation that it has a method for, and its own errors come of what goes wrong.
package direct
