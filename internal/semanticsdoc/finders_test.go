package main

import (
	"strings"
	"testing"
	"time"

	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// Every operation stands on the page once, those that cannot be looked up first.
func TestFindersAreWhole(t *testing.T) {
	data, err := renderFinders(providers())
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	first := strings.Index(page, "\n## Stripe\n")
	lost, found := page[:first], page[first:]
	for _, p := range providers() {
		for _, o := range p.rows {
			link := "[" + o.Name + "](replay-semantics.md#" + anchor(p, o) + ")"
			in := found
			if o.Lookup == "" {
				in = lost
			}
			if strings.Count(page, link) != 1 || !strings.Contains(in, link) {
				t.Errorf("%s: %s does not stand once where it belongs", p.name, o.Name)
			}
		}
	}
}

func TestFinders(t *testing.T) {
	facts := []rs.Fact{{States: "a fact", URL: "https://example.com/a", Read: "2026-11-30"}}
	key := []rs.Place{rs.Header("Key")}
	rows := []rs.Operation{
		{Name: "refund.create", Method: "POST", Path: "/refunds", Lookup: "list | compare", Absence: "the list ended", Horizon: time.Hour, ConclusiveEventTypes: []string{"refund.done"}, Facts: facts},
		{Name: "customer.create", Method: "POST", Path: "/customers", Lookup: "by id", Facts: facts},
		{Name: "mail.send", Method: "POST", Path: "/mails", Facts: facts},
		{Name: "usage.create", Method: "POST", Path: "/usage", Keys: key, Resend: rs.Original, Window: 24 * time.Hour, Facts: facts},
		{Name: "note.create", Method: "POST", Path: "/notes", Keys: key, Resend: rs.Original, Facts: facts},
	}
	page, err := renderFinders([]provider{{"Acme", rows}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| Acme | [mail.send](replay-semantics.md#acme-mail-send) | no key: a person decides at once | a person decides |\n",
		"| Acme | [usage.create](replay-semantics.md#acme-usage-create) | resent, 24 h | a person decides |\n",
		"| Acme | [note.create](replay-semantics.md#acme-note-create) | resent within one call | a person decides |\n",
		"| [refund.create](replay-semantics.md#acme-refund-create) | list \\| compare | the list ended | 1 h | `refund.done` |\n",
		"| [customer.create](replay-semantics.md#acme-customer-create) | by id | never | never | none |\n",
	} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if page, err := renderFinders([]provider{{"Acme", rows[:2]}}); err != nil || !strings.Contains(string(page), "\n## Cannot be looked up\n\nNone.\n") {
		t.Errorf("without any that is lost: %v\n%s", err, page)
	}
}
