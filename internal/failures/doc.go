// Package failures holds tests of what happens to a ledger when its database
// fails: many at once, a proxy that loses answers, a server that stops, a primary
// that dies, a disk that is full, clocks that disagree. The databases are real.
package failures
