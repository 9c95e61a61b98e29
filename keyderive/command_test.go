package keyderive_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed-6b5e302b/samekey/keyderive"
)

func TestNewCommandID(t *testing.T) {
	before := time.Now().UTC()
	ids := make([]string, 1000)
	for i := range ids {
		ids[i] = keyderive.NewCommandID()
	}
	if !slices.IsSorted(ids) || len(slices.Compact(slices.Clone(ids))) != len(ids) {
		t.Error("IDs made one after the other do not sort by time, or are not unique")
	}
	day, err := keyderive.Day(ids[0])
	if first := before.Unix() / 86400; err != nil || int64(day) < first || int64(day) > first+1 {
		t.Errorf("Day = %d, %v; want today, %d", day, err, first)
	}
	if err := keyderive.CheckID(ids[0]); err != nil {
		t.Error(err)
	}
}

func TestDay(t *testing.T) {
	for id, want := range map[string]int32{
		v7:                                     20355,
		strings.ToUpper(v7):                    20355,
		"ord_" + v7:                            20355,
		"r2_" + v7:                             20355,
		v7 + "/line-3":                         20355,
		"ord_" + v7 + "/a_b":                   20355,
		"00000000-0000-7000-8000-000000000000": 0, // 1970-01-01: no day
		dayID(1):                               1,
		dayID(math.MaxUint16):                  math.MaxUint16,

		"":                                     0,
		"cap_1":                                0,
		"_" + v7:                               0, // no prefix
		"Ord_" + v7:                            0, // upper case
		"my-ord_" + v7:                         0, // a hyphen
		"a_b_" + v7:                            0, // two underscores
		"ord-" + v7:                            0,
		v7 + "_x":                              0,
		"x/" + v7:                              0, // the day stands in the ID, not in the step
		"{" + v7 + "}":                         0,
		"urn:uuid:" + v7:                       0,
		strings.ReplaceAll(v7, "-", ""):        0,
		strings.ReplaceAll(v7, "-", "x"):       0,
		"01997a3c-5e00-7abc-cdef-0123456789ab": 0, // another variant
		"01997a3c-5e00-8abc-8def-0123456789ab": 0, // UUIDv8
		"9b2f4c1e-7d3a-4e5f-8a6b-0c1d2e3f4a5b": 0, // UUIDv4
		"01K5X3RQG0ZZZZZZZZZZZZZZZZ":           0, // ULID
	} {
		if got, err := keyderive.Day(id); err != nil || got != want {
			t.Errorf("Day(%q) = %d, %v; want %d", id, got, err, want)
		}
	}
	for _, id := range []string{dayID(math.MaxUint16 + 1), "ffffffff-ffff-7abc-8def-0123456789ab"} {
		if _, err := keyderive.Day(id); !errors.Is(err, keyderive.ErrInvalid) {
			t.Errorf("Day(%q): %v, want ErrInvalid", id, err)
		}
	}
}

// dayID returns a UUIDv7 of the first millisecond of day.
func dayID(day int64) string {
	ms := day * 86400 * 1000
	return fmt.Sprintf("%08x-%04x-7000-8000-000000000000", ms>>16, ms&0xffff)
}

// R30: the ID comes from stored facts, so every process and every try makes it.
func TestCommandID(t *testing.T) {
	noon := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	id := commandID(t, noon, "refund", "ord_1")
	if again := commandID(t, noon.In(time.FixedZone("", -11*3600)).Add(11*time.Hour), "refund", "ord_1"); again != id {
		t.Errorf("another hour of the same UTC day gave %q, want %q", again, id)
	}
	u, err := uuid.Parse(id)
	if err != nil || u.Version() != 7 || u.Variant() != uuid.RFC4122 {
		t.Errorf("%q is no UUIDv7", id)
	}
	if day, err := keyderive.Day(id); err != nil || int64(day) != noon.Unix()/86400 {
		t.Errorf("Day = %d, %v; want %d", day, err, noon.Unix()/86400)
	}
	if strings.Contains(id, "ord") {
		t.Errorf("%q shows its parts", id)
	}
	ids := []string{id,
		commandID(t, noon.AddDate(0, 0, 1), "refund", "ord_1"),
		commandID(t, noon, "ord_1", "refund"),
		commandID(t, noon, "refundord_1"),
		commandID(t, noon, "refund", "ord_1", "x"),
		commandID(t, noon, "refun", "dord_1"),
	}
	distinct(t, ids)
}

