package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"time"

	"github.com/seed-6b5e302b/samekey/internal/console"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/postgres"
	"github.com/seed-6b5e302b/samekey/recordstore/sqlite"
)

// lists measures what people's questions take on ledgers of 100,000 records that
// were made in one go, one in twenty of them open: what stores are asked, and whole
// pages of the console.
func lists(ctx context.Context, b *bench) error {
	const records = 100_000
	dir, err := b.folder("list")
	if err != nil {
		return err
	}
	file, err := sqlite.Open(filepath.Join(dir, "ledger.db"), nil)
	if err != nil {
		return err
	}
	b.onClose(func() {
		if err := file.Close(); err != nil {
			b.say("closing the ledger: %v", err)
		}
	})
	pool, _, err := b.ledger(ctx, "list")
	if err != nil {
		return err
	}
	for _, l := range []struct {
		name  string
		store peopleLedger
	}{{"postgres", postgres.New(pool, nil)}, {"sqlite", file}} {
		b.say("filling a ledger on %s with %d records", l.name, records)
		if err := callMany(ctx, l.store, records); err != nil {
			return err
		}
		if err := b.listsOf(ctx, l.name, l.store); err != nil {
			return err
		}
	}
	return nil
}

// peopleLedger is a store with what people's questions need.
type peopleLedger interface {
	recordstore.Store
	recordstore.Queue
	console.Ledger
}

// callMany makes n calls, of which each twentieth ends uncertain, and has dead
// senders looked for, as a reconciler does.
func callMany(ctx context.Context, store peopleLedger, n int) error {
	const callers = 64
	var group sync.WaitGroup
	failed := make(chan error, callers)
	for caller := range callers {
		group.Go(func() {
			for i := caller; i < n; i += callers {
				if err := callOf(ctx, store, i%20 == 0); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	group.Wait()
	close(failed)
	if err := <-failed; err != nil {
		return err
	}
	_, err := store.FindCrashed(ctx, false, recordstore.MaxTake)
	return err
}

func callOf(ctx context.Context, store recordstore.Store, uncertain bool) error {
	if !uncertain {
		return ledgerCall(ctx, store)
	}
	got, err := store.Claim(ctx, newClaim())
	if err != nil {
		return err
	}
	s := settlementOf(got.Record)
	s.Result = recordstore.Result{State: recordstore.Uncertain, ErrorCode: "uncertain", Deliveries: 1, DueIn: time.Hour}
	_, err = store.Settle(ctx, s)
	return err
}

// listsOf measures one ledger's lists and pages.
func (b *bench) listsOf(ctx context.Context, name string, store peopleLedger) error {
	for _, q := range []struct {
		name, note string
		query      recordstore.ListQuery
	}{
		{"page", "the newest 100 records", recordstore.ListQuery{Order: recordstore.NewestFirst, Limit: 100}},
		{"open", "the oldest 100 records whose outcome is open", recordstore.ListQuery{Filter: recordstore.Filter{Open: true}, Limit: 100}},
		{"external_ref", "the record of one object of the provider", recordstore.ListQuery{Filter: recordstore.Filter{ExternalRef: "re_none"}, Limit: 100}},
	} {
		if err := b.timed("list_"+q.name+"_"+name, q.note, func() error {
			_, err := store.List(ctx, q.query)
			return err
		}); err != nil {
			return err
		}
	}
	pages, err := console.New(store, console.Options{Hosts: []string{"example.com"}})
	if err != nil {
		return err
	}
	for _, p := range []struct{ name, path string }{
		{"list", "/"}, {"search", "/search?by=external&q=re_none"}, {"rates", "/rates"}, {"reconciler", "/reconciler"},
	} {
		if err := b.timed("console_"+p.name+"_"+name, "the console's page "+p.path+", on the server", func() error {
			w := httptest.NewRecorder()
			pages.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, p.path, nil))
			if w.Code/100 == 2 || w.Code/100 == 3 {
				return nil
			}
			return fmt.Errorf("the page answers %d", w.Code)
		}); err != nil {
			return err
		}
	}
	return nil
}

// timed notes how long do takes, the median of the rounds.
func (b *bench) timed(name, note string, do func() error) error {
	took := make([]float64, b.rounds)
	for i := range took {
		start := time.Now()
		if err := do(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		took[i] = millis(time.Since(start))
	}
	median, _, _ := spread(took)
	b.result.figure(name, median, "ms", note)
	return nil
}
