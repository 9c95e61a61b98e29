package recordstoretest

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

// start is the time at which every case begins. It has no finer parts than a
// database keeps.
var start = time.Date(2026, 3, 4, 5, 6, 7, 891011000, time.UTC)

// What an ordinary claim of the suite asks for.
const (
	lease  = 2 * time.Minute
	window = 24 * time.Hour
)

// clock is the ledger's clock in a case. It moves only when told.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// ledger is what a case works with: the store under test and its clock.
type ledger struct {
	testing.TB
	recordstore.Store
	harness Harness
	clock   *clock
}

func (l *ledger) seed(recs ...recordstore.Record) {
	l.Helper()
	l.harness.Seed(l.TB, l.Store, recs...)
}

// claim claims and expects a decision.
func (l *ledger) claim(c recordstore.Claim, want recordstore.Decision) recordstore.Record {
	l.Helper()
	got, err := l.Claim(l.Context(), c)
	if err != nil {
		l.Fatalf("Claim: %v", err)
	}
	if got.Decision != want {
		l.Fatalf("Claim decided %q, want %q", got.Decision, want)
	}
	if !got.Now.Equal(l.clock.Now()) {
		l.Errorf("Claim says that it is %v, the ledger's clock says %v", got.Now, l.clock.Now())
	}
	return got.Record
}

// settle settles the claim that rec shows and expects it to be done.
func (l *ledger) settle(rec recordstore.Record, r recordstore.Result) recordstore.Record {
	l.Helper()
	got, err := l.Settle(l.Context(), settlement(rec, r))
	if err != nil {
		l.Fatalf("Settle to %s: %v", r.State, err)
	}
	if got.State != r.State {
		l.Errorf("Settle returned a record in state %q, want %q", got.State, r.State)
	}
	return got
}

// lost settles and expects ErrNotHeld with the record that the ledger holds.
func (l *ledger) lost(s recordstore.Settlement) recordstore.Record {
	l.Helper()
	before := l.stored(s.ID)
	got, err := l.Settle(l.Context(), s)
	if !errors.Is(err, recordstore.ErrNotHeld) {
		l.Fatalf("Settle to %s: error is %v, want ErrNotHeld", s.State, err)
	}
	l.same("the record that comes with ErrNotHeld", got, before)
	l.same("the stored record after ErrNotHeld", l.stored(s.ID), before)
	return got
}

func (l *ledger) report(id recordstore.ID, r recordstore.Result) recordstore.Record {
	l.Helper()
	got, err := l.Report(l.Context(), id, r)
	if err != nil {
		l.Fatalf("Report of %s: %v", r.State, err)
	}
	l.same("the record that Report returned, against the stored one", got, l.stored(id))
	return got
}

func (l *ledger) stored(id recordstore.ID) recordstore.Record {
	l.Helper()
	rec, _, err := l.Get(l.Context(), id)
	if err != nil {
		l.Fatalf("Get: %v", err)
	}
	return rec
}

// absent expects that the ledger has no record of id, and reports whether it is so.
func (l *ledger) absent(id recordstore.ID) bool {
	l.Helper()
	_, _, err := l.Get(l.Context(), id)
	gone := errors.Is(err, recordstore.ErrNotFound)
	if !gone {
		l.Errorf("Get: error is %v, want ErrNotFound: nothing should have been written", err)
	}
	return gone
}

// same compares two records field by field and reports whether they are the same.
func (l *ledger) same(what string, got, want recordstore.Record) bool {
	l.Helper()
	diff := difference(got, want)
	if diff != "" {
		l.Errorf("%s differs: %s", what, diff)
	}
	return diff == ""
}

// difference names the fields in which got is not want, "" for none.
func difference(got, want recordstore.Record) string {
	var out []string
	g, w := reflect.ValueOf(got), reflect.ValueOf(want)
	for i := range g.NumField() {
		name := g.Type().Field(i).Name
		switch a := g.Field(i).Interface().(type) {
		case time.Time:
			b := w.Field(i).Interface().(time.Time)
			if !a.Equal(b) || a.IsZero() != b.IsZero() {
				out = append(out, fmt.Sprintf("%s is %v, want %v", name, a, b))
			} else if a.Location() != time.UTC {
				out = append(out, fmt.Sprintf("%s is not in UTC", name))
			}
		case []byte:
			if b := w.Field(i).Bytes(); !bytes.Equal(a, b) {
				out = append(out, fmt.Sprintf("%s is %s, want %s", name, brief(a), brief(b)))
			}
		default:
			if b := w.Field(i).Interface(); a != b {
				out = append(out, fmt.Sprintf("%s is %v, want %v", name, a, b))
			}
		}
	}
	return strings.Join(out, "; ")
}

func brief(b []byte) string {
	if len(b) <= 16 {
		return fmt.Sprintf("%q", b)
	}
	return fmt.Sprintf("%d bytes with hash %x", len(b), sha256.Sum256(b))
}

// today is the day of t, counted as recordstore.ID counts.
func today(t time.Time) int32 { return int32(t.Unix() / (24 * 60 * 60)) }

// identity returns the n-th identity of the suite, on the day of start.
func identity(n int) recordstore.ID {
	id := recordstore.ID{Day: today(start)}
	h := sha256.Sum256(binary.BigEndian.AppendUint64(nil, uint64(n)))
	copy(id.KeyHash[:], h[:])
	return id
}

// fingerprint returns one that has the given version.
func fingerprint(version byte, content string) []byte {
	h := sha256.Sum256([]byte(content))
	return append([]byte{version}, h[:]...)
}

// newClaim returns an ordinary first claim of the n-th identity.
func newClaim(n int) recordstore.Claim {
	return recordstore.Claim{
		ID:           identity(n),
		Scope:        sha256.Sum256([]byte("tenant-7")),
		Provider:     "stripe",
		Account:      "acct_1Nv0/live",
		Operation:    "refund.create",
		CommandID:    fmt.Sprintf("refund-%d/line-3", n),
		Class:        "money",
		Derivation:   "k1",
		Derivations:  []string{"k1", "k0", recordstore.Foreign},
		Fingerprints: [][]byte{fingerprint(2, "amount=5"), fingerprint(1, "amount=5")},
		SealVersion:  3,
		Request:      []byte("sealed request"),
		Holder:       fmt.Sprintf("claim-%d", n),
		Lease:        lease,
		Window:       window,
		Replay:       7 * 24 * time.Hour,
		Evidence:     400 * 24 * time.Hour,
	}
}

// by returns c as another holder asks it.
func by(c recordstore.Claim, holder string) recordstore.Claim {
	c.Holder = holder
	return c
}

// settlement ends the claim that rec shows.
func settlement(rec recordstore.Record, r recordstore.Result) recordstore.Settlement {
	return recordstore.Settlement{ID: rec.ID, Holder: rec.Holder, Fence: rec.Fence, Result: r}
}

// result returns a result that fills every field.
func result(to recordstore.State) recordstore.Result {
	return recordstore.Result{
		State:          to,
		Evidence:       "no_replay_header",
		Outcome:        "done",
		Deliveries:     1,
		ResponseStatus: 200,
		SealVersion:    3,
		ResponseHeader: []byte("sealed header"),
		ResponseBody:   []byte("sealed body"),
		ExternalRef:    "re_3Nv0",
		ObjectStatus:   "succeeded",
		RequestID:      "req_8Kd2",
		ErrorCode:      "refused:card_declined",
	}
}
