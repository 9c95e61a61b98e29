// Package memory knows its user, and another store.
package memory

import (
	"github.com/seed-6b5e302b/samekey/outbound" // want imports
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/postgres" // want imports

	"github.com/jackc/pgx/v5" // want imports confined_packages
)
