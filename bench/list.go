package main

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/postgres"
)

// lists measures what people's questions take on a ledger of 100,000 settled
// records.
func lists(ctx context.Context, b *bench) error {
	const records = 100_000
	pool, _, err := b.ledger(ctx, "list")
	if err != nil {
		return err
	}
	b.say("filling a ledger with %d records", records)
	if err := fill(ctx, pool, filling{records: records, from: 30, to: 0, bodies: true}); err != nil {
		return err
	}
	store := postgres.New(pool, nil)
	for _, q := range []struct {
		name, note string
		query      recordstore.ListQuery
	}{
		{"list_page", "the newest 100 records", recordstore.ListQuery{Limit: 100}},
		{"list_open", "records whose outcome is open, none of them", recordstore.ListQuery{Filter: recordstore.Filter{Open: true}, Limit: 100}},
		{"list_external_ref", "the record of one object of the provider", recordstore.ListQuery{Filter: recordstore.Filter{ExternalRef: "re_none"}, Limit: 100}},
	} {
		took := make([]float64, b.rounds)
		for i := range took {
			start := time.Now()
			if _, err := store.List(ctx, q.query); err != nil {
				return fmt.Errorf("%s: %w", q.name, err)
			}
			took[i] = millis(time.Since(start))
		}
		median, _, _ := spread(took)
		b.result.figure(q.name, median, "ms", q.note)
	}
	return nil
}
