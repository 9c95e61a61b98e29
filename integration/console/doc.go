// Package console tests the console in a real browser. It has no other content.
package console
