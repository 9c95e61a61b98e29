package console_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/seed-6b5e302b/samekey/internal/console"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

// C28: an uncertain record is on the first page with its age, and its own page says
// what happened, whether it is safe to call again, and what to do; once it was looked
// up it is gone from the first page and its timeline tells how.
func TestUncertainAppearsAndSettles(t *testing.T) {
	t.Parallel()
	onBoth(t, func(p *shop) {
		b := browse(p, serve(p, p.store, console.Options{}))
		shows(p, b.get("/", 200), "Nothing is open")
		p.refund("refund-1", "", "")
		p.refund("refund-8", providertest.DropAfterApply, outbound.ErrUncertain)
		page := b.get("/", 200)
		shows(p, page, `<a href="/records/`+p.mark("refund-8")+`">refund-8</a>`, `class="state state-uncertain"`, "read only")
		hides(p, page, "refund-1")
		shows(p, b.get("/records/"+p.mark("refund-8"), 200), "It is not failed.", "with the same command ID only", "What to do?", "<svg", "window ends", "ahead")
		hides(p, b.get("/?state=manual_review", 200), "refund-8</a>")
		shows(p, b.get("/?state=uncertain&provider=stripe", 200), "refund-8</a>")
		p.reconcile()
		shows(p, b.get("/", 200), "Nothing is open")
		shows(p, b.get("/records/"+p.mark("refund-8"), 200), "The provider executed it: re_", `<th scope="row">lookup</th>`, "sending → succeeded", ">Reconciler</text>")
		shows(p, b.get("/reconciler", 200), "Nothing waits for a reconciler; the last check was", ">refund-8</a>", "sending → succeeded")
	})
}

// R30: a person decides with reason and name against the version that they saw; a
// second person with the old version is refused and shown what changed.
func TestResolve(t *testing.T) {
	t.Parallel()
	onBoth(t, func(p *shop) {
		p.review("refund-7")
		base := serve(p, p.store, console.Options{Token: token, AllowResolve: true})
		ada, bob := browse(p, base), browse(p, base)
		ada.signIn()
		shows(p, bob.signIn(), `class="person"`, "a person")
		at := "/records/" + p.mark("refund-7")
		seen, old := ada.get(at, 200), bob.get(at, 200)
		form := func(page, name string) url.Values {
			return url.Values{
				"csrf": {hidden(p, page, "csrf")}, "version": {hidden(p, page, "version")}, "state": {hidden(p, page, "state")},
				"verdict": {"applied"}, "external_ref": {"re_3Nv0"}, "reason": {"re_3Nv0 is at the dashboard"}, "name": {name},
			}
		}
		lacking := form(seen, "ada")
		lacking.Set("reason", " ")
		shows(p, ada.post(at+"/resolve", lacking, http.StatusUnprocessableEntity), "Nothing was done", "the Reason needs", `value="ada"`)
		lacking.Set("verdict", "perhaps")
		ada.post(at+"/resolve", lacking, http.StatusUnprocessableEntity)

		done := ada.post(at+"/resolve", form(seen, "ada"), 200)
		shows(p, done, "ada decided, manual review → succeeded", "re_3Nv0 is at the dashboard", ">People</text>")
		hides(p, done, "Record the verdict")
		version := p.record("refund-7").Version

		refused := bob.post(at+"/resolve", form(old, "bob"), http.StatusConflict)
		shows(p, refused, "nothing was changed", "You saw version "+hidden(p, old, "version")+" (manual review)", "manual review → succeeded",
			"ada", "re_3Nv0 is at the dashboard", "What you had written", "<dd>bob</dd>")
		if now := p.record("refund-7"); now.Version != version || now.State != recordstore.Succeeded {
			p.Errorf("the refused verdict moved the record to %s in version %d", now.State, now.Version)
		}
		again := form(old, "bob")
		again.Set("version", hidden(p, old, "version"))
		again.Set("verdict", "none")
		bob.post(at+"/resolve", again, http.StatusConflict)
	})
}

