package main

import (
	"strings"
	"testing"

	"github.com/seed-6b5e302b/samekey/internal/pgtest"
)

// With --partitions the printed and the applied schema have months, and what is one
// table already is not touched.
func TestMigrateWithPartitions(t *testing.T) {
	if sql := succeeds(t, "migrate", "--sql", "--partitions"); strings.Count(sql, "PARTITION OF") < 28 {
		t.Errorf("the printed schema has %d partitions, want day 0 and 13 months of two tables at least", strings.Count(sql, "PARTITION OF"))
	}
	dsn := pgtest.DSN(t)
	succeeds(t, "migrate", "--partitions", "--dsn-file", dsnFile(t, dsn))
	succeeds(t, "migrate", "--dsn-file", dsnFile(t, dsn)) // makes the months to come, too
	var months int
	if err := pgtest.Open(t, dsn).QueryRow(t.Context(), "SELECT count(*) FROM pg_inherits WHERE inhparent = 'samekey.record'::regclass").Scan(&months); err != nil || months < 14 {
		t.Errorf("the ledger has %d partitions, %v; want 14 at least", months, err)
	}
	succeeds(t, "migrate", "--schema", "plain", "--dsn-file", dsnFile(t, dsn))
	fails(t, exitFailed, "no partitions", "migrate", "--partitions", "--schema", "plain", "--dsn-file", dsnFile(t, dsn))
}
