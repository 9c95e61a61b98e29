package chaos

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

// Result is what the providers and the ledger say after a run.
type Result struct {
	Commands   int
	Effects    int // Of all commands, by the providers' own count.
	Duplicates int // Effects beyond a command's first.
	Lost       int // Commands without an effect.
	Unresolved int // Records that are planned, being sent or uncertain.
	Review     int // Records that wait for a person.

	Undecidable int // Commands that the fakes made undecidable on purpose, by their own log.
	Kills       int
	Faults      int // Requests that went wrong.
	Labels      map[outbound.Label]int
	Lies        []error // Labels that were not true.
}

// String is one line without what belongs to Undecidable and below.
func (r Result) String() string {
	return fmt.Sprintf("commands %d effects %d duplicates %d lost %d unresolved %d review %d",
		r.Commands, r.Effects, r.Duplicates, r.Lost, r.Unresolved, r.Review)
}

// Err returns what is wrong with r, nil if the promise was kept.
func (r Result) Err() error {
	var errs []error
	if r.Effects != r.Commands || r.Duplicates != 0 || r.Lost != 0 || r.Unresolved != 0 {
		errs = append(errs, errors.New("the promise was broken: "+r.String()))
	}
	if r.Review != r.Undecidable {
		errs = append(errs, fmt.Errorf("%d records wait for a person, %d commands were made undecidable", r.Review, r.Undecidable))
	}
	return errors.Join(append(errs, r.Lies...)...)
}

// undecidable are the commands that the fakes made undecidable so far, by their own
// logs: keys whose answers were lost on purpose, and paths where there is no key.
func (r *run) undecidable() map[string]bool {
	lost := map[string]bool{}
	for _, e := range r.providers["stripe"].fake.Requests(operations[stripeUsage]) {
		if e.Fault == fakeprovider.Status500 {
			lost[string(e.KeyHash[:])] = true
		}
	}
	for _, e := range r.providers["paypal"].fake.Requests(operations[paypalPatch]) {
		if e.Fault == fakeprovider.DropAfterApply {
			lost[e.Path] = true
		}
	}
	return lost
}

// count asks the providers and the ledger.
func (r *run) count(ctx context.Context) (Result, error) {
	result := Result{Commands: len(r.jobs), Labels: map[outbound.Label]int{}, Undecidable: len(r.undecidable())}
	var err error
	if result.Unresolved, err = r.ledger.count(ctx, unresolved...); err != nil {
		return result, err
	}
	if result.Review, err = r.ledger.count(ctx, recordstore.ManualReview); err != nil {
		return result, err
	}
	for _, p := range r.providers {
		p.fake.ClearFaults()
		for _, e := range p.fake.Requests("") {
			if e.Fault != "" {
				result.Faults++
			}
		}
	}
	witnesses := r.providers.witnesses()
	for _, j := range r.jobs {
		if err := r.countJob(ctx, &result, j, witnesses[j.Kind.provider()]); err != nil {
			return result, err
		}
	}
	return result, nil
}

// countJob adds one command's effects, and what it is answered when it is called
// once more.
func (r *run) countJob(ctx context.Context, result *Result, j job, w witness) error {
	client := r.clients[j.Kind.provider()]
	n, err := r.providers.effects(j, client)
	if err != nil {
		return err
	}
	result.Effects += n
	result.Duplicates += max(0, n-1)
	if n == 0 {
		result.Lost++
		fmt.Fprintf(r.Log, "%s has no effect\n", j.ID)
	}
	if j.Kind == stripeUsage || j.Kind == paypalPatch {
		return nil
	}
	j.Plan = false
	reply, err := client.Do(ctx, j.call())
	if err != nil {
		result.Lies = append(result.Lies, fmt.Errorf("%s: %w", j.ID, err))
		return nil
	}
	result.Labels[reply.Label]++
	if err := w.truthful(j, client, reply); err != nil {
		result.Lies = append(result.Lies, err)
	}
	return nil
}
