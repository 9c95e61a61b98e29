// Package stripe knows its judge and a store.
package stripe

import (
	"github.com/seed-6b5e302b/samekey/internal/fakeprovider" // want imports
	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	"github.com/seed-6b5e302b/samekey/providers/paypal"   // want imports
	"github.com/seed-6b5e302b/samekey/recordstore/memory" // want imports
)
