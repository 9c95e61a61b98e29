package chaos

import (
	"errors"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

// keylessCell is a step at which a process is killed that sends without a key.
type keylessCell struct {
	cell
	sent int // Requests of each job that leave the process; what was sent once is never sent again.
}

var keylessCells = []keylessCell{
	{cell{name: "before claim", stop: beforeClaim, never: true}, 0},
	{cell{name: "after claim", stop: afterClaim}, 0},
	{cell{name: "after write, arrives later", stop: afterWrite,
		fault: fakeprovider.Fault{Kind: fakeprovider.LateApply, Delay: 500 * time.Millisecond}}, 1},
	{cell{name: "after write, never arrives", stop: afterWrite, fault: fakeprovider.Fault{Kind: fakeprovider.DropBeforeApply}}, 1},
	{cell{name: "after write, performed after the takeover", stop: afterWrite,
		fault: fakeprovider.Fault{Kind: fakeprovider.LateApply, Delay: 4 * time.Second}}, 1},
	{cell{name: "after the provider applied", applied: true, fault: fakeprovider.Fault{Kind: fakeprovider.Hang, Applied: true}}, 1},
	{cell{name: "after the response", stop: afterResponse}, 1},
	{cell{name: "before settle", stop: beforeSettle}, 1},
	{cell{name: "after settle", stop: afterSettle}, 1},
}

// R21, R22: a process that sends without a key is killed with SIGKILL exactly at each
// step. What may have been delivered is never sent again, by reconciler or caller:
// it ends found by a look-up, or with a person.
func TestKilledWithoutAKey(t *testing.T) {
	t.Parallel()
	for _, c := range keylessCells {
		for _, store := range stores {
			t.Run(c.name+"/"+store, func(t *testing.T) {
				t.Parallel()
				c.play(t, store)
			})
		}
	}
}

func (c keylessCell) play(t *testing.T, store string) {
	s := newScene(t, store, stripeCancel, paypalInvoice)
	s.attach()
	if c.fault.Kind != "" {
		s.inject(c.fault)
	}
	worker := s.start(doCalls, c.stop)
	if c.applied {
		s.awaitApplied()
	} else if err := worker.await(func(stopped, _ int) bool { return stopped >= len(s.jobs) }); err != nil {
		t.Fatal(err)
	}
	s.reconcileWith(climbing(4))
	worker.kill()
	for _, p := range s.providers {
		if c.fault.Kind == fakeprovider.Hang {
			p.fake.Release() // the worker has gone
		}
	}
	s.awaitResolved()
	for _, j := range s.jobs {
		s.wantSentOnce(j, c.sent)
		if c.never { // nobody but the caller knows of it
			s.deliver(j)
			s.wantSentOnce(j, 1)
			continue
		}
		s.redeliverWithoutAKey(j)
		s.wantSentOnce(j, c.sent)
	}
}

// wantSentOnce compares with the requests and effects that the fake counted.
func (s *scene) wantSentOnce(j job, want int) {
	s.t.Helper()
	if n := len(s.providers[j.Kind.provider()].fake.Requests(operations[j.Kind])); n != want {
		s.t.Errorf("%s was sent %d times, want %d", j.ID, n, want)
	}
	if n, err := s.providers.effects(j, nil); err != nil || n > 1 {
		s.t.Errorf("%s has %d effects, %v", j.ID, n, err)
	}
}

// redeliverWithoutAKey calls once more: the answer is the ledger's, what a look-up
// found, or that a person must decide; and it says of the effect what is true.
func (s *scene) redeliverWithoutAKey(j job) {
	s.t.Helper()
	effects, err := s.providers.effects(j, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	var reply *outbound.Reply
	s.poll(j.ID+", delivered again", func() error {
		if reply, err = s.clients[j.Kind.provider()].Do(s.t.Context(), j.call()); errors.Is(err, outbound.ErrStore) {
			return err
		}
		return nil
	})
	review, listErr := s.ledger.waiting(s.t.Context(), recordstore.ManualReview)
	if listErr != nil {
		s.t.Fatal(listErr)
	}
	waits := false
	for _, f := range review {
		waits = waits || f.command == j.ID
	}
	switch {
	case err == nil && (effects != 1 || waits):
		s.t.Errorf("%s is answered as %s with %d effects, waits for a person: %t", j.ID, reply.Label, effects, waits)
	case err == nil && reply.Label != outbound.LatestStatus && reply.Label != outbound.OriginalReplay:
		s.t.Errorf("%s is answered once more as %q", j.ID, reply.Label)
	case err != nil && (!errors.Is(err, outbound.ErrManualReview) || !waits):
		s.t.Errorf("%s: %v, waits for a person: %t", j.ID, err, waits)
	}
}

// R21: a request without a key goes over a connection of its own, which no server
// is about to close, and net/http never repeats it by itself.
func TestWithoutAKeyOnAFreshConnection(t *testing.T) {
	t.Parallel()
	s := newScene(t, "sqlite", stripeRefund, stripeCancel, paypalRefund, paypalInvoice)
	for _, p := range s.providers {
		if err := p.fake.Inject(fakeprovider.Fault{Kind: fakeprovider.ResetReused, Operation: operations[keylessOf(p.name)]}); err != nil {
			t.Fatal(err)
		}
	}
	for _, j := range s.jobs { // those with a key leave connections behind that are kept
		if reply := s.deliver(j); reply.Deliveries != 1 {
			t.Errorf("%s took %d deliveries", j.ID, reply.Deliveries)
		}
	}
	s.wantEffects(1)
	for _, p := range s.providers {
		if armed := p.fake.Faults(); len(armed) != 1 {
			t.Errorf("%s: a request without a key went over a connection that was used before", p.name)
		}
	}
}

func keylessOf(provider string) kind {
	if provider == "stripe" {
		return stripeCancel
	}
	return paypalInvoice
}
