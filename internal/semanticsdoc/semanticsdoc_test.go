package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// R12: what is written for people is what the rows state now.
func TestPagesAreFresh(t *testing.T) {
	for name, render := range pages {
		want, err := render(providers())
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile("../../docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("docs/%s is not what the rows give: run go generate ./internal/semanticsdoc (first difference: %s)", name, difference(got, want))
		}
	}
}

func difference(got, want []byte) string {
	g, w := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return "\n has  " + g[i] + "\n want " + w[i]
		}
	}
	return "its length"
}

// Every operation of every provider has its line and its section, and every fact
// its source.
func TestPageIsWhole(t *testing.T) {
	page, err := render(providers())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range providers() {
		for _, o := range p.rows {
			if link := "[" + o.Name + "](#" + anchor(p, o) + ")"; strings.Count(string(page), link) != 1 {
				t.Errorf("%s: the table has no line for %s, or two", p.name, o.Name)
			}
			if id := `<a id="` + anchor(p, o) + `"></a>` + o.Name; strings.Count(string(page), id) != 1 {
				t.Errorf("%s: there is no section for %s, or two", p.name, o.Name)
			}
			for _, f := range o.Facts {
				if !strings.Contains(string(page), "| "+f.Read+" | <"+f.URL+"> |") {
					t.Errorf("%s: the source of %q is missing", o.Name, f.States)
				}
			}
		}
	}
}

func TestSection(t *testing.T) {
	known := rs.Fact{States: "window | kept", URL: "https://example.com/a", Read: "2026-11-30", Grade: rs.Documented}
	guess := rs.Fact{States: "failures may be kept", URL: "https://example.com/b", Read: "2026-11-29"}
	report := rs.Fact{States: "a report", URL: "https://example.com/c", Read: "2026-11-28", Grade: rs.Reported}
	rows := []rs.Operation{{
		Name: "refund.create", Method: "POST", Path: "/refunds", Lookup: "list | compare", Absence: "the list | ended", Horizon: time.Hour,
		Keys: []rs.Place{rs.Header("Key"), rs.QuotedHeader("Draft"), rs.JSON("/a"), rs.JSON("/b")}, KeyMax: 40, Resend: rs.ConflictWithLink, Failures: rs.Stored,
		Marks: []rs.Place{rs.Form("m")}, Volatile: []rs.Place{rs.Custom("v")}, Unordered: []rs.Place{rs.JSON("/list")},
		Sensitive: []rs.Place{rs.JSON("/card")}, Codes: []rs.Place{rs.JSON("/code")},
		ConclusiveEventTypes: []string{"refund.done", "refund.failed"},
		Facts:                []rs.Fact{known, guess, report},
	}, {
		Name: "mail.send", Class: rs.Notification, Path: "/mail.Mail/Send",
		Facts: []rs.Fact{report, known},
	}}
	page, err := render([]provider{{"Acme", rows}, {"Of Two Words", rows[1:]}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| [refund.create](#acme-refund-create) | money | a time that is not published | an error that names the object | the stored failure | list \\| compare |\n",
		"| [mail.send](#acme-mail-send) | notification | no key | not sent twice | not sent twice | nothing |\n",
		"`POST /refunds`, class money.\n",
		"| [mail.send](#of-two-words-mail-send) |",
		"- **Key:** header `Key`; in quotes, header `Draft`; JSON `/a`, `/b`; at most 40 characters; kept for a time that is not published\n",
		"- **Same key after a success:** an error that names the existing object",
		"- **Same key after a failure:** the stored failure",
		"- **Answer lost:** list | compare\n",
		"- **Finding nothing proves that there is no effect:** from 1 h after the last possible delivery, when the list | ended\n",
		"- **Mark:** form field `m`\n",
		"- **Settled by the events alone:** `refund.done`, `refund.failed`\n",
		"- **Request never stored if it fills:** JSON `/card`, `/code`\n",
		"- **Does not count as another request:** JSON `/code`; by the codec: `v`\n",
		"- **In any order the same request:** JSON `/list`\n",
		"- **Sources:** 1–3\n- **Unverified:** failures may be kept\n",
		"`/mail.Mail/Send`, class notification.\n\n- **Key:** none: the provider does not deduplicate this operation\n- **Answer lost:** nothing finds the effect; a person decides\n- **Sources:** 1, 3\n",
		"| 1 | window \\| kept | documentation | 2026-11-30 | <https://example.com/a> |\n",
		"| 2 | failures may be kept | **unverified** | 2026-11-29 | <https://example.com/b> |\n",
		"| 3 | a report | a public report | 2026-11-28 | <https://example.com/c> |\n",
	} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if t.Failed() {
		t.Logf("%s", page[len(intro):])
	}
}

func TestRefusesBrokenRows(t *testing.T) {
	for name, render := range pages {
		if _, err := render([]provider{{"Acme", []rs.Operation{{Name: "x"}}}}); err == nil || !strings.HasPrefix(err.Error(), "Acme: operation") {
			t.Errorf("%s: a broken row: %v", name, err)
		}
	}
}

func TestRun(t *testing.T) {
	folder := t.TempDir()
	if err := run([]string{folder}); err != nil {
		t.Fatal(err)
	}
	for name := range pages {
		if data, err := os.ReadFile(filepath.Join(folder, name)); err != nil || !bytes.HasPrefix(data, []byte("<!-- Generated")) {
			t.Errorf("%s holds %.20q, %v", name, data, err)
		}
	}
	if err := run([]string{filepath.Join(folder, "missing")}); err == nil {
		t.Error("a folder that is not there was written to")
	}
	if err := run(nil); err == nil || !strings.Contains(err.Error(), "give the folder") {
		t.Errorf("no argument: %v", err)
	}
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		24 * time.Hour: "24 h", 72 * time.Hour: "72 h", 30 * 24 * time.Hour: "30 days",
		90 * time.Minute: "90 min", 90 * time.Second: "1m30s",
	} {
		if got := span(d); got != want {
			t.Errorf("span(%v) = %q, want %q", d, got, want)
		}
	}
}
