package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/postgres"
)

// ledgers measures what a call costs the ledger in PostgreSQL, one claim and one
// settlement, against the same statements without a ledger around them: sent by
// PostgreSQL's own benchmark program, and by a pool of pgx.
func ledgers(ctx context.Context, b *bench) error {
	ours, _, err := b.ledger(ctx, "ledger")
	if err != nil {
		return err
	}
	store := postgres.New(ours, nil)
	_, theirs, err := b.ledger(ctx, "ledger_pgbench")
	if err != nil {
		return err
	}
	said, err := b.statementsOf(ctx, theirs)
	if err != nil {
		return err
	}
	program, err := b.pgbench(said, theirs)
	if err != nil {
		return err
	}
	callers := []int{1, 8, 32, 64}
	if !b.quick {
		callers = append(callers, 256)
	}
	contenders := []contender{
		program,
		calling("samekey, PostgreSQL", func(ctx context.Context) error { return ledgerCall(ctx, store) }),
	}
	if !b.quick {
		plain, _, err := b.ledger(ctx, "ledger_pgx")
		if err != nil {
			return err
		}
		direct := postgres.New(ours, &postgres.Options{Direct: true})
		contenders = append(contenders,
			calling("pgx pool, one statement each", func(ctx context.Context) error { return said.send(ctx, plain) }),
			calling("samekey, Options.Direct", func(ctx context.Context) error { return ledgerCall(ctx, direct) }))
	}
	r, err := b.compare(ctx, "ledger", callers, contenders...)
	if err != nil {
		return err
	}
	for _, n := range callers {
		b.result.ratio("ledger_vs_pgbench", n, "", r.ratio("samekey, PostgreSQL", program.name, n)...)
	}
	return nil
}

// sealedBody is how many bytes of sealed request and answer a measured record
// holds.
const sealedBody = 256

// ledgerCall is what Do asks of a ledger.
func ledgerCall(ctx context.Context, store recordstore.Store) error {
	got, err := store.Claim(ctx, newClaim())
	if err != nil {
		return err
	}
	if got.Decision != recordstore.Send {
		return fmt.Errorf("the claim of a new command was answered %q", got.Decision)
	}
	_, err = store.Settle(ctx, settlementOf(got.Record))
	return err
}

// newClaim is the claim of a new command, made today.
func newClaim() recordstore.Claim {
	c := recordstore.Claim{
		ID:       recordstore.ID{Day: int32(time.Now().Unix() / (24 * 60 * 60))},
		Provider: "stripe", Account: "acct_1Nv0FGQ9RKHgCVdK/live", Operation: "refund.create",
		CommandID: keyderive.NewCommandID(), Class: "money",
		Derivation: keyderive.Version, Derivations: []string{keyderive.Version, recordstore.Foreign},
		Fingerprints: [][]byte{append([]byte{1}, random(16)...)},
		SealVersion:  1, Request: random(sealedBody), Holder: keyderive.NewCommandID(),
		Lease: 2 * time.Minute, Window: 24*time.Hour - 5*time.Minute,
		Replay: 7 * 24 * time.Hour, Evidence: 400 * 24 * time.Hour,
	}
	copy(c.ID.KeyHash[:], random(len(c.ID.KeyHash)))
	return c
}

// recordOf names the record that a claim of a new command makes.
func recordOf(c recordstore.Claim) recordstore.Record {
	return recordstore.Record{ID: c.ID, Holder: c.Holder, Fence: 1}
}

// settlementOf is the settlement of a claimed record by a new execution.
func settlementOf(rec recordstore.Record) recordstore.Settlement {
	return recordstore.Settlement{
		ID: rec.ID, Holder: rec.Holder, Fence: rec.Fence,
		Result: recordstore.Result{
			State: recordstore.Succeeded, Evidence: "no_replay_header", Outcome: "done", Deliveries: 1,
			ResponseStatus: 200, SealVersion: 1, ResponseHeader: random(sealedBody / 2), ResponseBody: random(sealedBody),
			ExternalRef: "re_3MmlLrLkdIwHu7ix0uke3Ezy", ObjectStatus: "succeeded", RequestID: "req_Tz1cKu5a9kJzYn",
		},
	}
}

// random returns n bytes that compress as little as sealed ones.
func random(n int) []byte {
	b := make([]byte, n)
	rand.Read(b) // never fails
	return b
}

// statements are the claim and the settlement of a call as the store sends them,
// with the arguments of one call.
type statements struct {
	claim, settle statement
	key           recordstore.ID
	holder        string
}

type statement struct {
	sql  string
	args []any
}

// statementsOf listens to the store while it makes one call on the ledger at dsn:
// what is compared with it is what it says, whatever becomes of its SQL.
func (b *bench) statementsOf(ctx context.Context, dsn string) (statements, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return statements{}, err
	}
	heard := &listener{}
	config.ConnConfig.Tracer = heard
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return statements{}, err
	}
	defer pool.Close()
	store := postgres.New(pool, nil)
	claim := newClaim()
	got, err := store.Claim(ctx, claim)
	if err == nil {
		_, err = store.Settle(ctx, settlementOf(got.Record))
	}
	if err != nil {
		return statements{}, err
	}
	said := heard.about(claim.ID)
	if len(said) != 2 {
		return statements{}, fmt.Errorf("a call of the ledger took %d statements, not 2", len(said))
	}
	return statements{said[0], said[1], claim.ID, claim.Holder}, nil
}

// send makes one call with new names, one statement after the other.
func (s statements) send(ctx context.Context, pool *pgxpool.Pool) error {
	key, holder := random(len(s.key.KeyHash)), keyderive.NewCommandID()
	for _, st := range []statement{s.claim, s.settle} {
		rows, err := pool.Query(ctx, st.sql, s.renamed(st.args, key, holder)...)
		if err != nil {
			return err
		}
		n := 0
		for rows.Next() {
			n++
		}
		if err := rows.Err(); err != nil {
			return err
		}
		if n != 1 {
			return fmt.Errorf("a statement of the ledger returned %d rows, not 1", n)
		}
	}
	return nil
}

func (s statements) renamed(args []any, key []byte, holder string) []any {
	args = slices.Clone(args)
	for i, arg := range args {
		switch {
		case s.isKey(arg):
			args[i] = key
		case s.isHolder(arg):
			args[i] = holder
		}
	}
	return args
}

func (s statements) isKey(arg any) bool {
	b, ok := arg.([]byte)
	return ok && string(b) == string(s.key.KeyHash[:])
}

func (s statements) isHolder(arg any) bool { return fmt.Sprint(arg) == s.holder }
