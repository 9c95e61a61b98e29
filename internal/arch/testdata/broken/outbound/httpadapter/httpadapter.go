// Package httpadapter knows a provider.
package httpadapter

import (
	"net/http"

	"github.com/gowebpki/jcs"
	"github.com/hashicorp/go-retryablehttp"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/stripe" // want imports
	"github.com/seed-6b5e302b/samekey/replaysemantics"
)
