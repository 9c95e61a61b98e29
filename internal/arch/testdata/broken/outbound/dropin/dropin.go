// Package dropin retries by itself.
package dropin

import (
	"github.com/hashicorp/go-retryablehttp" // want imports confined_packages

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
)

const Commented = 1 // its comment stands behind it

// Documented as a group.
const (
	A = 1
	B = 2
)

var Bare, // want doc_comments
	bare = 1, 2

const C = 1 + // want doc_comments
	1

type T struct{ Field int } // a comment

func F()             {} // want doc_comments
func (T) M()         {} // want doc_comments
func (t *T) m()      {}
func (bareType) M2() {}

type bareType int

type Bad struct { // want doc_comments
}

type (
	// Grouped has one.
	Grouped int

	Lonely struct { // want doc_comments
	}
)

// I has methods.
type I interface {
	One( // want doc_comments
	)
	Two() // has one
}

// Small explains its only method.
type Small interface{ Only() }
