package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // the driver of the contender

	"github.com/seed-6b5e302b/samekey/recordstore/sqlite"
)

// sqliteLedgers measures the ledger in a file, whose claims and settlements of one
// moment share a transaction, against a pool of connections that write each in one
// of its own, to the same tables with the same durability.
func sqliteLedgers(ctx context.Context, b *bench) error {
	dir, err := b.folder("sqlite")
	if err != nil {
		return err
	}
	store, err := sqlite.Open(filepath.Join(dir, "ledger.db"), nil)
	if err != nil {
		return err
	}
	b.onClose(func() {
		if err := store.Close(); err != nil {
			b.say("closing the ledger: %v", err)
		}
	})
	single, err := b.singleWrites(ctx, filepath.Join(dir, "single.db"))
	if err != nil {
		return err
	}
	callers := []int{1, 64}
	if !b.quick {
		callers = []int{1, 8, 64}
	}
	r, err := b.compare(ctx, "sqlite", callers,
		calling("samekey, SQLite", func(ctx context.Context) error { return ledgerCall(ctx, store) }),
		calling("SQLite, a transaction a write", single))
	if err != nil {
		return err
	}
	for _, n := range callers {
		b.result.ratio("sqlite_group_vs_single", n, "", r.ratio("samekey, SQLite", "SQLite, a transaction a write", n)...)
	}
	return nil
}

// singleWrites returns the plain way to write a claim and a settlement: an INSERT
// and an UPDATE on a pool of connections, each its own transaction.
func (b *bench) singleWrites(ctx context.Context, path string) (func(context.Context) error, error) {
	made, err := sqlite.Open(path, nil) // for its tables
	if err != nil {
		return nil, err
	}
	if err := made.Close(); err != nil {
		return nil, err
	}
	q := url.Values{"_txlock": {"immediate"}, "_pragma": {"busy_timeout(30000)", "synchronous(FULL)"}}
	db, err := sql.Open("sqlite", "file:"+path+"?"+q.Encode())
	if err != nil {
		return nil, err
	}
	b.onClose(func() {
		if err := db.Close(); err != nil {
			b.say("closing the file: %v", err)
		}
	})
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	insert, err1 := db.PrepareContext(ctx, singleInsert)
	update, err2 := db.PrepareContext(ctx, singleUpdate)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		c := newClaim()
		now := time.Now()
		args := []any{
			c.ID.Day, c.ID.KeyHash[:], c.Scope[:], c.Provider, c.Account, c.Operation, c.CommandID, c.Class, c.Derivation,
			c.Fingerprints[0], c.Holder, now.UnixMicro(), now.Add(c.Lease).UnixMicro(), now.Add(c.Window).UnixMicro(),
			now.Add(c.Replay).UnixMicro(), now.Add(c.Evidence).UnixMicro(), c.Request,
		}
		if err := one(insert.ExecContext(ctx, args...)); err != nil {
			return err
		}
		s := settlementOf(recordOf(c))
		return one(update.ExecContext(ctx, s.Evidence, s.Outcome, s.ResponseStatus, s.ResponseHeader, s.ResponseBody,
			s.ExternalRef, s.ObjectStatus, s.RequestID, time.Now().UnixMicro(), s.ID.Day, s.ID.KeyHash[:], s.Holder))
	}, nil
}

const singleInsert = `INSERT INTO samekey_records (day, key_hash, scope_hash, provider, account, operation, command_id, class, derivation,
	request_hash, state, doubt, taken_from, noted, look_only, blurred, evidence, outcome, holder, fence, claimed_at, lease_expires_at,
	deliveries, window_ends_at, sent_until, seal_version, response_status, external_ref, object_status, provider_request_id, error_code,
	checks, replay_until, evidence_until, created_at, version, from_plan, request)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 'sending', 0, '', '', 0, 0, '', '', ?11, 1, ?12, ?13,
	0, ?14, ?13, 1, 0, '', '', '', '', 0, ?15, ?16, ?12, 1, 0, ?17)
ON CONFLICT (day, key_hash) DO NOTHING`

const singleUpdate = `UPDATE samekey_records SET state = 'succeeded', evidence = ?1, outcome = ?2, response_status = ?3,
	response_headers = ?4, response_body = ?5, external_ref = ?6, object_status = ?7, provider_request_id = ?8, answered_at = ?9,
	deliveries = deliveries + 1, request = NULL, version = version + 1
WHERE day = ?10 AND key_hash = ?11 AND state = 'sending' AND holder = ?12 AND fence = 1`

// one wants a statement to have changed one row.
func one(r sql.Result, err error) error {
	if err != nil {
		return err
	}
	if n, err := r.RowsAffected(); err != nil || n != 1 {
		return fmt.Errorf("a statement changed %d rows, not 1: %w", n, err)
	}
	return nil
}
