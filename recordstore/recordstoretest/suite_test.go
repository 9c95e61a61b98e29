package recordstoretest

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/memory"
)

// harness opens a ledger in memory behind a store that breaks one rule.
type harness struct {
	spoil func(*memory.Store, func() time.Time) recordstore.Store
	inner *memory.Store
	last  recordstore.Store
	known []recordstore.ID // Of the records that were seeded.
}

func (h *harness) Open(_ testing.TB, now func() time.Time) recordstore.Store {
	h.inner = memory.New(&memory.Options{Now: now})
	h.last = h.spoil(h.inner, now)
	h.known = nil
	return h.last
}

func (h *harness) Reopen(testing.TB) recordstore.Store { return h.last }

func (h *harness) Seed(_ testing.TB, _ recordstore.Store, recs ...recordstore.Record) {
	h.inner.Seed(recs...)
	for _, rec := range recs {
		h.known = append(h.known, rec.ID)
	}
}

// transactions is a harness whose stores plan in a transaction that breaks a rule.
type transactions struct {
	*harness
	begin func(*broken) (p recordstore.Planner, commit, rollback func() error)
}

func (h *transactions) Begin(testing.TB, recordstore.Store) (p recordstore.Planner, commit, rollback func() error) {
	return h.begin(h.last.(*broken))
}

// recorder is a testing.TB that keeps failures to itself.
type recorder struct {
	testing.TB
	mu     sync.Mutex
	failed bool
	log    strings.Builder
}

func (r *recorder) note(failed bool, format string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = r.failed || failed
	r.log.WriteString(format)
}

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

func (r *recorder) Logf(format string, _ ...any)   { r.note(false, format) }
func (r *recorder) Errorf(format string, _ ...any) { r.note(true, format) }
func (r *recorder) Fatalf(format string, _ ...any) {
	r.note(true, format)
	runtime.Goexit()
}

// verdict runs the case against h and returns what it recorded.
func (c testCase) verdict(t testing.TB, h Harness) *recorder {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() { // A fatal failure ends its goroutine.
		defer close(done)
		c.judge(r, h)
	}()
	<-done
	return r
}

func TestSuiteAcceptsASoundStore(t *testing.T) {
	sound := &harness{spoil: func(m *memory.Store, _ func() time.Time) recordstore.Store { return m }}
	for _, c := range cases() {
		if r := c.verdict(t, sound); r.failed {
			t.Errorf("%s fails a sound store: %s", c.name, r.log.String())
		}
	}
}

// bare is a store without optional abilities.
type bare struct{ recordstore.Store }

type lacking struct {
	*harness
	lacks []string
}

func (l *lacking) Lacks() []string { return l.lacks }

// An ability that is missing fails its cases, unless the harness says that the
// stores do without.
func TestMissingAbilities(t *testing.T) {
	h := &harness{spoil: func(m *memory.Store, _ func() time.Time) recordstore.Store { return bare{m} }}
	for _, c := range cases() {
		if r := c.verdict(t, h); r.failed != (c.needs() != "") {
			t.Errorf("%s on a store without abilities: failed is %v", c.name, r.failed)
		}
	}
	Run(t, &lacking{h, []string{"Forgetter", "Queue", "Desk", "Purger", "Planner", "Restorer", "Lister"}})
}

func TestCasesAreNamedOnceAndSayWhy(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range cases() {
		if c.why == "" || seen[c.name] {
			t.Errorf("%s: named twice, or without a reason", c.name)
		}
		seen[c.name] = true
	}
}

// broken is a store on memory of which each step can be replaced. It changes
// records behind the memory store's back, under a lock of its own.
type broken struct {
	*memory.Store
	steps
	mu       sync.Mutex
	now      func() time.Time
	frontier map[string]int32 // Of a store that keeps its own.
	kept     []byte           // Of a store that keeps its caller's.
	mark     time.Time        // Of a store that sweeps behind a watermark.
	trail    map[recordstore.ID][]recordstore.Entry
	harness  *harness
}