func commandID(t *testing.T, at time.Time, parts ...string) string {
	t.Helper()
	id, err := keyderive.CommandID(at, parts...)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func distinct(t *testing.T, ids []string) {
	t.Helper()
	if n := len(slices.Compact(slices.Sorted(slices.Values(ids)))); n != len(ids) {
		t.Errorf("%d of %d IDs are distinct: %q", n, len(ids), ids)
	}
}

// R24: consumer, event and effect version make the ID; an event's ID is never
// one that CommandID makes of the same words.
func TestEvent(t *testing.T) {
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	e := keyderive.Event{Consumer: "billing-refunds", ID: "evt_1", OccurredAt: at}
	id := eventID(t, e)
	redelivered := e
	redelivered.Version, redelivered.OccurredAt = 1, at.Add(time.Hour)
	if got := eventID(t, redelivered); got != id {
		t.Errorf("the same event gave %q, want %q", got, id)
	}
	ids := []string{id,
		eventID(t, keyderive.Event{Consumer: "mailer", ID: "evt_1", OccurredAt: at}),
		eventID(t, keyderive.Event{Consumer: "billing-refunds", ID: "evt_2", OccurredAt: at}),
		eventID(t, keyderive.Event{Consumer: "billing-refunds", ID: "evt_1", Version: 2, OccurredAt: at}),
		eventID(t, keyderive.Event{Consumer: "billing-refundsevt", ID: "_1", OccurredAt: at}),
		eventID(t, keyderive.Event{Consumer: "billing-refunds", ID: "evt_1"}),
		eventID(t, keyderive.Event{Consumer: "billing-refunds", ID: "evt_1", Version: 2}),
		commandID(t, at, "billing-refunds", "evt_1", "1"),
		commandID(t, at, "samekey event", "billing-refunds", "evt_1", "1"),
	}
	distinct(t, ids)
	if day, err := keyderive.Day(eventID(t, keyderive.Event{Consumer: "c", ID: "e"})); err != nil || day != 0 {
		t.Errorf("an event without a time has day %d, %v; want 0", day, err)
	}
}

func eventID(t *testing.T, e keyderive.Event) string {
	t.Helper()
	id, err := e.CommandID()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestBadCommandIDs(t *testing.T) {
	at := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	early, late := time.Date(1969, 12, 31, 23, 0, 0, 0, time.UTC), time.Date(2149, 6, 7, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		make func() (string, error)
		says string
	}{
		"no parts":           {func() (string, error) { return keyderive.CommandID(at) }, "at least one part"},
		"empty part":         {func() (string, error) { return keyderive.CommandID(at, "refund", "") }, "none that is blank"},
		"blank part":         {func() (string, error) { return keyderive.CommandID(at, " ") }, "none that is blank"},
		"no time":            {func() (string, error) { return keyderive.CommandID(time.Time{}, "a") }, "the stored time"},
		"before 1970":        {func() (string, error) { return keyderive.CommandID(early, "a") }, "1970-01-02"},
		"day 0":              {func() (string, error) { return keyderive.CommandID(time.Unix(0, 0), "a") }, "1970-01-02"},
		"too late":           {func() (string, error) { return keyderive.CommandID(late, "a") }, "2149-06-06"},
		"event, no consumer": {keyderive.Event{ID: "e", OccurredAt: at}.CommandID, "Consumer and ID"},
		"event, no id":       {keyderive.Event{Consumer: "c", OccurredAt: at}.CommandID, "Consumer and ID"},
		"event, bad version": {keyderive.Event{Consumer: "c", ID: "e", Version: -1}.CommandID, "Event.Version counts from 1"},
		"event, too late":    {keyderive.Event{Consumer: "c", ID: "e", OccurredAt: late}.CommandID, "Event.OccurredAt needs"},
		"step without name":  {func() (string, error) { return keyderive.Step("a", "") }, "a step needs a name"},
		"step, blank":        {func() (string, error) { return keyderive.Step("a", " ") }, "a step needs a name"},
		"step with slash":    {func() (string, error) { return keyderive.Step("a", "b/c") }, "a step needs a name"},
		"step of a step":     {func() (string, error) { return keyderive.Step("a/b", "c") }, "a step has no steps"},
		"step of nothing":    {func() (string, error) { return keyderive.Step("", "c") }, "may not be empty or blank"},
		"step, too long":     {func() (string, error) { return keyderive.Step(strings.Repeat("x", 254), "c") }, "this one has 256"},
		"step, control":      {func() (string, error) { return keyderive.Step("a", "b\n") }, "without control characters"},
	} {
		if id, err := c.make(); !errors.Is(err, keyderive.ErrInvalid) || id != "" || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %q, %v; want no ID and ErrInvalid with %q", name, id, err, c.says)
		}
	}
}

func TestStep(t *testing.T) {
	got, err := keyderive.Step("ord_1", "seller-7")
	if err != nil || got != "ord_1/seller-7" || keyderive.CheckID(got) != nil {
		t.Errorf("Step = %q, %v", got, err)
	}
}

// White space around an ID would make a second command of it: it is refused, and a
// record that a ledger holds under such an ID still has its key.
func TestWhiteSpaceAroundAnID(t *testing.T) {
	for _, id := range []string{" ord_1", "ord_1 ", "ord_1\u00a0", "\u2003ord_1", "\ufefford_1", "ord_1 /line", "ord_1/ line", "ord_1/line\u200b"} {
		in := keyderive.Input{Provider: "stripe", Account: "acct_1/live", Operation: "refund.create", CommandID: id}
		if _, err := keyderive.Derive(in); !errors.Is(err, keyderive.ErrInvalid) || !strings.Contains(err.Error(), "white space") {
			t.Errorf("%q: %v", id, err)
		}
		if key, err := (keyderive.Secret{}).Rederive(in, keyderive.ScopeHash("")); err != nil || key.IsZero() {
			t.Errorf("%q, stored: %v", id, err)
		}
	}
	for _, id := range []string{"ord 1", "ord_1/line 2", "Ord_1"} {
		if err := keyderive.CheckID(id); err != nil {
			t.Errorf("%q: %v", id, err)
		}
	}
}
