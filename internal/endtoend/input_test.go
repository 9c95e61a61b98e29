package endtoend

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/paypal"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/memory"
	"github.com/seed-6b5e302b/samekey/recordstore/sqlite"
)

// badCall is a call that must end before ledger and wire.
type badCall struct {
	why  string
	call func(b *bench) outbound.Call
	says string // a part of the text that tells what to do
}

func badID(why, id, says string) badCall {
	return badCall{why, func(b *bench) outbound.Call {
		if b.provider == "stripe" {
			return b.refund(id)
		}
		return payout(id)
	}, says}
}

func badCalls(t *testing.T) []badCall {
	future, err := keyderive.CommandID(time.Now().Add(72*time.Hour), "refund", "7")
	if err != nil {
		t.Fatal(err)
	}
	return []badCall{
		badID("empty ID", "", "empty or blank"),
		badID("blank ID", " \t ", "empty or blank"),
		badID("ID of 256 bytes", strings.Repeat("x", 256), "255 bytes"),
		badID("control character", "refund\x007", "control characters"),
		badID("line break", "refund\n7", "control characters"),
		badID("slash", "refund/7", "slash"),
		badID("day in the future", future, "make it from the time of the intent"),
		{"oversized body", func(b *bench) outbound.Call {
			call := badID("", "big", "").call(b)
			if b.provider == "stripe" {
				call.Message.Body = []byte("charge=ch_1&metadata[note]=" + strings.Repeat("x", 5<<20))
			} else {
				call.Message.Body = []byte(`{"note":"` + strings.Repeat("x", 5<<20) + `"}`)
			}
			return call
		}, "Options.MaxBody"},
	}
}

// Bad input gets a clear error on one line, stores nothing and sends nothing.
func TestBadInput(t *testing.T) {
	for _, provider := range []string{"stripe", "paypal"} {
		for _, d := range []door{native, sdk} {
			for _, bad := range badCalls(t) {
				t.Run(provider+"/"+string(d)+"/"+bad.why, func(t *testing.T) {
					t.Parallel()
					b := newBench(t, provider, d, false, nil)
					_, err := b.call(t.Context(), bad.call(b))
					b.nothingHappened(err, outbound.ErrInvalid, bad.says)
				})
			}
		}
	}
	t.Run("unknown operation", func(t *testing.T) {
		b := newBench(t, "stripe", native, false, nil)
		call := b.refund("op")
		call.Operation = "refund.imagine"
		_, err := b.call(t.Context(), call)
		b.nothingHappened(err, outbound.ErrInvalid, "no operation")
	})
	t.Run("unknown route", func(t *testing.T) {
		b := newBench(t, "stripe", sdk, false, nil)
		call := b.refund("route")
		call.Message.Target = "/v1/imagined/secret-segment"
		_, err := b.call(t.Context(), call)
		b.nothingHappened(err, outbound.ErrInvalid, "register it with adapter.With")
		if strings.Contains(err.Error(), "secret-segment") {
			t.Errorf("%q shows the path", err)
		}
	})
	t.Run("money without a command", func(t *testing.T) {
		b := newBench(t, "stripe", sdk, false, nil)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.fake.URL+"/v1/refunds", strings.NewReader("charge="+b.charge))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := b.caller.http.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if n := len(b.fake.Requests("")); resp.StatusCode != http.StatusBadRequest || n != 0 || rowsOf(t, b.path) != 0 {
			t.Errorf("answered with %d after %d requests", resp.StatusCode, n)
		}
	})
}

// nothingHappened holds that an error says what to do on one line, and that
// neither ledger nor provider know of the call.
func (b *bench) nothingHappened(err error, code outbound.Code, says string) {
	b.Helper()
	e := wantError(b.T, err, code, outbound.EffectUnknown)
	if e.Sent || !strings.Contains(err.Error(), says) || strings.ContainsAny(err.Error(), "\n\x00") {
		b.Errorf("Sent %v; %q does not say %q on one line", e.Sent, err, says)
	}
	if n := rowsOf(b.T, b.path); n != 0 {
		b.Errorf("%d records are stored", n)
	}
	for _, r := range b.fake.Requests("") {
		if r.Operation != "token" {
			b.Errorf("%s was sent", r.Operation)
		}
	}
}

