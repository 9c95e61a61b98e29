package reprocess_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
	fakepaypal "github.com/seed-6b5e302b/samekey/internal/fakeprovider/paypal"
	fakestripe "github.com/seed-6b5e302b/samekey/internal/fakeprovider/stripe"
	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/dropin"
	"github.com/seed-6b5e302b/samekey/providers/paypal"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/memory"
	"github.com/seed-6b5e302b/samekey/recordstore/sqlite"
	"github.com/seed-6b5e302b/samekey/reprocess"
)

const (
	shop     = "acct_shop"
	merchant = "MERCHANT12345"
)

// serve makes a fake, and a server of it for as long as the test runs.
func serve(t *testing.T, dialect func() fakeprovider.Dialect) (*fakeprovider.Fake, string) {
	t.Helper()
	fake := fakeprovider.New(dialect, nil)
	server, err := fakeprovider.Listen(fake)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	return fake, server.URL
}

func client(t *testing.T, a outbound.Adapter, s recordstore.Store, opts outbound.Options) *outbound.Client {
	t.Helper()
	opts.Bodies, opts.Retry = outbound.PlainBodies(), outbound.Retry{Attempts: 1}
	c, err := outbound.New(a, s, &opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.WithoutCancel(t.Context())) })
	return c
}

func command(t *testing.T, e keyderive.Event) outbound.Command {
	t.Helper()
	cmd, err := outbound.EventCommand(e, "tenant-1")
	if err != nil {
		t.Fatal(err)
	}
	return cmd
}

func stores(t *testing.T) map[string]recordstore.Store {
	t.Helper()
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "ledger.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return map[string]recordstore.Store{"sqlite": s, "memory": memory.New(nil)}
}

// R24, R30: at the real door of each provider and on each ledger, one event is one
// effect for each consumer, however often it is delivered.
func TestEventsAtStripe(t *testing.T) {
	for name, store := range stores(t) {
		t.Run(name, func(t *testing.T) {
			fake, base := serve(t, fakestripe.New(fakestripe.Config{Account: shop}))
			charge, err := fake.Seed(fakestripe.Charge{Amount: 1000, Currency: "eur"})
			if err != nil {
				t.Fatal(err)
			}
			c := client(t, stripe.New(stripe.Config{Account: shop, Test: true, SecretKey: "sk_test_1", BaseURL: base}), store, outbound.Options{})
			form := url.Values{"charge": {charge}, "amount": {"10"}}
			for _, consumer := range []string{"refunds", "goodwill", "refunds", "goodwill"} {
				cmd := command(t, keyderive.Event{Consumer: consumer, ID: "evt_1"})
				if _, err := c.Do(t.Context(), stripe.RefundCreate(cmd, form)); err != nil {
					t.Fatal(err)
				}
			}
			if n := fake.Effects("refund.create"); n != 2 {
				t.Errorf("%d effects, want 2", n)
			}

			// Under an SDK: the same command from the context is the same effect.
			rt, err := dropin.New(c, nil)
			if err != nil {
				t.Fatal(err)
			}
			ctx := outbound.WithCommand(t.Context(), command(t, keyderive.Event{Consumer: "refunds", ID: "evt_1"}))
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/v1/refunds", strings.NewReader(form.Encode()))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Header.Set("Authorization", "Bearer sk_test_1")
			resp, err := (&http.Client{Transport: rt}).Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if n := fake.Effects("refund.create"); resp.StatusCode != http.StatusOK || n != 2 {
				t.Errorf("through the SDK: %s, %d effects, want 200 and 2", resp.Status, n)
			}
		})
	}
}

