package failures

import (
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
)

// lockEnv, where it is set, makes the test binary another process, which writes to
// the ledger that the variable names and does not come to an end.
const lockEnv = "SAMEKEY_FAILURES_LOCK"

func TestMain(m *testing.M) {
	path := os.Getenv(lockEnv)
	if path == "" {
		os.Exit(m.Run())
	}
	if err := lock(path); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// lock holds the write lock of a ledger until its input is closed.
func lock(path string) error {
	db, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(5000)")
	if err != nil {
		return err
	}
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	fmt.Println("locked")
	_, err = io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, tx.Rollback(), db.Close())
}
