package console

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
	"github.com/seed-6b5e302b/samekey/recordstore/sqlite"
)

// shop is a ledger in a file, which the console shows, and the service that fills it.
type shop struct {
	*testing.T
	path   string
	behind atomic.Int64 // How far the service's clock is behind, so that records get an age.
	fake   *providertest.Fake
	client *outbound.Client
	charge string
}

func openShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{T: t, path: filepath.Join(t.TempDir(), "ledger.db"), fake: providertest.Stripe(t, nil)}
	ledger, err := sqlite.Open(s.path, &sqlite.Options{Now: func() time.Time { return time.Now().Add(-time.Duration(s.behind.Load())) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ledger.Close() })
	s.client, err = outbound.New(
		stripe.New(stripe.Config{Account: "acct_shop", Test: true, SecretKey: "sk_test_never_shown", BaseURL: s.fake.URL}), ledger,
		&outbound.Options{Bodies: outbound.PlainBodies(), Retry: outbound.Retry{Attempts: 1}, FirstCheck: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.client.Close(context.WithoutCancel(t.Context())) })
	s.charge = s.fake.Seed(providertest.Charge{Amount: 100_000, Currency: "eur"})
	return s
}

// ago lets what follows happen some time ago; 0: now.
func (s *shop) ago(d time.Duration) { s.behind.Store(int64(d)) }

// refund refunds a part of the charge under a fault, if any.
func (s *shop) refund(command string, fault providertest.Kind, code outbound.Code) {
	s.Helper()
	if fault != "" {
		s.fake.Inject(providertest.Fault{Kind: fault, Operation: "refund.create"})
	}
	_, err := s.client.Do(s.Context(), stripe.RefundCreate(outbound.Command{ID: command}, url.Values{"charge": {s.charge}, "amount": {"1000"}}))
	if code == "" && err != nil || code != "" && !errors.Is(err, code) {
		s.Fatalf("%s: %v, want %q", command, err, code)
	}
}

// decline has a payment declined.
func (s *shop) decline(command string) {
	s.Helper()
	_, err := s.client.Do(s.Context(), stripe.PaymentIntentCreate(outbound.Command{ID: command}, url.Values{
		"amount": {"5000"}, "currency": {"eur"}, "confirm": {"true"}, "payment_method": {"pm_card_chargeDeclined"},
	}))
	if !errors.Is(err, outbound.ErrRefused) {
		s.Fatalf("%s: %v, want a decline", command, err)
	}
}

// review brings an uncertain command to review: a person ends it though it was
// applied, and then the provider reports the truth.
func (s *shop) review(command string) {
	s.Helper()
	s.refund(command, providertest.DropAfterApply, outbound.ErrUncertain)
	cmd := outbound.Command{ID: command}
	status, err := s.client.Status(s.Context(), cmd, "refund.create")
	if err != nil {
		s.Fatal(err)
	}
	err = s.client.Resolve(s.Context(), outbound.Resolution{
		Command: cmd, Operation: "refund.create", Version: status.Version,
		Effect: outbound.EffectNone, Reason: "no refund at the dashboard", Operator: "eve",
	})
	if err != nil {
		s.Fatal(err)
	}
	err = s.client.Observe(s.Context(), outbound.Observation{
		Provider: "stripe", Mark: s.mark(command), EventID: "evt_1", EventType: "refund.updated", Effect: outbound.EffectApplied,
	})
	if err != nil {
		s.Fatal(err)
	}
}

func (s *shop) mark(command string) string {
	s.Helper()
	key, err := s.client.Key(outbound.Command{ID: command}, "refund.create", "")
	if err != nil {
		s.Fatal(err)
	}
	return key.Mark()
}

// lookUp sweeps until the outcome of a command is known, which is not before its first
// check is due.
func (s *shop) lookUp(command string) {
	s.Helper()
	r, err := outbound.NewReconciler(&outbound.ReconcilerOptions{ResendFor: time.Nanosecond}, s.client)
	if err != nil {
		s.Fatal(err)
	}
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if _, err := r.Sweep(s.Context()); err != nil {
			s.Fatal(err)
		}
		status, err := s.client.Status(s.Context(), outbound.Command{ID: command}, "refund.create")
		if err != nil {
			s.Fatal(err)
		}
		if status.Effect == outbound.EffectApplied {
			return
		}
	}
	s.Fatalf("%s does not settle", command)
}