// Amounts: a PayPal refund states one, and no amount is a float.
func TestBadAmounts(t *testing.T) {
	money := func(value any) map[string]any {
		return map[string]any{"amount": map[string]any{"currency_code": "EUR", "value": value}}
	}
	for why, bad := range map[string]badCall{
		"no amount": {says: "amount", call: func(*bench) outbound.Call {
			return paypal.CaptureRefund(cmd("a"), "CAP1", paypal.RefundRequest{})
		}},
		"empty body": {says: "amount", call: func(*bench) outbound.Call {
			call := paypal.CaptureRefund(cmd("a"), "CAP1", paypal.RefundRequest{})
			call.Err, call.Message.Body = nil, nil
			return call
		}},
		"float": {says: "never floats", call: func(*bench) outbound.Call {
			return paypal.AuthorizationCapture(cmd("a"), "AUTH1", money(12.5))
		}},
		"float in a struct": {says: "never floats", call: func(*bench) outbound.Call {
			return paypal.OrderCreate(cmd("a"), struct{ Amount float64 }{12})
		}},
		"number with a fraction": {says: "never floats", call: func(*bench) outbound.Call {
			return paypal.AuthorizationCapture(cmd("a"), "AUTH1", rawJSON(`{"amount":{"value":12.50}}`))
		}},
		"float at Stripe's API v2": {says: "never floats", call: func(*bench) outbound.Call {
			return stripe.V2AccountCreate(cmd("a"), map[string]any{"amount": 12.5})
		}},
	} {
		for _, d := range []door{native, sdk} {
			if d == sdk && why != "empty body" {
				continue // an SDK's request is no Call that a constructor refused
			}
			t.Run(why+"/"+string(d), func(t *testing.T) {
				t.Parallel()
				provider := "paypal"
				if strings.Contains(why, "Stripe") {
					provider = "stripe"
				}
				b := newBench(t, provider, d, false, nil)
				_, err := b.call(t.Context(), bad.call(b))
				b.nothingHappened(err, outbound.ErrInvalid, bad.says)
			})
		}
	}
}

type rawJSON string

func (r rawJSON) MarshalJSON() ([]byte, error) { return []byte(r), nil }

// What is wrong with the settings is found by New, in words that help.
func TestBadSettings(t *testing.T) {
	b := newBench(t, "stripe", native, false, nil)
	good := b.adapter()
	var nowhere *sqlite.Store
	for why, tt := range map[string]struct {
		adapter outbound.Adapter
		ledger  recordstore.Store
		opts    outbound.Options
		says    string
	}{
		"nil adapter":           {nil, memory.New(nil), outbound.Options{}, "needs an adapter"},
		"nil store":             {good, nil, outbound.Options{}, "needs a ledger"},
		"nil *sqlite.Store":     {good, nowhere, outbound.Options{}, "needs a ledger"},
		"no decision":           {good, b.store, outbound.Options{}, "Options.Bodies"},
		"short seal key":        {good, b.store, outbound.Options{Bodies: outbound.Seal(outbound.SealKey{ID: "a", Bytes: []byte("short")})}, "32 bytes"},
		"no account at Stripe":  {stripe.New(stripe.Config{SecretKey: "sk_live_x"}), memory.New(nil), outbound.Options{}, "Config.Account"},
		"no account at PayPal":  {paypal.New(paypal.Config{ClientID: "id", Secret: "s"}), memory.New(nil), outbound.Options{}, "Config.Account"},
		"an e-mail for account": {paypal.New(paypal.Config{Account: "me@example.com", ClientID: "id", Secret: "s"}), memory.New(nil), outbound.Options{}, "merchant id"},
		"a key of another mode": {stripe.New(stripe.Config{Account: "acct_1", SecretKey: "sk_test_hidden"}), memory.New(nil), outbound.Options{}, "Config.Test"},
		"a lease too short":     {good, memory.New(nil), outbound.Options{Lease: time.Second, Retry: outbound.Retry{AttemptTimeout: time.Minute}}, "Options.Lease"},
	} {
		t.Run(why, func(t *testing.T) {
			_, err := outbound.New(tt.adapter, tt.ledger, &tt.opts)
			e := wantError(t, err, outbound.ErrInvalid, outbound.EffectUnknown)
			if !strings.Contains(e.Error(), tt.says) || strings.Contains(e.Error(), "\n") || strings.Contains(e.Error(), "sk_test_hidden") {
				t.Errorf("%q does not say %q on one line", e, tt.says)
			}
		})
	}
}