// R24: as above, at PayPal, where batches of JSON targets are run as well.
func TestEventsAtPayPal(t *testing.T) {
	for name, store := range stores(t) {
		t.Run(name, func(t *testing.T) {
			fake, base := serve(t, fakepaypal.New(fakepaypal.Config{MerchantID: merchant}))
			capture, err := fake.Seed(fakepaypal.CompletedCapture{Value: "100.00", Currency: "EUR"})
			if err != nil {
				t.Fatal(err)
			}
			adapter := paypal.New(paypal.Config{Account: merchant, ClientID: "app", Secret: "s", Sandbox: true, BaseURL: base})
			c := client(t, adapter, store, outbound.Options{})
			refund := paypal.RefundRequest{Amount: paypal.Money{Value: "1.00", Currency: "EUR"}}
			for _, consumer := range []string{"refunds", "goodwill", "refunds"} {
				cmd := command(t, keyderive.Event{Consumer: consumer, ID: "WH-1"})
				if _, err := c.Do(t.Context(), paypal.CaptureRefund(cmd, capture, refund)); err != nil {
					t.Fatal(err)
				}
			}
			if n := fake.Effects("capture.refund"); n != 2 {
				t.Fatalf("%d effects, want 2", n)
			}
			path := write(t, reprocess.Manifest{Consumer: "refunds", EffectVersion: 2, Provider: "paypal", TargetCount: 1, ExpectedCalls: 1, ShareDone: 1, ExternalWrites: true},
				fmt.Sprintf(`{"event":"WH-1","scope":"tenant-1","operation":"capture.refund","ids":[%q],"json":{"amount":{"value":"1.00","currency_code":"EUR"}}}`, capture))
			b, runner := load(t, path, adapter, store)
			shadow, err := runner.Shadow(t.Context(), nil)
			if err != nil || shadow.Same != 1 || shadow.Twice != 1 {
				t.Errorf("shadow of %s: %+v, %v; want the same request", b.Digest, shadow, err)
			}
			for want := range 2 {
				report, err := runner.Run(t.Context(), reprocess.RunOptions{Rate: 1000})
				if err != nil || report.Replayed != want || report.Executed != 1-want {
					t.Errorf("run %d: %+v, %v", want+1, report, err)
				}
			}
			if n := fake.Effects("capture.refund"); n != 3 {
				t.Errorf("%d effects, want 3", n)
			}
		})
	}
}

// write writes a manifest and its targets, and returns its path.
func write(t *testing.T, m reprocess.Manifest, lines ...string) string {
	t.Helper()
	m.Who, m.Reason, m.Targets = "ada", "they are wrong", "targets.jsonl"
	content, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "m.json")
	for name, text := range map[string]string{path: string(content), filepath.Join(dir, "targets.jsonl"): strings.Join(lines, "\n")} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func load(t *testing.T, path string, a outbound.Adapter, s recordstore.Store) (*reprocess.Batch, *reprocess.Runner) {
	t.Helper()
	b, err := reprocess.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := reprocess.New(b, client(t, a, s, outbound.Options{EffectVersions: reprocess.Admitted(b)}))
	if err != nil {
		t.Fatal(err)
	}
	return b, r
}

// customers are targets that make a customer each.
func customers(n int) (lines []string) {
	for i := range n {
		lines = append(lines, fmt.Sprintf(`{"event":"evt_%d","operation":"customer.create","form":{"description":"no. %d"}}`, i, i))
	}
	return lines
}

func customersManifest(n int) reprocess.Manifest {
	return reprocess.Manifest{Consumer: "welcome", EffectVersion: 1, Provider: "stripe", TargetCount: n, ExpectedCalls: n, ExternalWrites: true}
}

// failing is Stripe with an answer that is always the same.
func failing(t *testing.T, status int, body string) (outbound.Adapter, func() int) {
	t.Helper()
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	return stripe.New(stripe.Config{Account: shop, Test: true, SecretKey: "sk_test_1", BaseURL: server.URL}), func() int { return int(requests.Load()) }
}

