package console_test

import (
	"context"
	"path/filepath"
	"regexp"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/internal/console"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/memory"
	"github.com/seed-6b5e302b/samekey/recordstore/sqlite"
)

// asked counts the pages that a console reads of a ledger.
type asked struct {
	store
	lists atomic.Int64
}

func (a *asked) List(ctx context.Context, q recordstore.ListQuery) (recordstore.Listing, error) {
	a.lists.Add(1)
	return a.store.List(ctx, q)
}

// R26: a part of the window counts the records that were claimed in it, of a busy
// one the newest, however unevenly they came; and few questions are asked of a ledger
// that is idle for most of the time.
func TestRatesOfUnevenTimes(t *testing.T) {
	t.Parallel()
	const most = 400 // of a part
	for name, c := range map[string]struct {
		hours     map[int]int // Records by hours ago.
		questions int64       // At most.
	}{
		"none":              {nil, 5},
		"one busy hour":     {map[int]int{0: 900}, 6},
		"each hour":         {map[int]int{0: 1, 1: 2, 2: 3, 3: 4, 4: 5, 5: 6, 6: 7, 7: 8, 12: 9, 22: 1, 23: 2}, 5},
		"busy between":      {map[int]int{0: 3, 1: 10, 2: 450, 3: 600, 8: 1, 9: 1, 23: 5}, 12},
		"just full":         {map[int]int{0: most, 1: most + 1, 5: 2}, 8},
		"a cut at the edge": {map[int]int{1: 1, 2: 999, 3: 7}, 9},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := time.Date(2026, 3, 5, 12, 0, 0, 0, time.UTC)
			var clock atomic.Int64
			now := func() time.Time { return start.Add(time.Duration(clock.Load())) }
			ledgers := map[string]store{"memory": memory.New(&memory.Options{Now: now})}
			if name == "busy between" { // the one that meets everything
				file, err := sqlite.Open(filepath.Join(t.TempDir(), "ledger.db"), &sqlite.Options{Now: now})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = file.Close() })
				ledgers["sqlite"] = file
			}
			for name, s := range ledgers {
				clock.Store(0)
				n := 0
				for ago := 23; ago >= 0; ago-- {
					clock.Store(int64(time.Duration(24-ago)*time.Hour - time.Minute))
					fillRange(t, s, n, n+c.hours[ago], func(int) bool { return false })
					n += c.hours[ago]
				}
				clock.Store(int64(24 * time.Hour))
				watched := &asked{store: s}
				page := browse(t, serve(t, watched, console.Options{})).get("/rates", 200)
				rows := regexp.MustCompile(`</time></th><td class="number">(\d+)( \(newest\))?</td>`).FindAllStringSubmatch(page, -1)
				if len(rows) != 24 {
					t.Fatalf("%s: the table has %d rows", name, len(rows))
				}
				for ago, row := range rows {
					got, err := strconv.Atoi(row[1])
					want, newest := c.hours[ago], row[2] != ""
					if whole := got == want && !newest; err != nil || !whole && (!newest || got != most || want <= most) {
						t.Errorf("%s: %d hours ago the page has %q, want %d", name, ago, row[1:], want)
					}
				}
				if got := watched.lists.Load(); got > c.questions {
					t.Errorf("%s: the ledger was asked %d times, want at most %d", name, got, c.questions)
				}
			}
		})
	}
}
