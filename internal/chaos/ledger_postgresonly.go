//go:build postgresonly

package chaos

import (
	"context"
	"errors"
)

// openSQLite is for builds that need no SQLite, as the worker with a shifted
// clock, which is compiled with the standard library it runs on.
func openSQLite(context.Context, string, bool) (*ledger, error) {
	return nil, errors.New("this build knows no SQLite")
}
