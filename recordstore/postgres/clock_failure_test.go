package postgres_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/postgres"
)

// moments notes every point in time that goes to the server as a parameter.
type moments struct {
	mu         sync.Mutex
	sent       []time.Time
	statements int
}

func (m *moments) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.statements++
	for _, arg := range d.Args {
		v := reflect.ValueOf(arg)
		if v.Kind() == reflect.Pointer && !v.IsNil() {
			v = v.Elem()
		}
		moment := reflect.TypeFor[time.Time]()
		if v.IsValid() && v.Type().ConvertibleTo(moment) {
			if at := v.Convert(moment).Interface().(time.Time); !at.IsZero() {
				m.sent = append(m.sent, at)
			}
		}
	}
	return ctx
}

func (m *moments) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// R18: a client's clock never reaches the ledger. Of all that a store sends, in
// every one of its steps, only a command's NotAfter is a point in time; all others
// are lengths of time, which the server adds to its own clock. So a client whose
// clock is wrong by any amount writes the same leases, windows and retention.
//
// This sees parameters that are times. That no text or number holds one is in the
// statements: each takes its time from clock_timestamp().
func TestNoTimeOfTheClientIsSent(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	_, pool := ledger(t)
	seen := &moments{}
	traced := configured(t, pool, func(c *pgxpool.Config) { c.ConnConfig.Tracer = seen })
	store := postgres.New(traced, nil)

	notAfter := time.Now().Add(time.Hour).Truncate(time.Microsecond)
	if err := everyStep(ctx, store, traced, notAfter); err != nil {
		t.Fatal(err)
	}
	found := false
	for _, at := range seen.sent {
		if !at.Equal(notAfter) {
			t.Errorf("the client sent the time %v", at)
		}
		found = found || at.Equal(notAfter)
	}
	if !found || seen.statements < 20 {
		t.Errorf("of %d statements none showed NotAfter: this test sees nothing", seen.statements)
	}

	// Proof that it would be seen.
	seen.sent = nil
	if _, err := postgres.New(traced, &postgres.Options{Now: time.Now}).Claim(ctx, claimOf(64)); err != nil || len(seen.sent) == 0 {
		t.Errorf("a client's own clock is not seen among the parameters: %v, %v", seen.sent, err)
	}
}

// everyStep takes each step that a store has.
func everyStep(ctx context.Context, store *postgres.Store, pool *pgxpool.Pool, notAfter time.Time) error {
	entry := recordstore.Entry{Kind: "check", Actor: "anna", Text: "seen at the provider"}
	var errs []error
	note := func(err error) { errs = append(errs, err) }
	claim := func() recordstore.Record {
		c := claimOf(64)
		c.NotAfter = notAfter
		got, err := store.Claim(ctx, c)
		note(err)
		return got.Record
	}
	settle := func(rec recordstore.Record, to recordstore.State) recordstore.Record {
		s := settlementOf(rec, 64)
		s.State, s.Entry = to, &entry
		if to == recordstore.Uncertain {
			s.DueIn = time.Microsecond // due at once
		}
		rec, err := store.Settle(ctx, s)
		note(err)
		return rec
	}
	note(store.Attach(ctx, recordstore.Pins{Derivation: "v1", Secret: "none"}))
	rec := claim()
	note(store.Renew(ctx, rec.ID, rec.Holder, rec.Fence, time.Minute))
	_, _, err := store.Get(ctx, rec.ID)
	note(err)
	settle(rec, recordstore.Succeeded)
	rec = settle(claim(), recordstore.Uncertain)
	_, err = store.Wake(ctx, rec.ID, "re_1")
	note(err)
	_, _, err = store.TakeDue(ctx, recordstore.DueQuery{Provider: "stripe", Mode: "live", Derivations: []string{"v1"},
		Fingerprints: []byte{1}, SealVersion: 1, Holder: "reconciler", Lease: time.Minute, Limit: 10})
	note(err)
	for _, full := range []bool{false, true} {
		_, err = store.FindCrashed(ctx, full, 10)
		note(err)
	}
	_, err = store.Backlog(ctx, "stripe")
	note(err)
	_, err = store.Report(ctx, claim().ID, recordstore.Result{State: recordstore.Succeeded, Entry: &entry})
	note(err)
	rec = settle(claim(), recordstore.ManualReview)
	_, err = store.Resolve(ctx, recordstore.Verdict{ID: rec.ID, Version: rec.Version, Result: recordstore.Result{State: recordstore.Succeeded, Entry: &entry}})
	note(err)
	rec = settle(claim(), recordstore.NotExecuted)
	_, err = store.Abandon(ctx, rec.ID, entry)
	note(err)
	_, err = store.Erase(ctx, rec.ID, entry)
	note(err)
	_, err = store.Trail(ctx, rec.ID)
	note(err)
	note(store.RaiseFrontier(ctx, "money", 100))
	_, err = store.Purge(ctx, 10)
	note(err)
	note(pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		c := claimOf(64)
		c.NotAfter = notAfter
		_, err := store.Tx(tx).Plan(ctx, c)
		return err
	}))
	return errors.Join(errs...)
}

// The statements take their time from the server's clock and from nothing else
// that the server calls one: now() and its like stand still in a transaction.
func TestStatementsAskForTheTimeOnce(t *testing.T) {
	t.Parallel()
	_, pool := ledger(t)
	counted := &counter{}
	store := postgres.New(traced(t, pool, counted), nil)
	if err := everyStep(t.Context(), store, traced(t, pool, counted), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	for _, sql := range counted.take() {
		text := strings.ToLower(sql)
		for _, other := range []string{"now()", "current_timestamp", "localtimestamp", "statement_timestamp", "transaction_timestamp", "current_date"} {
			if strings.Contains(text, other) {
				t.Errorf("a statement asks for %s:\n%s", other, sql)
			}
		}
		if strings.Count(text, "clock_timestamp()") > 1 {
			t.Errorf("a statement asks for the time more than once, and may get two answers:\n%s", sql)
		}
	}
}