// C28, R30: two people at a console, each with a browser that runs no JavaScript: an
// uncertain record appears, is looked up and settles; a review is resolved with a
// reason; who decides about an old version is refused and shown what changed. All
// that their pages ask for is the console, and nothing leaves this machine.
func TestConsole(t *testing.T) {
	s := openShop(t)
	address := startConsole(t, "--sqlite", s.path, "--allow-resolve")
	proxyURL, passed := startProxy(t, address)
	browser := startBrowser(t, proxyURL)
	ada, bob := newPerson(t, browser, address), newPerson(t, browser, address)
	ada.visit("/rates")
	ada.hides("Replayed")
	ada.signIn()
	ada.shows("Nothing is open")

	s.history()
	s.refund("refund-8", providertest.DropAfterApply, outbound.ErrUncertain)
	ada.visit("/")
	ada.shows(">refund-8</a>", ">refund-7</a>", "a person")
	ada.screenshot("open")
	ada.press(`a[href="/records/` + s.mark("refund-8") + `"]`)
	ada.shows("It is not failed.", "with the same command ID only")
	ada.screenshot("uncertain")
	s.lookUp("refund-8")
	ada.visit("/records/" + s.mark("refund-8"))
	ada.shows("The provider executed it: re_", ">lookup</th>", ">Reconciler</text>")
	ada.visit("/?state=uncertain")
	ada.hides(">refund-8</a>")
	ada.visit("/reconciler")
	ada.shows("the last check was", ">refund-8</a>")
	ada.screenshot("reconciler")
	ada.visit("/rates")
	ada.shows("What the ledger cannot tell")
	ada.screenshot("rates")

	bob.signIn()
	bob.fill("search-for", "refund-7")
	bob.press("form.search button")
	bob.shows("Record the verdict")
	ada.visit("/records/" + s.mark("refund-7"))
	ada.screenshot("review")
	decide(ada, "applied", "re_3Nv0 over 10.00 EUR is at the dashboard", "ada")
	ada.shows("ada decided, manual review → succeeded", "re_3Nv0 over 10.00 EUR is at the dashboard")
	ada.screenshot("resolved")
	decide(bob, "none", "I see none", "bob")
	bob.shows("nothing was changed", "manual review → succeeded", "re_3Nv0 over 10.00 EUR is at the dashboard", "I see none")
	bob.screenshot("refused")
	status, err := s.client.Status(t.Context(), outbound.Command{ID: "refund-7"}, "refund.create")
	if err != nil || status.Effect != outbound.EffectApplied {
		t.Errorf("after both verdicts the effect is %v (%v)", status.Effect, err)
	}

	ada.press("header form:last-of-type button")
	ada.shows("The console's token")
	ada.askedOnly()
	bob.askedOnly()
	if passed.Load() == 0 {
		t.Error("the browser did not go through the proxy")
	}
}

// history fills the ledger with what a day may leave behind.
func (s *shop) history() {
	s.Helper()
	for i := range 12 {
		s.ago(24*time.Hour - time.Duration(i)*90*time.Minute)
		s.refund(fmt.Sprintf("refund-%d", 100+i), "", "")
		switch i {
		case 3:
			s.refund("refund-31", providertest.DropAfterApply, outbound.ErrUncertain)
			s.refund("refund-31", "", "") // the provider's stored answer
		case 6:
			s.decline("order-17")
		case 8:
			s.refund("refund-42", providertest.HTML502, outbound.ErrUncertain)
		}
	}
	s.ago(0)
	s.review("refund-7")
}

// decide fills in the form of a verdict and sends it.
func decide(p *person, verdict, reason, name string) {
	p.Helper()
	run(p, chromedp.Click(chromedp.CSS("#verdict-"+verdict)))
	p.fill("reason", reason)
	p.fill("name", name)
	p.press("section.decide button")
}

// contrast finds texts whose contrast is below 4.5 (WCAG 2.2, 1.4.3, AA), by the
// relative luminance that it defines.
const contrast = `(() => {
	const parts = c => c.match(/[\d.]+/g).map(Number)
	const light = c => { const [r, g, b] = parts(c).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
		return 0.2126 * r + 0.7152 * g + 0.0722 * b }
	const behind = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (parts(c)[3] !== 0) return c } return 'rgb(255, 255, 255)' }
	const low = []
	for (const e of document.querySelectorAll('body *')) {
		if (![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()) || e.closest('svg, option') || e.matches('.unseen, .skip')) continue
		const [a, b] = [light(getComputedStyle(e).color), light(behind(e))]
		const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)
		if (ratio < 4.5) low.push(e.tagName + '.' + e.className + ' ' + ratio.toFixed(2))
	}
	return low
})()`

// Every page can be read by everybody: what can be operated has a name, and text
// stands out from its background, by day and by night.
func TestAccessible(t *testing.T) {
	s := openShop(t)
	s.history()
	address := startConsole(t, "--sqlite", s.path, "--allow-resolve")
	proxyURL, _ := startProxy(t, address)
	p := newPerson(t, startBrowser(t, proxyURL), address)
	p.visit("/login")
	p.named("/login")
	p.signIn()
	for _, path := range []string{"/", "/records/" + s.mark("refund-7"), "/records/" + s.mark("refund-42"), "/rates", "/reconciler", "/search?by=command&q=refund-999"} {
		p.visit(path)
		p.named(path)
		p.scripts(true) // those of this test: the page's own are forbidden by its policy
		for _, scheme := range []string{"light", "dark"} {
			call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
			low := run(p, chromedp.Evaluate[[]string](contrast))
			if len(low) > 0 {
				t.Errorf("%s, %s: too little contrast: %q", path, scheme, low)
			}
		}
	}
}

// named wants a name for everything that can be operated or stands for a picture.
func (p *person) named(path string) {
	p.Helper()
	operable := 0
	for _, n := range call(p, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{}).Nodes {
		if n.Ignored || n.Role == nil {
			continue
		}
		switch role := string(n.Role.Value); role {
		case `"button"`, `"link"`, `"textbox"`, `"searchbox"`, `"combobox"`, `"radio"`, `"image"`, `"region"`, `"table"`:
			operable++
			if n.Name == nil || string(n.Name.Value) == `""` {
				p.Errorf("%s: a %s has no name", path, role)
			}
		}
	}
	if operable == 0 {
		p.Errorf("%s: nothing is named, so that this test sees nothing", path)
	}
}