// steps are what a broken store does instead; nil is done as it should be.
type steps struct {
	claim  func(*broken, context.Context, recordstore.Claim) (recordstore.Claimed, error)
	settle func(*broken, context.Context, recordstore.Settlement) (recordstore.Record, error)
	report func(*broken, context.Context, recordstore.ID, recordstore.Result) (recordstore.Record, error)
	renew  func(*broken, context.Context, recordstore.ID, string, int64, time.Duration) error
	get    func(*broken, context.Context, recordstore.ID) (recordstore.Record, time.Time, error)
	attach func(*broken, context.Context, recordstore.Pins) error
	raise  func(*broken, context.Context, string, int32) error

	takeDue func(*broken, context.Context, recordstore.DueQuery) ([]recordstore.Record, time.Time, error)
	crashed func(*broken, context.Context, bool, int) (int, error)
	wake    func(*broken, context.Context, recordstore.ID, string) (recordstore.Record, error)
	backlog func(*broken, context.Context, string) (recordstore.Backlog, error)
	resolve func(*broken, context.Context, recordstore.Verdict) (recordstore.Record, error)
	abandon func(*broken, context.Context, recordstore.ID, recordstore.Entry) (recordstore.Record, error)
	erase   func(*broken, context.Context, recordstore.ID, recordstore.Entry) (recordstore.Record, error)
	entries func(*broken, context.Context, recordstore.ID) ([]recordstore.Entry, error)
	purge   func(*broken, context.Context, int) (recordstore.Purged, error)
	plan    func(*broken, context.Context, recordstore.Claim) (recordstore.Claimed, error)
	begin   func(*broken) (p recordstore.Planner, commit, rollback func() error)

	markLost func(*broken, context.Context, time.Time) error
	restored func(*broken, context.Context) (time.Time, error)

	list  func(*broken, context.Context, recordstore.ListQuery) (recordstore.Listing, error)
	tally func(*broken, context.Context, recordstore.Filter) ([]recordstore.Tally, error)
	about func(*broken, context.Context) (recordstore.About, error)
}

