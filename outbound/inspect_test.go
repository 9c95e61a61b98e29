package outbound_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/memory"
)

// A tool that holds the seal key reads what a call left in the ledger; one with
// another key is told which is missing, and nothing else.
func TestOpenRecord(t *testing.T) {
	key := outbound.SealKey{ID: "2026", Bytes: bytes.Repeat([]byte{7}, 32)}
	store := memory.New(nil)
	c, err := outbound.New(&scripted{answer: always(paid)}, store, &outbound.Options{Bodies: outbound.Seal(key)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Do(t.Context(), pay("p1", "pay.stored")); err != nil {
		t.Fatal(err)
	}
	rec := onlyRecord(t, store)
	if id, ok := outbound.SealKeyID(rec.ResponseBody); !ok || id != "2026" {
		t.Errorf("the body was sealed with %q, %v", id, ok)
	}
	opened, err := outbound.OpenRecord(rec, outbound.Seal(key))
	if err != nil || !bytes.Equal(opened.Body, paid.Answer.Body) || opened.Request != nil {
		t.Errorf("opened %q, request %v, %v", opened.Body, opened.Request, err)
	}
	_, err = outbound.OpenRecord(rec, outbound.Seal(outbound.SealKey{ID: "2027", Bytes: key.Bytes}))
	if err == nil || !strings.Contains(err.Error(), `"2026"`) || strings.Contains(err.Error(), string(paid.Answer.Body)) {
		t.Errorf("with another key: %v", err)
	}
	for _, other := range [][]byte{nil, {1}, {1, 4}, append([]byte{1}, "{\"plain\": true, \"long enough\": 1234567890123}"...), {2, 1, 'x'}} {
		if id, ok := outbound.SealKeyID(other); ok {
			t.Errorf("%q was sealed with key %q", other, id)
		}
	}
}

// A readable request begins as the ID of a key does, and was sealed by none.
func TestPlainBodiesHaveNoSealKey(t *testing.T) {
	store := memory.New(nil)
	c, err := outbound.New(&scripted{answer: always(outbound.Verdict{})}, store, &outbound.Options{Bodies: outbound.PlainBodies(), Retry: outbound.Retry{Attempts: 1}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Do(t.Context(), pay("p1", "pay.stored")); !errors.Is(err, outbound.ErrUncertain) {
		t.Fatal(err)
	}
	rec := onlyRecord(t, store)
	if id, ok := outbound.SealKeyID(rec.Request); ok || len(rec.Request) == 0 {
		t.Errorf("%d plain bytes were sealed with key %q", len(rec.Request), id)
	}
}

// locked is a ledger whose pins cannot be written while the caller holds its lock.
type locked struct{ recordstore.Store }

func (locked) Attach(ctx context.Context, _ recordstore.Pins) error {
	<-ctx.Done()
	return ctx.Err()
}

// R16: where the first use of a ledger is inside a transaction that locks it, the
// error says how to begin.
func TestFirstUseInsideATransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := outbound.New(&scripted{answer: always(paid)}, locked{memory.New(nil)}, &outbound.Options{Bodies: outbound.PlainBodies()})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Do(t.Context(), pay("p1", "pay.stored"))
		if !errors.Is(err, outbound.ErrStore) || !strings.Contains(err.Error(), "call Client.Status once when the program starts") {
			t.Errorf("the error is %v", err)
		}
	})
}

func onlyRecord(t *testing.T, s *memory.Store) recordstore.Record {
	t.Helper()
	page, err := s.List(context.Background(), recordstore.ListQuery{Limit: 2})
	if err != nil || len(page.Records) != 1 {
		t.Fatalf("%d records, %v", len(page.Records), err)
	}
	rec, _, err := s.Get(context.Background(), page.Records[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// A verdict that is made without a client is as strict as Client.Resolve.
func TestVerdict(t *testing.T) {
	whole := outbound.Resolution{Version: 3, Effect: outbound.EffectNone, SendAgain: true, Reason: "not at the dashboard", Operator: "ada"}
	v, err := whole.Verdict(recordstore.ID{Day: 1})
	if err != nil || v.Check() != nil || v.ID.Day != 1 || v.Version != 3 || v.State != recordstore.NotExecuted || v.DueIn != time.Minute || v.Entry.Actor != "ada" {
		t.Errorf("the verdict is %+v, %v", v, err)
	}
	for want, spoil := range map[string]func(*outbound.Resolution){
		"never sent again": func(r *outbound.Resolution) { r.Effect = outbound.EffectApplied },
		"is the verdict":   func(r *outbound.Resolution) { r.Effect = outbound.EffectUnknown },
		"Reason":           func(r *outbound.Resolution) { r.Reason = "two\nlines" },
		"Operator":         func(r *outbound.Resolution) { r.Operator = "" },
	} {
		r := whole
		spoil(&r)
		if _, err := r.Verdict(recordstore.ID{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
	}
}
