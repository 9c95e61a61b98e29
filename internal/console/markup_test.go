package console_test

import (
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

// checkHeaders holds every answer to the policy: nothing but the console's own style
// and pictures, no frame, no copy kept.
func checkHeaders(t testing.TB, where string, h http.Header) {
	t.Helper()
	for name, want := range map[string]string{
		"Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
		"Cache-Control":           "no-store",
		"X-Content-Type-Options":  "nosniff",
		"Referrer-Policy":         "same-origin",
	} {
		if got := h.Get(name); got != want {
			t.Errorf("%s: %s is %q, want %q", where, name, got, want)
		}
	}
}

// element is one of a page, with all that is in it.
type element struct {
	name  string
	attrs map[string]string
	text  string
	in    []*element
}

// checkPage holds a page to what people without sight, and browsers without
// JavaScript, need, and to what no page may hold.
func checkPage(t testing.TB, where, page string) {
	t.Helper()
	wrong := func(text string, args ...any) { t.Helper(); t.Errorf(where+": "+text, args...) }
	for _, secret := range []string{apiKey, token, string(sealKey.Bytes)} {
		if strings.Contains(page, secret) {
			wrong("it holds a secret")
		}
	}
	for _, barred := range []string{"<script", " style=", "javascript:", "://"} {
		for rest := page; strings.Contains(rest, barred); _, rest, _ = strings.Cut(rest, barred) {
			wrong("it holds %q", barred)
			break
		}
	}
	root := parse(t, page)
	ids, labelled := map[string]int{}, map[string]bool{}
	counts := map[string]int{}
	root.each(func(e *element) {
		counts[e.name]++
		if id := e.attrs["id"]; id != "" {
			ids[id]++
		}
		if e.name == "label" {
			labelled[e.attrs["for"]] = true
		}
	})
	if counts["h1"] != 1 || counts["main"] != 1 || counts["title"] < 1 || root.find("html").attrs["lang"] != "en" {
		wrong("it wants one h1, one main, a title and a language: %v", counts)
	}
	for id, n := range ids {
		if n > 1 {
			wrong("%d elements have the id %q", n, id)
		}
	}
	root.each(func(e *element) { checkElement(e, ids, labelled, wrong) })
}

func checkElement(e *element, ids map[string]int, labelled map[string]bool, wrong func(string, ...any)) {
	switch e.name {
	case "input", "select", "textarea":
		if e.attrs["type"] != "hidden" && !labelled[e.attrs["id"]] {
			wrong("the field %q has no label", e.attrs["name"])
		}
	case "table":
		if e.find("caption") == nil {
			wrong("a table has no caption")
		}
	case "th":
		if e.attrs["scope"] == "" {
			wrong("a table's heading has no scope")
		}
	case "svg":
		if e.attrs["role"] != "img" || e.find("title") == nil || e.find("desc") == nil {
			wrong("a drawing does not say what it shows")
		}
	case "form":
		if e.attrs["method"] == "post" && e.attrs["action"] != "/login" && !e.has("name", "csrf") {
			wrong("the form of %s has no token", e.attrs["action"])
		}
	}
	for _, name := range []string{"href", "src", "action"} {
		if to, there := e.attrs[name]; there && !strings.HasPrefix(to, "#") && (!strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//")) {
			wrong("%s leads to %q", e.name, to)
		}
	}
	for _, name := range []string{"aria-labelledby", "for"} {
		for id := range strings.FieldsSeq(e.attrs[name]) {
			if ids[id] == 0 {
				wrong("%s of %s names %q, which is not there", name, e.name, id)
			}
		}
	}
}

func (e *element) each(do func(*element)) {
	do(e)
	for _, child := range e.in {
		child.each(do)
	}
}

func (e *element) find(name string) (first *element) {
	e.each(func(one *element) {
		if first == nil && one.name == name {
			first = one
		}
	})
	return first
}

func (e *element) has(attr, value string) (found bool) {
	e.each(func(one *element) { found = found || one.attrs[attr] == value })
	return found
}

// parse reads a page as a tree. Elements that HTML does not close are closed.
func parse(t testing.TB, page string) *element {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(page))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	root := &element{name: "page"}
	open := []*element{root}
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			return root
		}
		if err != nil {
			t.Fatalf("the page is not well-formed: %v\n%s", err, page)
		}
		last := open[len(open)-1]
		switch tok := tok.(type) {
		case xml.StartElement:
			e := &element{name: tok.Name.Local, attrs: map[string]string{}}
			for _, a := range tok.Attr {
				e.attrs[a.Name.Local] = a.Value
			}
			last.in = append(last.in, e)
			open = append(open, e)
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			last.text += string(tok)
		}
	}
}
