package main

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
	fakepaypal "github.com/seed-6b5e302b/samekey/internal/fakeprovider/paypal"
	fakestripe "github.com/seed-6b5e302b/samekey/internal/fakeprovider/stripe"
)

const (
	testKey    = "sk_test_51SandboxSecret"
	testID     = "sandbox-client-id"
	testSecret = "sandbox-client-secret"
)

// meeting makes one of the requests that are sent at once meet another: the fake
// is so fast that none would.
type meeting struct {
	base      http.RoundTripper
	fake      *fakeprovider.Fake
	operation string
	once      sync.Once
}

func (m *meeting) RoundTrip(r *http.Request) (*http.Response, error) {
	if key := r.Header.Get("Idempotency-Key") + r.Header.Get("PayPal-Request-Id"); strings.HasSuffix(key, "-crowd") {
		var err error
		m.once.Do(func() {
			err = m.fake.Inject(fakeprovider.Fault{Kind: fakeprovider.InFlight, Operation: m.operation})
		})
		if err != nil {
			return nil, err
		}
	}
	return m.base.RoundTrip(r)
}

// stripeAt is the suite against a fake of Stripe. wrap stands between them; it
// may be nil.
func stripeAt(t *testing.T, cfg fakestripe.Config, wrap func(http.RoundTripper) http.RoundTripper) (suite, *fakeprovider.Fake) {
	t.Helper()
	cfg.SearchLag = -1
	fake, rt, base := serve(t, fakestripe.New(cfg), "payment_intent.create", wrap)
	return stripeSuite(stripeSettings{base: base, transport: rt, key: testKey, connected: "acct_connected", patience: time.Minute}), fake
}

func paypalAt(t *testing.T, cfg fakepaypal.Config, wrap func(http.RoundTripper) http.RoundTripper) (suite, *fakeprovider.Fake) {
	t.Helper()
	cfg.Secret = testSecret
	fake, rt, base := serve(t, fakepaypal.New(cfg), "order.create", wrap)
	return paypalSuite(paypalSettings{
		base: base, transport: rt, id: testID, secret: testSecret, otherID: "other-client-id", otherSecret: testSecret,
	}), fake
}

func serve(t *testing.T, dialect func() fakeprovider.Dialect, operation string, wrap func(http.RoundTripper) http.RoundTripper) (*fakeprovider.Fake, http.RoundTripper, string) {
	t.Helper()
	fake := fakeprovider.New(dialect, nil)
	server := fakeprovider.InMemory(fake)
	t.Cleanup(server.Close)
	var rt http.RoundTripper = &meeting{base: server.Transport(), fake: fake, operation: operation}
	if wrap != nil {
		rt = wrap(rt)
	}
	return fake, rt, server.URL
}

// table runs suites and returns what they print, with the exit code.
func table(t *testing.T, suites ...suite) (string, int) {
	t.Helper()
	var out strings.Builder
	code := report(t.Context(), suites, &out)
	for _, secret := range []string{testKey, testSecret, testID, "Bearer", "Basic "} {
		if strings.Contains(out.String(), secret) {
			t.Errorf("the table shows a secret:\n%s", out.String())
		}
	}
	return out.String(), code
}

// lineOf returns the line of the table that is about a fact.
func lineOf(t *testing.T, printed, states string) string {
	t.Helper()
	for l := range strings.SplitSeq(printed, "\n") {
		if strings.Contains(l, states+"  ") {
			return l
		}
	}
	t.Fatalf("no line is about %q:\n%s", states, printed)
	return ""
}

// Against the fakes every fact holds, and every unknown one is as the fake has it.
func TestFactsHoldAgainstTheFakes(t *testing.T) {
	t.Parallel()
	s, stripeFake := stripeAt(t, fakestripe.Config{}, nil)
	p, _ := paypalAt(t, fakepaypal.Config{}, nil)
	printed, code := table(t, s, p)
	if code != exitHolds || !strings.Contains(printed, " 0 changed, ") || !strings.Contains(printed, "(0 other than the fake's default), 0 not checked; ") {
		t.Errorf("exit code %d:\n%s", code, printed)
	}
	if s.api.made() > 70 || p.api.made() > 70 {
		t.Errorf("%d and %d calls, want at most 70 each", s.api.made(), p.api.made())
	}
	// What can be deleted is deleted.
	for _, kind := range []string{"customer", "v2.event_destination"} {
		if made, gone := stripeFake.Effects(kind+".create"), stripeFake.Effects(kind+".delete"); made == 0 || made != gone {
			t.Errorf("%d of %s were made and %d deleted", made, kind, gone)
		}
	}
}