// "Not there" cannot be known while a request may be under way: it needs a tick.
func TestResolveWaitsForTheHorizon(t *testing.T) {
	t.Parallel()
	p := open(t, openSQLite(t))
	p.refund("refund-7", providertest.DropAfterApply, outbound.ErrUncertain)
	b := browse(t, serve(t, p.store, console.Options{Token: token, AllowResolve: true}))
	b.signIn()
	at := "/records/" + p.mark("refund-7")
	page := b.get(at, 200)
	shows(t, page, "cannot be known yet: wait until", `name="force"`)
	form := url.Values{
		"csrf": {hidden(t, page, "csrf")}, "version": {hidden(t, page, "version")}, "state": {hidden(t, page, "state")},
		"verdict": {"none"}, "reason": {"not at the dashboard"}, "name": {"ada"},
	}
	shows(t, b.post(at+"/resolve", form, http.StatusUnprocessableEntity), "Nothing was done: it cannot be known yet", "or tick the box")
	if now := p.record("refund-7").State; now != recordstore.Uncertain {
		t.Fatalf("the record is %s", now)
	}
	form.Set("force", "yes")
	shows(t, b.post(at+"/resolve", form, 200), "ada decided", "uncertain → refused", "Make no new command before")
}

// A console that only reads shows no form and takes none, whoever sends it.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	p := open(t, openSQLite(t))
	p.review("refund-7")
	b := browse(t, serve(t, p.store, console.Options{Token: token}))
	home := b.signIn()
	page := b.get("/records/"+p.mark("refund-7"), 200)
	shows(t, page, "This console only reads", "samekey ledger resolve "+p.mark("refund-7")+" --version")
	hides(t, page, "Record the verdict")
	before := p.record("refund-7").Version
	b.post("/records/"+p.mark("refund-7")+"/resolve", url.Values{
		"csrf": {hidden(t, home, "csrf")}, "version": {"1"}, "verdict": {"applied"}, "reason": {"r"}, "name": {"n"},
	}, http.StatusForbidden)
	if now := p.record("refund-7").Version; now != before {
		t.Errorf("version %d became %d", before, now)
	}
}

// A record is found by its command, its mark, and by both ids of the provider.
func TestSearch(t *testing.T) {
	t.Parallel()
	onBoth(t, func(p *shop) {
		p.refund("refund-1", "", "")
		p.refund("refund-2", "", "")
		rec := p.record("refund-1")
		b := browse(p, serve(p, p.store, console.Options{}))
		for by, text := range map[string]string{"command": "refund-1", "external": rec.ExternalRef, "request": rec.RequestID} {
			if text == "" {
				p.Fatalf("the record has no id for %q", by)
			}
			shows(p, b.get("/search?"+url.Values{"by": {by}, "q": {" " + text + " "}}.Encode(), 200), "Command <code>refund-1</code>")
		}
		shows(p, b.get("/search?by=command&q="+p.mark("refund-2"), 200), "Command <code>refund-2</code>")
		shows(p, b.get("/search?by=command&q=refund-9", 200), "it was never sent through it")
		shows(p, b.get("/search?by=external&q=re_none", 200), "search by the command")
		shows(p, b.get("/search?by=command&q=a/b/c", 200), "This is no command ID")
		shows(p, b.get("/search?by=amount&q=12", 200), "Search by command")
		shows(p, b.get("/search?by=command&q="+strings.Repeat("x", 10_000), 200), "at most 255 bytes")
	})
}

// R26: rates are what the records tell, and the page says what they cannot.
func TestRates(t *testing.T) {
	t.Parallel()
	onBoth(t, func(p *shop) {
		for _, id := range []string{"refund-1", "refund-2", "refund-3"} {
			p.refund(id, "", "")
		}
		p.refund("refund-8", providertest.DropAfterApply, outbound.ErrUncertain)
		b := browse(p, serve(p, p.store, console.Options{}))
		page := b.get("/rates?window=1h", 200)
		shows(p, page, "From 4 records", "the last hour", `<td class="number">1 (25.0 %)</td>`, "What the ledger cannot tell", "fingerprint_conflict", "ledger_replay", "<figure>")
		p.refund("refund-8", "", "") // the provider gives its stored answer
		if p.record("refund-8").Evidence != "replay_header" {
			p.Fatalf("evidence %q", p.record("refund-8").Evidence)
		}
		shows(p, b.get("/rates?window=24h&provider=stripe", 200), "From 4 records", `<td class="number">1 (25.0 %)</td><td class="number">1</td><td class="number">1 (25.0 %)</td>`)
		shows(p, b.get("/rates?window=30d&provider=paypal", 200), "From 0 records")
		b.get("/rates?window=year", http.StatusBadRequest)
	})
}