// R25: over 10,000 targets a run needs the shadow of the same manifest and targets,
// with its sample of 100, made where the run is. The sample is the same at each time.
func TestManyTargetsNeedAShadow(t *testing.T) {
	const many = reprocess.ShadowOver + 1
	adapter, requests := failing(t, http.StatusUnauthorized, `{"error":{"type":"invalid_request_error"}}`)
	store := memory.New(nil)
	path := write(t, customersManifest(many), customers(many)...)
	b, runner := load(t, path, adapter, store)
	refused := func(r *reprocess.Runner, want string) {
		t.Helper()
		if _, err := r.Run(t.Context(), reprocess.RunOptions{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the run ended with %v, want %q", err, want)
		}
	}
	refused(runner, "need a shadow")
	first, err := runner.Shadow(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	again, err := runner.Shadow(t.Context(), nil)
	if err != nil || first.Compared != reprocess.SampleSize || fmt.Sprint(first.Sample) != fmt.Sprint(again.Sample) {
		t.Errorf("compared %d, and the second time another sample, %v", first.Compared, err)
	}
	kept, err := os.ReadFile(b.ShadowPath())
	if err != nil {
		t.Fatal(err)
	}
	replace := func(old, with string) {
		t.Helper()
		if err := os.WriteFile(b.ShadowPath(), []byte(strings.Replace(string(kept), old, with, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	replace(`"compared": 100`, `"compared": 99`)
	refused(runner, "compares 99 targets, not 100")
	replace(b.Digest, strings.Repeat("0", 64))
	refused(runner, "of other targets")
	replace(`"verdict": "new"`, `"verdict": "changed"`)
	refused(runner, "of another ledger, or of long ago")
	replace("", "")
	staging := stripe.New(stripe.Config{Account: "acct_staging", Test: true, SecretKey: "sk_test_1"})
	elsewhere, err := reprocess.New(b, client(t, staging, memory.New(nil), outbound.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	refused(elsewhere, "another secret, account or mode")
	if n := requests(); n != 0 {
		t.Fatalf("%d requests before the run", n)
	}
	replace("", "")
	report, err := runner.Run(t.Context(), reprocess.RunOptions{Rate: 1000, Parallel: 1, MaxErrors: 3})
	if err != nil || report.Stopped == "" || report.Failed != 3 || report.Skipped != many-3 || requests() != 3 {
		t.Errorf("a run of which each target fails sent %d requests: %d failed, %d skipped, stopped %q, %v", requests(), report.Failed, report.Skipped, report.Stopped, err)
	}
}

// R25: a client that does not admit the version sends nothing.
func TestRunOfAVersionThatIsNotAdmitted(t *testing.T) {
	adapter, requests := failing(t, http.StatusOK, `{}`)
	m := customersManifest(2)
	m.EffectVersion = 2
	b, err := reprocess.Load(write(t, m, customers(2)...))
	if err != nil {
		t.Fatal(err)
	}
	runner, err := reprocess.New(b, client(t, adapter, memory.New(nil), outbound.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	report, err := runner.Run(t.Context(), reprocess.RunOptions{Rate: 1000})
	if err != nil || len(report.Failures) != 2 || report.Failures[0].Code != string(outbound.ErrInvalid) || requests() != 0 {
		t.Errorf("%+v, %v and %d requests", report, err, requests())
	}
	b.Manifest.ExternalWrites = false
	if got := reprocess.Admitted(b); len(got) != 0 {
		t.Errorf("a manifest without external writes admits %v", got)
	}
}

// When its context ends a run begins no call, says so, and can be begun again.
func TestInterrupted(t *testing.T) {
	fake, base := serve(t, fakestripe.New(fakestripe.Config{Account: shop}))
	adapter := stripe.New(stripe.Config{Account: shop, Test: true, SecretKey: "sk_test_1", BaseURL: base})
	_, runner := load(t, write(t, customersManifest(20), customers(20)...), adapter, memory.New(nil))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	opts := reprocess.RunOptions{Rate: 1000, Parallel: 2, Progress: func(r reprocess.Report) {
		if r.Executed == 5 {
			cancel()
		}
	}}
	report, err := runner.Run(ctx, opts)
	if err != nil || report.Finished || !strings.Contains(report.Stopped, "interrupted") || report.Unknown != 0 || report.Executed < 5 || report.Executed > 7 {
		t.Fatalf("%+v, %v", report, err)
	}
	rest, err := runner.Run(t.Context(), reprocess.RunOptions{Rate: 1000})
	if err != nil || rest.Executed != 20-report.Executed || rest.Replayed != report.Executed || fake.Effects("customer.create") != 20 {
		t.Errorf("%+v, %v, %d effects", rest, err, fake.Effects("customer.create"))
	}
}

// What is wrong with a manifest or its targets is told on one line, with its place.
func TestLoadRefuses(t *testing.T) {
	good := customersManifest(2)
	for want, change := range map[string]func(m *reprocess.Manifest, lines []string){
		`"consumer" is missing`:                   func(m *reprocess.Manifest, _ []string) { m.Consumer = " " },
		`"effect_version" is 0`:                   func(m *reprocess.Manifest, _ []string) { m.EffectVersion = 0 },
		`"number_of_targets" is 3`:                func(m *reprocess.Manifest, _ []string) { m.TargetCount = 3 },
		`"expected_external_calls" must`:          func(m *reprocess.Manifest, _ []string) { m.ExpectedCalls = 3 },
		`"share_already_done" is a share`:         func(m *reprocess.Manifest, _ []string) { m.ShareDone = 50 },
		"line 2: it is the same effect":           func(_ *reprocess.Manifest, l []string) { l[1] = l[0] },
		"line 1: \"event\" is missing":            func(_ *reprocess.Manifest, l []string) { l[0] = `{"operation":"customer.create","form":{}}` },
		"line 2: give the call's parameters":      func(_ *reprocess.Manifest, l []string) { l[1] = `{"event":"e","operation":"customer.create"}` },
		"line 2: it is not the JSON object":       func(_ *reprocess.Manifest, l []string) { l[1] = `{"evnt":"e"}` },
		"write numbers in quotes":                 func(_ *reprocess.Manifest, l []string) { l[1] = `{"event":"e","operation":"o","form":{"amount":10}}` },
		"line 2: the key \"form\" is there twice": func(_ *reprocess.Manifest, l []string) { l[1] = strings.Replace(l[1], "{", `{"form":{},`, 1) },
		"line 2: the key \"description\" is there twice": func(_ *reprocess.Manifest, l []string) {
			l[1] = strings.Replace(l[1], `"description"`, `"description":"x","description"`, 1)
		},
		"line 1: the field \"EVENT\" is not known":   func(_ *reprocess.Manifest, l []string) { l[0] = strings.Replace(l[0], "event", "EVENT", 1) },
		"\"form\" is an object of strings":           func(_ *reprocess.Manifest, l []string) { l[1] = `{"event":"e","operation":"o","form":null}` },
		"\"json\" is neither an object nor an array": func(_ *reprocess.Manifest, l []string) { l[1] = `{"event":"e","operation":"o","json":null}` },
		"line 2: something stands behind":            func(_ *reprocess.Manifest, l []string) { l[1] += "{}" },
		"line 1: keyderive: invalid: Event.Oc": func(_ *reprocess.Manifest, l []string) {
			l[0] = `{"event":"e","occurred_at":"1950-01-01T00:00:00Z","operation":"o","form":{}}`
		},
	} {
		m, lines := good, customers(2)
		change(&m, lines)
		_, err := reprocess.Load(write(t, m, lines...))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want one line with %q", err, want)
		}
	}
	if _, err := reprocess.Load(filepath.Join(t.TempDir(), "none.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// A target that no call can be made of, and a client of another provider, are refused
// before anything is sent.
func TestUnknownOperation(t *testing.T) {
	adapter, requests := failing(t, http.StatusOK, `{}`)
	lines := customers(2)
	lines[1] = `{"event":"e","operation":"refund.creat","form":{}}`
	c := client(t, adapter, memory.New(nil), outbound.Options{})
	refused := func(want string, lines ...string) {
		t.Helper()
		b, err := reprocess.Load(write(t, customersManifest(2), lines...))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := reprocess.New(b, c); err == nil || !strings.Contains(err.Error(), want) || requests() != 0 {
			t.Errorf("%v, want %q; %d requests", err, want, requests())
		}
	}
	refused(`line 2: provider stripe has no operation "refund.creat"`, lines...)
	lines[1] = `{"event":"e","operation":"refund.create","json":{"amount":10}}`
	refused(`line 2: refund.create takes a form: give "form", not "json"`, lines...)
	lines[1] = `{"event":"e","operation":"v2.account.create","form":{}}`
	refused(`line 2: v2.account.create takes JSON`, lines...)
	lines[1] = strings.Replace(lines[0], "{", `{"account":"acct_shop",`, 1)
	refused("line 2: it is the same effect as line 1, whose account is the default one", lines...)
	m := customersManifest(2)
	m.Provider = "paypal"
	b, err := reprocess.Load(write(t, m, customers(2)...))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reprocess.New(b, client(t, adapter, memory.New(nil), outbound.Options{})); err == nil {
		t.Error("a batch for PayPal is run at Stripe")
	}
}
