package memory_test

import (
	"testing"
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
