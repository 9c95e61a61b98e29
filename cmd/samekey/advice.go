package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

// advised adds to an error what to do where the libraries only say what went wrong.
func advised(err error) error {
	_, unreached := errors.AsType[*pgconn.ConnectError](err)
	denied, isServers := errors.AsType[*pgconn.PgError](err)
	switch {
	case errors.Is(err, recordstore.ErrSchema) && strings.Contains(err.Error(), "samekey migrate"):
		return fmt.Errorf("%w, but first: is it the right database and --schema? Migrating a wrong one makes a new, empty ledger", err)
	case unreached:
		return fmt.Errorf("%w: is the DSN right (%s, or the file of --dsn-file), and does the server take connections from here?", err, envDSN)
	case isServers && denied.Code == "42501": // insufficient_privilege
		return fmt.Errorf("%w: this user may not: give the DSN of one that may", err)
	}
	return err
}

// notOpened says what to do where no ledger is at the path of --sqlite.
func notOpened(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: give the path that the services open; this command makes no ledger", err)
	}
	return fmt.Errorf("%w: is it the file that the services open, and a ledger?", err)
}

// otherKey returns the ID of a key that sealed a body of rec and is not among keys.
func otherKey(rec recordstore.Record, keys []outbound.SealKey) (id string, found bool) {
	for _, sealed := range [][]byte{rec.Request, rec.ResponseHeader, rec.ResponseBody} {
		id, known := outbound.SealKeyID(sealed)
		if known && !slices.ContainsFunc(keys, func(k outbound.SealKey) bool { return k.ID == id }) {
			return id, true
		}
	}
	return "", false
}

// sealHint says which key is missing where the keys that are given do not open the
// bodies of a record; "" where they do, where there are none, or no key is given.
func sealHint(ctx context.Context, s store, rec recordstore.Listed) (string, error) {
	keys, err := sealKeysFromEnv()
	if err != nil || len(keys) == 0 || rec.Sealed == 0 {
		return "", nil //nolint:nilerr // keys that cannot be read matter to those who ask for bodies
	}
	whole, _, err := s.Get(ctx, rec.ID)
	if errors.Is(err, recordstore.ErrNotFound) { // purged since it was found
		return "", nil
	}
	if id, missing := otherKey(whole, keys); err == nil && missing {
		return fmt.Sprintf("key %q sealed the bodies and is not in %s: list it there, and in the services, after the current one", id, envSealKeys), nil
	}
	return "", err
}
