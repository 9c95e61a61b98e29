package outbound_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/memory"
)

func sealKey(id string) outbound.SealKey {
	return outbound.SealKey{ID: id, Bytes: bytes.Repeat([]byte(id[:1]), 32)}
}

// R27: what the ledger stores cannot be read, moved or altered.
func TestSealedFieldsAreBoundToTheirPlace(t *testing.T) {
	s := outbound.Seal(sealKey("new"), sealKey("old"))
	sealed, err := s.Encrypt([]byte("amount=100"), []byte("place"))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(sealed, []byte("amount")) {
		t.Error("the sealed bytes show the body")
	}
	if got, err := s.Decrypt(sealed, []byte("place")); err != nil || string(got) != "amount=100" {
		t.Errorf("Decrypt = %q, %v", got, err)
	}
	if _, err := s.Decrypt(sealed, []byte("elsewhere")); err == nil {
		t.Error("a sealed field opened in another place")
	}
	for i := range sealed {
		bad := bytes.Clone(sealed)
		bad[i] ^= 1
		if _, err := s.Decrypt(bad, []byte("place")); err == nil {
			t.Errorf("opened with byte %d altered", i)
		}
		if _, err := s.Decrypt(sealed[:i], []byte("place")); err == nil {
			t.Errorf("opened when cut at byte %d", i)
		}
	}
	if again, _ := s.Encrypt([]byte("amount=100"), []byte("place")); bytes.Equal(again, sealed) {
		t.Error("two seals of one body are equal: a nonce was used twice")
	}
}

// Old seal keys open old bodies; a missing one degrades and is no failure.
func TestSealKeysRotate(t *testing.T) {
	ledger := memory.New(nil)
	do := func(bodies outbound.Sealer) (*outbound.Reply, error) {
		return client(t, &scripted{answer: always(paid)}, ledger, &outbound.Options{Bodies: bodies}).Do(t.Context(), pay("c1", "pay.stored"))
	}
	if _, err := do(outbound.Seal(sealKey("old"))); err != nil {
		t.Fatal(err)
	}
	r, err := do(outbound.Seal(sealKey("new"), sealKey("old")))
	wantReply(t, r, err, outbound.OriginalReplay, outbound.FromLedger)
	if string(r.Body) != string(paid.Answer.Body) {
		t.Errorf("body %q", r.Body)
	}
	r, err = do(outbound.Seal(sealKey("new"))) // the look-up is not scripted, and fails
	wantReply(t, r, err, "", outbound.FromLedger)
	if r.ExternalRef != "re_1" || r.StatusCode != 0 || r.Body != nil {
		t.Errorf("got %+v, want the external reference and no answer", r)
	}
}

// A replay without its body is looked up, and says so.
func TestNoBodiesMeansLookup(t *testing.T) {
	a := &scripted{answer: always(paid), find: func(l *outbound.Lookup) (outbound.Finding, error) {
		if l.ExternalRef != "re_1" {
			return outbound.Finding{}, errors.New("the look-up lacks the external reference")
		}
		return outbound.Finding{Effect: outbound.EffectApplied, ExternalRef: "re_1", Answer: &outbound.Answer{Status: 200, Body: []byte("now")}}, nil
	}}
	c := client(t, a, memory.New(nil), &outbound.Options{Bodies: outbound.NoBodies()})
	if _, err := c.Do(t.Context(), pay("c1", "pay.stored")); err != nil {
		t.Fatal(err)
	}
	r, err := c.Do(t.Context(), pay("c1", "pay.stored"))
	wantReply(t, r, err, outbound.LatestStatus, outbound.FromProvider)
	if string(r.Body) != "now" || r.AsOf.IsZero() || len(a.deliveries()) != 1 {
		t.Errorf("got %+v after %d deliveries", r, len(a.deliveries()))
	}
}

// A request that fills a sensitive field is stored in no form, nor is its answer.
func TestSensitiveRequestsAreNeverStored(t *testing.T) {
	ledger := &keeping{Store: memory.New(nil)}
	c := client(t, &scripted{answer: always(paid), sensitive: true}, ledger, nil)
	if _, err := c.Do(t.Context(), pay("c1", "pay.stored")); err != nil {
		t.Fatal(err)
	}
	if dump := fmt.Sprintf("%+v", ledger.Last(t)); strings.Contains(dump, "Request:[") && !strings.Contains(dump, "Request:[]") || ledger.Last(t).ResponseBody != nil {
		t.Errorf("the record holds %s", dump)
	}
	if ledger.request != nil {
		t.Errorf("the claim carried %q", ledger.request)
	}
}

