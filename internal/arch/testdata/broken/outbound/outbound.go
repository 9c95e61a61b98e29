// Package outbound knows HTTP, a store, and the SDK of OpenTelemetry.
package outbound

import (
	"net/http" // want imports
	"net/url"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/trace" // want imports confined_packages
	"go.opentelemetry.io/otel/trace"

	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter" // want imports
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/memory" // want imports
)
