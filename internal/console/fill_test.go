package console_test

import (
	"encoding/binary"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/internal/console"
	"github.com/seed-6b5e302b/samekey/internal/pgtest"
	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/postgres"
)

// fill writes n records through the contract, settled but for those that are to be
// uncertain.
func fill(t testing.TB, s recordstore.Store, n int, uncertain func(int) bool) {
	t.Helper()
	fillRange(t, s, 0, n, uncertain)
}

// fillRange writes the records from a number on, before another.
func fillRange(t testing.TB, s recordstore.Store, from, before int, uncertain func(int) bool) {
	t.Helper()
	const writers = 32
	var group sync.WaitGroup
	failed := make(chan error, writers)
	for w := range writers {
		group.Go(func() {
			for i := from + w; i < before; i += writers {
				if err := fillOne(t, s, i, uncertain(i)); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	group.Wait()
	close(failed)
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
}

func fillOne(t testing.TB, s recordstore.Store, i int, uncertain bool) error {
	id := recordstore.ID{Day: 20_000}
	binary.BigEndian.PutUint64(id.KeyHash[:], uint64(i)*0x9E3779B97F4A7C15)
	c := recordstore.Claim{
		ID: id, Provider: []string{"stripe", "paypal"}[i%2], Account: "acct_shop/test", Operation: "refund.create",
		CommandID: fmt.Sprintf("order-%d", i), Class: "money", Derivation: keyderive.Version, Derivations: []string{keyderive.Version},
		Fingerprints: [][]byte{{1, 2}}, Holder: "holder", Lease: time.Minute, Window: time.Hour, Replay: time.Hour, Evidence: time.Hour,
	}
	claimed, err := s.Claim(t.Context(), c)
	if err != nil {
		return err
	}
	result := recordstore.Result{State: recordstore.Succeeded, Evidence: "no_replay_header", ExternalRef: fmt.Sprintf("re_%d", i), Deliveries: 1, ResponseStatus: 200}
	if uncertain {
		result = recordstore.Result{State: recordstore.Uncertain, ErrorCode: "uncertain", Deliveries: 1, DueIn: time.Hour}
	}
	_, err = s.Settle(t.Context(), recordstore.Settlement{ID: id, Holder: "holder", Fence: claimed.Record.Fence, Result: result})
	return err
}

// BenchmarkList is what the first page costs on the server where the ledger holds
// 100,000 records, one in twenty of them open; the others are the heavier pages.
func BenchmarkList(b *testing.B) {
	const records = 100_000
	pool := pgtest.Pool(b)
	if err := postgres.Migrate(b.Context(), pool, nil); err != nil {
		b.Fatal(err)
	}
	for name, s := range map[string]store{"sqlite": openSQLite(b), "postgres": postgres.New(pool, nil)} {
		fill(b, s, records, func(i int) bool { return i%20 == 0 })
		if _, err := s.FindCrashed(b.Context(), false, recordstore.MaxTake); err != nil { // as a reconciler does
			b.Fatal(err)
		}
		h, err := console.New(s, console.Options{Hosts: []string{"example.com"}})
		if err != nil {
			b.Fatal(err)
		}
		for _, page := range []string{"/", "/?state=uncertain&provider=stripe", "/search?by=command&q=order-7", "/search?by=external&q=re_77777", "/rates", "/reconciler"} {
			b.Run(name+page, func(b *testing.B) {
				for b.Loop() {
					w := httptest.NewRecorder()
					h.ServeHTTP(w, httptest.NewRequestWithContext(b.Context(), http.MethodGet, page, nil))
					if w.Code != http.StatusOK && w.Code != http.StatusSeeOther {
						b.Fatalf("%d: %s", w.Code, w.Body)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/page")
			})
		}
	}
}