func TestSealKeysPrintNoBytes(t *testing.T) {
	k := outbound.SealKey{ID: "2026", Bytes: []byte(strings.Repeat("s3cr3t!!", 4))}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		if got := fmt.Sprintf(verb, k); strings.Contains(got, "s3cr3t") || strings.Contains(got, "733363") {
			t.Errorf("%s prints %s", verb, got)
		}
	}
	type config struct{ Key outbound.SealKey }
	text, err := json.Marshal(config{k})
	if err != nil {
		t.Fatal(err)
	}
	var logged bytes.Buffer
	for _, h := range []slog.Handler{slog.NewJSONHandler(&logged, nil), slog.NewTextHandler(&logged, nil)} {
		slog.New(h).Info("start", "key", k, "pointer", &k, "config", config{k}, "sealer", outbound.Seal(k))
	}
	for _, shown := range []string{string(text), logged.String(), fmt.Sprintf("%+v", outbound.Options{Bodies: outbound.Seal(k)})} {
		if strings.Contains(shown, "s3cr3t") || strings.Contains(shown, base64.StdEncoding.EncodeToString(k.Bytes)) {
			t.Errorf("the key's bytes stand in %s", shown)
		}
	}
	if !strings.Contains(string(text), "2026") {
		t.Errorf("%s does not name the key", text)
	}
}

func TestBadSealers(t *testing.T) {
	durable := durableMemory{memory.New(nil)}
	for why, tt := range map[string]struct {
		ledger recordstore.Store
		bodies outbound.Sealer
		want   string
	}{
		"no decision on a durable ledger": {durable, nil, "decision about bodies"},
		"a short key":                     {memory.New(nil), outbound.Seal(outbound.SealKey{ID: "a", Bytes: []byte("short")}), "32 bytes"},
		"a key without ID":                {memory.New(nil), outbound.Seal(outbound.SealKey{Bytes: make([]byte, 32)}), "ID"},
		"one ID twice":                    {memory.New(nil), outbound.Seal(sealKey("a"), sealKey("a")), "two SealKeys"},
		"a sealer that cannot open":       {memory.New(nil), oneWay{}, "does not open"},
	} {
		t.Run(why, func(t *testing.T) {
			_, err := outbound.New(&scripted{}, tt.ledger, &outbound.Options{Bodies: tt.bodies})
			wantError(t, err, outbound.ErrInvalid, outbound.EffectUnknown, false)
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%q does not say %q", err, tt.want)
			}
		})
	}
}

type durableMemory struct{ *memory.Store }

func (durableMemory) Durable() bool { return true }

type oneWay struct{}

func (oneWay) Encrypt(b, _ []byte) ([]byte, error) { return append([]byte("x"), b...), nil }
func (oneWay) Decrypt(b, _ []byte) ([]byte, error) { return b, nil }

// R14, R27: a provider that repeats the raw key in its answer (a payout's
// sender_batch_id) does not bring it into the ledger, sealed or plain; the replay
// is whole all the same.
func TestRawKeyInAnAnswerIsNotStored(t *testing.T) {
	ledger := &keeping{Store: memory.New(nil)}
	var raw string
	c := client(t, &scripted{answer: func(_ context.Context, _ int, d *outbound.Delivery) []outbound.Verdict {
		raw = d.Key.Raw()
		v := paid
		v.Answer = &outbound.Answer{Status: 200, Body: []byte(`{"batch":"` + raw + `"}`)}
		return []outbound.Verdict{v}
	}}, ledger, &outbound.Options{Bodies: outbound.PlainBodies()})
	first, err := c.Do(t.Context(), pay("c1", "pay.stored"))
	wantReply(t, first, err, outbound.NewExecution, outbound.FromProvider)
	stored := ledger.Last(t).ResponseBody
	if len(stored) == 0 || bytes.Contains(stored, []byte(raw)) {
		t.Errorf("the ledger holds %q", stored)
	}
	again, err := c.Do(t.Context(), pay("c1", "pay.stored"))
	wantReply(t, again, err, outbound.OriginalReplay, outbound.FromLedger)
	if string(again.Body) != string(first.Body) {
		t.Errorf("replayed %q, want %q", again.Body, first.Body)
	}
}
