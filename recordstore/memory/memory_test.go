package memory_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/memory"
	"github.com/seed-6b5e302b/samekey/recordstore/recordstoretest"
)

type harness struct{ last *memory.Store }

func (h *harness) Open(_ testing.TB, now func() time.Time) recordstore.Store {
	h.last = memory.New(&memory.Options{Now: now})
	return h.last
}

func (h *harness) Reopen(testing.TB) recordstore.Store { return h.last }

func (h *harness) Seed(_ testing.TB, s recordstore.Store, recs ...recordstore.Record) {
	s.(*memory.Store).Seed(recs...)
}

// R10, R20, R23, C25, C26: the suite names what each of its cases proves.
func TestStore(t *testing.T) { recordstoretest.Run(t, &harness{}) }

// R20: with its default clock the ledger works inside a synctest bubble.
func TestLeaseEndsInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.New(nil)
		c := recordstore.Claim{
			ID: recordstore.ID{KeyHash: [16]byte{1}}, Holder: "a", Lease: time.Minute, Window: time.Hour,
			Fingerprints: [][]byte{{1, 1}}, Derivation: "k1", Derivations: []string{"k1"},
		}
		for _, step := range []struct {
			holder string
			wait   time.Duration
			want   recordstore.Decision
		}{{"a", 0, recordstore.Send}, {"b", time.Minute - 1, recordstore.InFlight}, {"b", 1, recordstore.Send}} {
			time.Sleep(step.wait)
			c.Holder = step.holder
			if got, err := s.Claim(t.Context(), c); err != nil || got.Decision != step.want {
				t.Errorf("%s decided %q, want %q (%v)", step.holder, got.Decision, step.want, err)
			}
		}
	})
}

// What dies with its process must not be taken for more.
func TestNotDurable(t *testing.T) {
	if _, ok := any(memory.New(nil)).(recordstore.Durable); ok {
		t.Error("a ledger in memory calls itself durable")
	}
}