func TestMissingAccountOfACall(t *testing.T) {
	b := newBench(t, "stripe", native, false, nil)
	for why, account := range map[string]string{"blank": " ", "control character": "acct\x00", "oversized": strings.Repeat("a", 256)} {
		call := b.refund("account")
		call.Account = account
		_, err := b.client.Do(t.Context(), call)
		if err == nil {
			t.Errorf("%s: the account %q is taken", why, account)
			continue
		}
		b.nothingHappened(err, outbound.ErrInvalid, "ccount")
	}
}

// Another secret than the ledger's is refused before the first claim.
func TestAnotherSecret(t *testing.T) {
	b := newBench(t, "stripe", native, false, nil)
	b.must(b.refund("with the ledger's"))
	secret, err := keyderive.NewSecret([]byte("another secret of at least 32 bytes"))
	if err != nil {
		t.Fatal(err)
	}
	other := b.restart(func(o *outbound.Options) { o.Secret = secret })
	e := other.fails(b.refund("with another"), outbound.ErrInvalid, outbound.EffectUnknown)
	if !strings.Contains(e.Error(), "Options.Secret") || strings.Contains(e.Error(), "another secret of") || e.Sent {
		t.Errorf("%q does not say what to do", e)
	}
	b.count("refund.create", 1, 1)
	if n := rowsOf(t, b.path); n != 1 {
		t.Errorf("%d records, want 1", n)
	}
}

// A ledger that cannot be reached means that nothing is sent.
func TestUnreachableStore(t *testing.T) {
	unreachable := func(t *testing.T, ledger recordstore.Store) {
		b := newBench(t, "stripe", native, false, nil)
		client := newClient(t, b.adapter(), ledger, &outbound.Options{Bodies: sealed(), ClaimTimeout: 500 * time.Millisecond})
		_, err := client.Do(t.Context(), b.refund("unreached"))
		e := wantError(t, err, outbound.ErrStore, outbound.EffectUnknown)
		if d, again := outbound.RetryAfter(err); !again || d <= 0 || e.Sent || !strings.Contains(e.Error(), "call again") || strings.Contains(e.Error(), "\n") {
			t.Errorf("%q, Sent %v", e, e.Sent)
		}
		b.count("", 0, 0)
	}
	t.Run("postgres never reached", func(t *testing.T) {
		store, _, g := postgresLedger(t, nil)
		g.set(true)
		unreachable(t, store)
	})
	t.Run("postgres without a schema", func(t *testing.T) {
		store, pool, _ := postgresLedger(t, nil)
		if _, err := pool.Exec(t.Context(), "DROP SCHEMA samekey CASCADE"); err != nil {
			t.Fatal(err)
		}
		unreachable(t, store)
	})
	t.Run("sqlite closed", func(t *testing.T) {
		store, err := sqlite.Open(filepath.Join(t.TempDir(), "ledger.db"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		unreachable(t, store)
	})
	t.Run("sqlite without a folder", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "missing", "ledger.db")
		if _, err := sqlite.Open(path, nil); err == nil || !strings.Contains(err.Error(), "create it first") {
			t.Errorf("got %v", err)
		}
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("the file is there: %v", err)
		}
	})
	t.Run("the caller's context has ended", func(t *testing.T) {
		b := newBench(t, "stripe", native, false, nil)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := b.client.Do(ctx, b.refund("ended")); err == nil {
			t.Error("a call whose context has ended succeeds")
		}
		b.count("", 0, 0)
	})
}