// A fake with a switch the other way shows in the line of the fact that the
// switch decides, and nowhere as a change.
func TestUnknownFactsAreLearned(t *testing.T) {
	t.Parallel()
	suites := map[string]func() suite{}
	for name, cfg := range map[string]fakestripe.Config{
		"KeepNotFound": {KeepNotFound: true}, "KeysAcrossAccounts": {KeysAcrossAccounts: true},
		"V2ReplayHeader": {V2ReplayHeader: true}, "V2IgnoresBody": {V2IgnoresBody: true},
	} {
		suites[name] = func() suite { s, _ := stripeAt(t, cfg, nil); return s }
	}
	for name, cfg := range map[string]fakepaypal.Config{
		"KeepRefusals": {KeepRefusals: true}, "CompareBodies": {CompareBodies: true},
		"MerchantKeys": {MerchantKeys: true}, "Replay200": {Replay200: true},
	} {
		suites[name] = func() suite { s, _ := paypalAt(t, cfg, nil); return s }
	}
	tried := 0
	for name, open := range suites {
		s := open()
		printed, code := table(t, s)
		if code != exitHolds || !strings.Contains(printed, "(1 other than the fake's default)") {
			t.Errorf("%s: exit code %d:\n%s", name, code, printed)
		}
		for _, f := range s.facts() {
			if l := lineOf(t, printed, f.states); f.setting == name && !(strings.Contains(l, "learned") && strings.HasSuffix(l, "; the fake does so with "+name)) {
				t.Errorf("%s: the line is %q", name, l)
			} else if f.setting == name {
				tried++
			}
		}
	}
	if tried != len(suites) {
		t.Errorf("%d switches were shown, want %d", tried, len(suites))
	}
	s, _ := stripeAt(t, fakestripe.Config{}, nil)
	p, _ := paypalAt(t, fakepaypal.Config{}, nil)
	for _, f := range append(s.facts(), p.facts()...) {
		if f.setting != "" && suites[f.setting] == nil {
			t.Errorf("no run has %s the other way", f.setting)
		}
	}
}

func (s suite) facts() []fact {
	var all []fact
	for _, sc := range s.scenarios {
		all = append(all, sc.facts...)
	}
	return all
}

// edited changes the answers of a provider.
type edited struct {
	base http.RoundTripper
	edit func(*http.Response)
}

func (e edited) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := e.base.RoundTrip(r)
	if err == nil {
		e.edit(resp)
	}
	return resp, err
}

// A provider that does otherwise than a fact says is told as a change.
func TestChanges(t *testing.T) {
	t.Parallel()
	s, _ := stripeAt(t, fakestripe.Config{}, func(rt http.RoundTripper) http.RoundTripper {
		return edited{rt, func(r *http.Response) { r.Header.Del("Idempotent-Replayed") }}
	})
	printed, code := table(t, s)
	l := lineOf(t, printed, "a decline is kept, and its replay says so")
	if code != exitChanged || !strings.Contains(l, "CHANGED") || !strings.Contains(l, "402 card_error card_declined, executed; the fact says: 402 card_error card_declined, replayed") {
		t.Errorf("exit code %d, the line is %q", code, l)
	}
	p, _ := paypalAt(t, fakepaypal.Config{OrderWindow: time.Nanosecond}, nil) // forgets an id at once
	printed, code = table(t, p)
	l = lineOf(t, printed, "the same order request again")
	if code != exitChanged || !strings.Contains(l, "CHANGED") || !strings.Contains(l, "201, same order false; the fact says: 200, same order true") {
		t.Errorf("exit code %d, the line is %q", code, l)
	}
}

// What cannot be asked is not checked, with the reason, and is no change.
func TestNotChecked(t *testing.T) {
	t.Parallel()
	p, fake := paypalAt(t, fakepaypal.Config{}, nil)
	if err := fake.Inject(fakeprovider.Fault{Kind: fakeprovider.Status503, Operation: "payout.create"}); err != nil {
		t.Fatal(err)
	}
	printed, code := table(t, p)
	if l := lineOf(t, printed, "a sender_batch_id used again"); code != exitUnchecked || !strings.Contains(l, "not checked") || !strings.Contains(l, "the provider answers 503: run this again later") {
		t.Errorf("exit code %d, the line is %q", code, l)
	}
	if l := lineOf(t, printed, "a void of what is void"); !strings.Contains(l, "learned") {
		t.Errorf("another scenario was not run: %q", l)
	}
	s, _ := stripeAt(t, fakestripe.Config{}, func(http.RoundTripper) http.RoundTripper { return unreachable{} })
	if printed, code := table(t, s); code != exitUnchecked || strings.Contains(printed, "holds") {
		t.Errorf("exit code %d:\n%s", code, printed)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	late, _ := stripeAt(t, fakestripe.Config{}, nil)
	var out strings.Builder
	if code := report(ctx, []suite{late}, &out); code != exitUnchecked {
		t.Errorf("with no time left: exit code %d:\n%s", code, out.String())
	}
}

// unreachable fails as a proxy might, with what it was given.
type unreachable struct{}

func (unreachable) RoundTrip(r *http.Request) (*http.Response, error) {
	return nil, errSaying(r.Header.Get("Authorization"))
}

type errSaying string

func (e errSaying) Error() string {
	_, secret, _ := strings.Cut(string(e), " ")
	return "no way through for " + secret
}