// Bodies are shown with a seal key only, on the page of one record that asks for
// them, and a key that does not fit shows nothing.
func TestBodies(t *testing.T) {
	t.Parallel()
	p := open(t, openSQLite(t))
	p.refund("refund-8", providertest.DropAfterApply, outbound.ErrUncertain)
	p.refund("refund-1", "", "")
	at := "/records/" + p.mark("refund-8")

	reader := browse(t, serve(t, p.store, console.Options{}))
	hides(t, reader.get(at, 200), "only-in-bodies", "/bodies")
	reader.get(at+"/bodies", http.StatusNotFound)

	trusted := browse(t, serve(t, p.store, console.Options{Token: token, Sealer: outbound.Seal(sealKey)}))
	trusted.signIn()
	page := trusted.get(at, 200)
	shows(t, page, at+"/bodies")
	hides(t, page, "only-in-bodies")
	hides(t, trusted.get("/", 200)+trusted.get("/rates", 200)+trusted.get("/reconciler", 200), "only-in-bodies")
	shows(t, trusted.get(at+"/bodies", 200), "POST ", "only-in-bodies")
	shows(t, trusted.get("/records/"+p.mark("refund-1")+"/bodies", 200), "None is kept: it is removed", "&#34;object&#34;:&#34;refund&#34;")

	other := sealKey
	other.Bytes = []byte("another key, of thirty-two bytes")
	stranger := browse(t, serve(t, p.store, console.Options{Token: token, Sealer: outbound.Seal(other)}))
	stranger.signIn()
	page = stranger.get(at+"/bodies", 200)
	shows(t, page, "cannot be opened")
	hides(t, page, "only-in-bodies")
}

// What others wrote is text, never markup, and cannot turn the direction of a page.
func TestHostileText(t *testing.T) {
	t.Parallel()
	p := open(t, openSQLite(t))
	p.refund(`<img src=x onerror=alert(1)> "'`, providertest.DropAfterApply, outbound.ErrUncertain)
	p.refund("refund-\u202e8", providertest.DropAfterApply, outbound.ErrUncertain)
	b := browse(t, serve(t, p.store, console.Options{}))
	for _, path := range []string{"/", "/reconciler", "/records/" + p.mark(`<img src=x onerror=alert(1)> "'`)} {
		page := b.get(path, 200)
		hides(t, page, "<img", "\u202e")
		shows(t, page, "&lt;img src=x onerror=alert(1)&gt;")
	}
	hides(t, b.get("/search?by=command&q=%22%3E%3Cimg%3E", 200), "<img")
}

// Records that come and go do not break the list: a later page begins after the
// place where the one before ended.
func TestPagesOfTheList(t *testing.T) {
	t.Parallel()
	p := open(t, openSQLite(t))
	fill(t, p.store, 250, func(int) bool { return true })
	b := browse(t, serve(t, p.store, console.Options{}))
	seen := 0
	for path := "/"; path != ""; {
		page := b.get(path, 200)
		seen += strings.Count(page, `<th scope="row"><a href="/records/`)
		_, after, more := strings.Cut(page, `<a class="next" href="`)
		path = ""
		if more {
			path, _, _ = strings.Cut(after, `"`)
			path = strings.ReplaceAll(path, "&amp;", "&")
		}
	}
	if seen != 250 {
		t.Errorf("%d records on all pages", seen)
	}
	for _, bad := range []string{"/?from=here", "/?from=1-2", "/?state=succeeded"} {
		b.get(bad, http.StatusBadRequest)
	}
	for _, none := range []string{"/records/none", "/records/" + strings.Repeat("0", 36), "/somewhere"} {
		b.get(none, http.StatusNotFound)
	}
}

// broken is a ledger that fails.
type broken struct {
	console.Ledger
	err error
}

func (l broken) List(context.Context, recordstore.ListQuery) (recordstore.Listing, error) {
	return recordstore.Listing{}, l.err
}

// A ledger that cannot be asked is told in words; where it stands, and who its user
// is, stays in the log.
func TestLedgerFails(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err    error
		status int
		says   string
	}{
		{errors.New("dial tcp db.internal:5432: user=samekey"), http.StatusBadGateway, "could not be asked"},
		{recordstore.ErrTooLong, http.StatusServiceUnavailable, "Narrow the question"},
		{context.DeadlineExceeded, http.StatusServiceUnavailable, "Narrow the question"},
		{recordstore.ErrSchema, http.StatusBadGateway, "schema does not fit"},
	} {
		b := browse(t, serve(t, broken{err: tt.err}, console.Options{}))
		page := b.get("/", tt.status)
		shows(t, page, tt.says)
		hides(t, page, "db.internal", "user=samekey")
	}
}
