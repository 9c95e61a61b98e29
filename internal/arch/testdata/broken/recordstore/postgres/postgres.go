// Package postgres does nothing wrong.
package postgres

import (
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-6b5e302b/samekey/recordstore"
)
