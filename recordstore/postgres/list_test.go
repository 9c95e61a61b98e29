package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/postgres"
)

// With 20,000 open records among as many settled ones a page of what is open is
// read along the indexes, wherever it begins; a command is found in its day's part.
func TestListOnALargeLedger(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	store, pool := ledger(t)
	fill(t, pool, 20_000, "succeeded", "'settled'", "now() - interval '3 days' + i * interval '1 second'", "NULL::timestamptz")
	execute(t, pool, "ANALYZE samekey.record")
	fill(t, pool, 20_000, "uncertain", "i", "now() - interval '2 days' + i * interval '1 second'", "now() - interval '1 hour'")
	fill(t, pool, 1_000, "manual_review", "i", "now() - interval '1 day' + i * interval '1 second'", "NULL::timestamptz")
	fill(t, pool, 20, "sending", "'crashed'", "now() - interval '10 minutes'", "NULL::timestamptz")
	execute(t, pool, "UPDATE samekey.record SET day = 20001 WHERE state = 'succeeded' AND command_id LIKE 'c17%'")
	if _, err := store.FindCrashed(ctx, false, 1); err != nil { // sets the mark
		t.Fatal(err)
	}
	execute(t, pool, "SELECT brin_summarize_new_values('samekey.record_claimed')") // as autovacuum does

	open := recordstore.ListQuery{Filter: recordstore.Filter{Open: true, States: []recordstore.State{
		recordstore.Uncertain, recordstore.ManualReview, recordstore.Sending, recordstore.NotExecuted}}, Limit: 100}
	for range 3 {
		plan, err := postgres.ExplainList(ctx, store, open)
		atMost(t, "a page of what is open", plan, err, 4_000)
		page, err := store.List(ctx, open)
		if err != nil || len(page.Records) != 100 || page.Next == nil {
			t.Fatalf("a page of what is open has %d records, next %v, %v", len(page.Records), page.Next, err)
		}
		open.From = page.Next
	}
	review := recordstore.ListQuery{Filter: recordstore.Filter{States: []recordstore.State{recordstore.ManualReview}}, Order: recordstore.NewestFirst, Limit: 50}
	plan, err := postgres.ExplainList(ctx, store, review)
	atMost(t, "a page of what is in review", plan, err, 500)
	command := recordstore.ListQuery{Filter: recordstore.Filter{CommandID: "c17", Day: 20001}, Limit: 10}
	plan, err = postgres.ExplainList(ctx, store, command)
	atMost(t, "a command", plan, err, 4_000)
	if page, err := store.List(ctx, command); err != nil || len(page.Records) != 1 {
		t.Errorf("the command has %d records, %v; want 1", len(page.Records), err)
	}
}

// People's questions are given up by the server itself, and say what to do.
func TestListIsGivenUp(t *testing.T) {
	t.Parallel()
	store, pool := ledger(t)
	tx, err := pool.Begin(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(context.Background(), "LOCK TABLE samekey.record IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if _, err := store.List(ctx, recordstore.ListQuery{Limit: 1}); !errors.Is(err, recordstore.ErrTooLong) {
		t.Errorf("a list that waits for a lock ends in %v, want ErrTooLong", err)
	}
	if err := tx.Rollback(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, err := store.About(context.Background()); err != nil {
		t.Errorf("About: %v", err)
	}
}

// BenchmarkListOpen is a page of 100 among 100,000 open records, what the list of a
// console costs.
func BenchmarkListOpen(b *testing.B) {
	store, pool := ledger(b)
	fill(b, pool, 100_000, "uncertain", "i", "now() - interval '2 days' + i * interval '1 second'", "now() - interval '1 hour'")
	for b.Loop() {
		page, err := store.List(context.Background(), recordstore.ListQuery{Filter: recordstore.Filter{Open: true}, Limit: 100})
		if err != nil || len(page.Records) != 100 {
			b.Fatalf("%d records, %v", len(page.Records), err)
		}
	}
}