func (b *broken) Claim(ctx context.Context, c recordstore.Claim) (recordstore.Claimed, error) {
	if b.claim == nil {
		return b.Store.Claim(ctx, c)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.claim(b, ctx, c)
}

func (b *broken) Settle(ctx context.Context, s recordstore.Settlement) (recordstore.Record, error) {
	if b.settle == nil {
		return b.Store.Settle(ctx, s)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.settle(b, ctx, s)
}

func (b *broken) Report(ctx context.Context, id recordstore.ID, r recordstore.Result) (recordstore.Record, error) {
	if b.report == nil {
		return b.Store.Report(ctx, id, r)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.report(b, ctx, id, r)
}

func (b *broken) Renew(ctx context.Context, id recordstore.ID, holder string, fence int64, lease time.Duration) error {
	if b.renew == nil {
		return b.Store.Renew(ctx, id, holder, fence, lease)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.renew(b, ctx, id, holder, fence, lease)
}

func (b *broken) Get(ctx context.Context, id recordstore.ID) (recordstore.Record, time.Time, error) {
	if b.get == nil {
		return b.Store.Get(ctx, id)
	}
	return b.get(b, ctx, id)
}

func (b *broken) Attach(ctx context.Context, p recordstore.Pins) error {
	if b.attach == nil {
		return b.Store.Attach(ctx, p)
	}
	return b.attach(b, ctx, p)
}

func (b *broken) RaiseFrontier(ctx context.Context, class string, day int32) error {
	if b.raise == nil {
		return b.Store.RaiseFrontier(ctx, class, day)
	}
	return b.raise(b, ctx, class, day)
}

// edit changes the stored record of id, if there is one, and returns it.
func (b *broken) edit(ctx context.Context, id recordstore.ID, change func(*recordstore.Record)) (rec recordstore.Record, ok bool) {
	rec, _, err := b.Store.Get(ctx, id)
	if err != nil {
		return rec, false
	}
	change(&rec)
	b.Seed(rec)
	return rec, true
}

// beforeClaim breaks the claim or the record before Take sees them.
func beforeClaim(spoil func(b *broken, c *recordstore.Claim, rec *recordstore.Record)) steps {
	return steps{claim: func(b *broken, ctx context.Context, c recordstore.Claim) (recordstore.Claimed, error) {
		b.edit(ctx, c.ID, func(rec *recordstore.Record) { spoil(b, &c, rec) })
		return b.Store.Claim(ctx, c)
	}}
}

// afterClaim breaks the record that a claim took.
func afterClaim(spoil func(b *broken, c recordstore.Claim, before, rec *recordstore.Record)) steps {
	return steps{claim: func(b *broken, ctx context.Context, c recordstore.Claim) (recordstore.Claimed, error) {
		before, _, _ := b.Store.Get(ctx, c.ID) // The zero record where there is none.
		got, err := b.Store.Claim(ctx, c)
		if err == nil && (got.Decision == recordstore.Send || got.Decision == recordstore.Lookup) {
			got.Record, _ = b.edit(ctx, c.ID, func(rec *recordstore.Record) { spoil(b, c, &before, rec) })
		}
		return got, err
	}}
}

// afterSettle breaks the record that a settlement wrote.
func afterSettle(spoil func(before, rec *recordstore.Record)) steps {
	return steps{settle: func(b *broken, ctx context.Context, s recordstore.Settlement) (recordstore.Record, error) {
		before, _, _ := b.Store.Get(ctx, s.ID) // The zero record where there is none.
		rec, err := b.Store.Settle(ctx, s)
		if err == nil {
			rec, _ = b.edit(ctx, s.ID, func(rec *recordstore.Record) { spoil(&before, rec) })
		}
		return rec, err
	}}
}

// beforeSettle breaks the settlement before Settled sees it.
func beforeSettle(spoil func(s *recordstore.Settlement, rec recordstore.Record)) steps {
	return steps{settle: func(b *broken, ctx context.Context, s recordstore.Settlement) (recordstore.Record, error) {
		if rec, _, err := b.Store.Get(ctx, s.ID); err == nil {
			spoil(&s, rec)
		}
		return b.Store.Settle(ctx, s)
	}}
}

// beforeReport breaks the record before Reported sees it.
func beforeReport(spoil func(b *broken, rec *recordstore.Record, r recordstore.Result)) steps {
	return steps{report: func(b *broken, ctx context.Context, id recordstore.ID, r recordstore.Result) (recordstore.Record, error) {
		b.edit(ctx, id, func(rec *recordstore.Record) { spoil(b, rec, r) })
		return b.Store.Report(ctx, id, r)
	}}
}

// Each broken store must fail the case that exists because of it.
func TestSuiteRejectsBrokenStores(t *testing.T) {
	for _, tt := range brokenStores() {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inner := &harness{}
			inner.spoil = func(m *memory.Store, now func() time.Time) recordstore.Store {
				return &broken{Store: m, steps: tt.steps, now: now, harness: inner,
					frontier: map[string]int32{}, trail: map[recordstore.ID][]recordstore.Entry{}}
			}
			var h Harness = inner
			if tt.steps.begin != nil {
				h = &transactions{inner, tt.steps.begin}
			}
			for _, name := range strings.Fields(tt.fails) {
				i := slices.IndexFunc(cases(), func(c testCase) bool { return c.name == name })
				if i < 0 {
					t.Fatalf("there is no case %s", name)
				}
				switch r := cases()[i].verdict(t, h); {
				case !r.failed:
					t.Errorf("%s accepts this store", name)
				case !strings.Contains(r.log.String(), "this case exists because"):
					t.Errorf("%s fails without saying why it exists", name)
				}
			}
		})
	}
}

// Every case is there because of a store that it rejects.
func TestEveryCaseRejectsAStore(t *testing.T) {
	var rejects []string
	for _, b := range brokenStores() {
		rejects = append(rejects, strings.Fields(b.fails)...)
	}
	for _, c := range cases() {
		if !slices.Contains(rejects, c.name) {
			t.Errorf("%s rejects no broken store", c.name)
		}
	}
}

// brokenStore is a store that breaks one rule, and the cases that must say so.
type brokenStore struct {
	name  string
	fails string
	steps steps
}

func brokenStores() []brokenStore {
	all := append(brokenClaims(), brokenSettles()...)
	all = append(all, brokenRest()...)
	all = append(all, brokenQueues()...)
	all = append(all, brokenSweeps()...)
	all = append(all, brokenDesks()...)
	all = append(all, brokenPurges()...)
	all = append(all, brokenRestores()...)
	all = append(all, brokenChecks()...)
	all = append(all, brokenLists()...)
	return append(all, brokenPlans()...)
}

var errBroken = errors.New("broken on purpose")
