// Package keyderive imports a leaf, and another module.
package keyderive

import (
	"fmt"

	"github.com/google/uuid"
	"golang.org/x/text/cases" // want imports

	"github.com/seed-6b5e302b/samekey/recordstore" // want imports
)
