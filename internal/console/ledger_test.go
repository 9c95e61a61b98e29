package console_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/internal/console"
	"github.com/seed-6b5e302b/samekey/internal/pgtest"
	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/postgres"
	"github.com/seed-6b5e302b/samekey/recordstore/sqlite"
)

// What no page may ever hold, the token of a console apart from the form it is
// typed into.
const (
	apiKey = "sk_test_never_shown"
	token  = "the-token-of-this-console"
)

var sealKey = outbound.SealKey{ID: "2026", Bytes: []byte("0123456789abcdef0123456789abcdef")}

// store is a ledger of either kind.
type store interface {
	recordstore.Store
	recordstore.Queue
	console.Ledger
}

// shop is a ledger that real calls to a fake left behind.
type shop struct {
	*testing.T
	store  store
	fake   *providertest.Fake
	client *outbound.Client
	charge string
}

// onBoth runs a test on an empty ledger of each kind.
func onBoth(t *testing.T, test func(*shop)) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(open(t, openSQLite(t)))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		pool := pgtest.Pool(t)
		if err := postgres.Migrate(t.Context(), pool, nil); err != nil {
			t.Fatal(err)
		}
		test(open(t, postgres.New(pool, nil)))
	})
}

func openSQLite(t testing.TB) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "ledger.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func open(t *testing.T, s store) *shop {
	t.Helper()
	p := &shop{T: t, store: s, fake: providertest.Stripe(t, nil)}
	p.charge = p.fake.Seed(providertest.Charge{Amount: 100_000, Currency: "eur"})
	var err error
	p.client, err = outbound.New(
		stripe.New(stripe.Config{Account: "acct_shop", Test: true, SecretKey: apiKey, BaseURL: p.fake.URL}), s,
		&outbound.Options{Bodies: outbound.Seal(sealKey), Retry: outbound.Retry{Attempts: 1}, FirstCheck: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.client.Close(context.WithoutCancel(t.Context())) })
	return p
}

// refund refunds a part of the charge under a fault, if any, and wants that to end in
// code, "" for success.
func (p *shop) refund(command string, fault providertest.Kind, code outbound.Code) {
	p.Helper()
	if fault != "" {
		p.fake.Inject(providertest.Fault{Kind: fault, Operation: "refund.create"})
	}
	call := stripe.RefundCreate(outbound.Command{ID: command}, url.Values{"charge": {p.charge}, "amount": {"1000"}, "metadata[note]": {"only-in-bodies"}})
	if _, err := p.client.Do(p.Context(), call); code == "" && err != nil || code != "" && !errors.Is(err, code) {
		p.Fatalf("%s: %v, want %q", command, err, code)
	}
}

// review brings an uncertain command to review: a person ends it though it was
// applied, and then the provider reports the truth.
func (p *shop) review(command string) {
	p.Helper()
	p.refund(command, providertest.DropAfterApply, outbound.ErrUncertain)
	err := p.client.Resolve(p.Context(), outbound.Resolution{
		Command: outbound.Command{ID: command}, Operation: "refund.create", Version: p.record(command).Version,
		Effect: outbound.EffectNone, Reason: "I saw no refund at the dashboard", Operator: "bob",
	})
	if err == nil {
		err = p.client.Observe(p.Context(), outbound.Observation{
			Provider: "stripe", Mark: p.mark(command), EventID: "evt_1", EventType: "refund.updated", Effect: outbound.EffectApplied,
		})
	}
	if err != nil {
		p.Fatal(err)
	}
}

// reconcile does one round and looks up rather than sending again.
func (p *shop) reconcile() {
	p.Helper()
	r, err := outbound.NewReconciler(&outbound.ReconcilerOptions{ResendFor: time.Nanosecond}, p.client)
	if err != nil {
		p.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); { // until the first check is due
		swept, err := r.Sweep(p.Context())
		if err != nil {
			p.Fatal(err)
		}
		if swept.LookedUp > 0 {
			return
		}
	}
	p.Fatal("no record was looked up")
}

func (p *shop) mark(command string) string {
	p.Helper()
	key, err := p.client.Key(outbound.Command{ID: command}, "refund.create", "")
	if err != nil {
		p.Fatal(err)
	}
	return key.Mark()
}

func (p *shop) record(command string) recordstore.Record {
	p.Helper()
	day, hash, err := keyderive.ParseMark(p.mark(command))
	if err != nil {
		p.Fatal(err)
	}
	rec, _, err := p.store.Get(p.Context(), recordstore.ID{Day: day, KeyHash: hash})
	if err != nil {
		p.Fatal(err)
	}
	return rec
}

// browser is one person at a console, with cookies and without JavaScript.
type browser struct {
	testing.TB
	base string
	http *http.Client
}

// serve serves a console on a ledger and returns its address.
func serve(t testing.TB, ledger console.Ledger, o console.Options) string {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	o.Hosts = append(o.Hosts, server.Listener.Addr().String())
	h, err := console.New(ledger, o)
	if err != nil {
		t.Fatal(err)
	}
	server.Config.Handler = h
	server.Start()
	t.Cleanup(server.Close)
	return server.URL
}

func browse(t testing.TB, base string) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &browser{t, base, &http.Client{Jar: jar}}
}

// get loads a page, which must come with status, and checks what holds for every
// page.
func (b *browser) get(path string, status int) string {
	b.Helper()
	resp, err := b.http.Get(b.base + path)
	return b.page(resp, err, status)
}

func (b *browser) post(path string, form url.Values, status int) string {
	b.Helper()
	resp, err := b.http.PostForm(b.base+path, form)
	return b.page(resp, err, status)
}

func (b *browser) page(resp *http.Response, err error, status int) string {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		b.Fatal(err)
	}
	where := resp.Request.Method + " " + resp.Request.URL.Path
	if resp.StatusCode != status {
		b.Fatalf("%s: %d, want %d\n%s", where, resp.StatusCode, status, body)
	}
	checkHeaders(b, where, resp.Header)
	if resp.StatusCode/100 != 3 {
		checkPage(b, where, string(body))
	}
	return string(body)
}

// signIn signs in and returns the page after it.
func (b *browser) signIn() string {
	b.Helper()
	return b.post("/login", url.Values{"token": {token}, "next": {"/"}}, http.StatusOK)
}

// hidden returns the value of a hidden field of a page.
func hidden(t testing.TB, page, name string) string {
	t.Helper()
	_, after, found := strings.Cut(page, `name="`+name+`" value="`)
	value, _, _ := strings.Cut(after, `"`)
	if !found {
		t.Fatalf("the page has no field %q\n%s", name, page)
	}
	return value
}

// shows expects words on a page.
func shows(t testing.TB, page string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(page, w) {
			t.Errorf("the page does not show %q:\n%s", w, page)
		}
	}
}

// hides expects words to be absent from a page.
func hides(t testing.TB, page string, words ...string) {
	t.Helper()
	for _, w := range words {
		if strings.Contains(page, w) {
			t.Errorf("the page shows %q:\n%s", w, page)
		}
	}
}
