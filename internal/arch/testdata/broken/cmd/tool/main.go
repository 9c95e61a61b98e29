package main

import (
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/plutov/paypal/v4" // want confined_packages
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/seed-6b5e302b/samekey/providers/stripe"
)
