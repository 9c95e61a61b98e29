package replaysemantics_test

import (
	"strings"
	"testing"
	"time"

	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// keyed and keyless are rows that work.
func keyed() rs.Operation {
	return rs.Operation{
		Name: "refund.create", Method: "POST", Path: "/v1/refunds/{id}",
		Keys: []rs.Place{rs.Header("Idempotency-Key"), rs.JSON("/a~1b/*/c~0")}, KeyMax: 36,
		Window: 24 * time.Hour, Resend: rs.Original, Failures: rs.Stored,
		Marks: []rs.Place{rs.Form("metadata[samekey]"), rs.Custom("variables")},
		Facts: []rs.Fact{{States: "window 24h", URL: "https://example.com/keys", Read: "2026-11-30", Grade: rs.Documented}},
	}
}

func keyless() rs.Operation {
	return rs.Operation{
		Name: "mail.send_now", Class: rs.Notification, Path: "/mail.v1.Mail/Send",
		Lookup: "list by mark", ResendAfterAbsence: true,
		Facts: []rs.Fact{{States: "takes no key", URL: "https://example.com/mail", Read: "2026-11-30"}},
	}
}

func TestCheckAccepts(t *testing.T) {
	if err := rs.Check([]rs.Operation{keyed(), keyless()}); err != nil {
		t.Error(err)
	}
	if err := rs.Check(nil); err != nil {
		t.Errorf("no rows: %v", err)
	}
}

// C16 and the zero values' caution: what cannot work is refused before the first
// call, with the row's name and what to change.
func TestCheckRefuses(t *testing.T) {
	fact := func(change func(*rs.Fact)) func(*rs.Operation) {
		return func(o *rs.Operation) { change(&o.Facts[0]) }
	}
	places := func(ps ...rs.Place) func(*rs.Operation) {
		return func(o *rs.Operation) { o.Sensitive = ps }
	}
	for name, c := range map[string]struct {
		row    func() rs.Operation
		change func(*rs.Operation)
		says   string
	}{
		"no name":               {keyed, func(o *rs.Operation) { o.Name = "" }, "Name needs the form"},
		"one word":              {keyed, func(o *rs.Operation) { o.Name = "refund" }, "Name needs the form"},
		"upper case":            {keyed, func(o *rs.Operation) { o.Name = "Refund.create" }, "Name needs the form"},
		"empty word":            {keyed, func(o *rs.Operation) { o.Name = "refund..create" }, "Name needs the form"},
		"line break":            {keyed, func(o *rs.Operation) { o.Name = "refund.create\n" }, "Name needs the form"},
		"method":                {keyed, func(o *rs.Operation) { o.Method = "post" }, `Method "post" is no HTTP method`},
		"no path":               {keyed, func(o *rs.Operation) { o.Path = "" }, "Path needs the form"},
		"path without slash":    {keyed, func(o *rs.Operation) { o.Path = "v1/refunds" }, "Path needs the form"},
		"path with query":       {keyed, func(o *rs.Operation) { o.Path = "/v1/refunds?x=1" }, "no query"},
		"path, open brace":      {keyed, func(o *rs.Operation) { o.Path = "/v1/{id" }, "a name in each pair of braces"},
		"path, no variable":     {keyed, func(o *rs.Operation) { o.Path = "/v1/{}" }, "a name in each pair of braces"},
		"selector":              {keyed, func(o *rs.Operation) { o.Selector = "create incident" }, `Selector "create incident" is no name`},
		"class":                 {keyed, func(o *rs.Operation) { o.Class = "money" }, `Class "money" is unknown`},
		"resend":                {keyed, func(o *rs.Operation) { o.Resend = "newest" }, `Resend "newest" is unknown`},
		"failures":              {keyed, func(o *rs.Operation) { o.Failures = "kept" }, `Failures "kept" is unknown`},
		"key too short":         {keyed, func(o *rs.Operation) { o.KeyMax = 35 }, "KeyMax is 35, but a key has 36 characters"},
		"negative limit":        {keyed, func(o *rs.Operation) { o.KeyMax = -1 }, "KeyMax is -1"},
		"negative window":       {keyed, func(o *rs.Operation) { o.Window = -1 }, "may not be negative"},
		"negative horizon":      {keyless, func(o *rs.Operation) { o.Horizon = -1 }, "may not be negative"},
		"keys, no resend":       {keyed, func(o *rs.Operation) { o.Resend = rs.Never }, "Keys and no Resend"},
		"resend, no keys":       {keyless, func(o *rs.Operation) { o.Resend = rs.Latest }, "a Resend and no Keys"},
		"window, no keys":       {keyless, func(o *rs.Operation) { o.Window = time.Hour }, "need Keys"},
		"failures, no keys":     {keyless, func(o *rs.Operation) { o.Failures = rs.Stored }, "need Keys"},
		"limit, no keys":        {keyless, func(o *rs.Operation) { o.KeyMax = 255 }, "need Keys"},
		"absence with keys":     {keyed, func(o *rs.Operation) { o.ResendAfterAbsence = true }, "rows without Keys"},
		"absence, no look-up":   {keyless, func(o *rs.Operation) { o.Lookup = "" }, "needs a Lookup"},
		"header name":           {keyed, places(rs.Header("Idempotency Key")), `Sensitive[0]: "Idempotency Key" is no header name`},
		"empty header":          {keyed, places(rs.Header("")), "is no header name"},
		"pointer without slash": {keyed, places(rs.Form("a"), rs.JSON("card/number")), `Sensitive[1]: "card/number" is no JSON pointer`},
		"pointer, bad escape":   {keyed, places(rs.JSON("/a~2")), "is no JSON pointer"},
		"pointer, open escape":  {keyed, places(rs.JSON("/a~")), "is no JSON pointer"},
		"empty field":           {keyed, places(rs.Form("")), "a place needs a name"},
		"blank custom":          {keyed, places(rs.Custom(" ")), "a place needs a name"},
		"kind of place":         {keyed, places(rs.Place{Name: "x"}), "use Header, Form, JSON or Custom"},
		"same place twice":      {keyed, places(rs.Form("a"), rs.Form("a")), "Sensitive[1] is there twice"},
		"bad key place":         {keyed, func(o *rs.Operation) { o.Keys[1] = rs.JSON("x") }, "Keys[1]:"},
		"quoted pointer":        {keyed, func(o *rs.Operation) { o.Keys[1].Quoted = true }, "only a key's header is Quoted"},
		"quoted mark":           {keyed, func(o *rs.Operation) { o.Marks = []rs.Place{rs.QuotedHeader("X-Mark")} }, "Marks[0]: only a key's header is Quoted"},
		"bad mark":              {keyed, func(o *rs.Operation) { o.Marks[1] = rs.JSON("x") }, "Marks[1]:"},
		"bad volatile":          {keyed, func(o *rs.Operation) { o.Volatile = []rs.Place{rs.JSON("x")} }, "Volatile[0]:"},
		"bad order-free":        {keyed, func(o *rs.Operation) { o.Unordered = []rs.Place{rs.JSON("x")} }, "Unordered[0]:"},
		"bad code":              {keyed, func(o *rs.Operation) { o.Codes = []rs.Place{rs.JSON("x")} }, "Codes[0]:"},
		"blank event type":      {keyed, func(o *rs.Operation) { o.ConclusiveEventTypes = []string{"refund.updated", ""} }, "ConclusiveEventTypes[1] is blank"},
		"no facts":              {keyed, func(o *rs.Operation) { o.Facts = nil }, "Facts are missing"},
		"fact without words":    {keyed, fact(func(f *rs.Fact) { f.States = "" }), "Facts[0]: States is missing"},
		"fact without source":   {keyed, fact(func(f *rs.Fact) { f.URL = "the docs" }), "Facts[0]: URL needs"},
		"fact without day":      {keyed, fact(func(f *rs.Fact) { f.Read = "" }), "Facts[0]: Read needs"},
		"no such day":           {keyed, fact(func(f *rs.Fact) { f.Read = "2026-11-31" }), "Facts[0]: Read needs"},
		"grade":                 {keyed, fact(func(f *rs.Fact) { f.Grade = "sure" }), `Facts[0]: Grade "sure" is unknown`},
	} {
		o := c.row()
		c.change(&o)
		err := rs.Check([]rs.Operation{o})
		if err == nil || !strings.Contains(err.Error(), c.says) || !strings.HasPrefix(err.Error(), "operation ") {
			t.Errorf("%s: %v, want the operation's name and %q", name, err, c.says)
		}
	}
}

// R5, C05: a name is part of every key and a request leads to one row, so both
// are unique; variables of another name are no other route.
func TestCheckUnique(t *testing.T) {
	a, b := keyed(), keyed()
	b.Name, b.Path = "refund.cancel", "/v1/refunds/{refund}"
	err := rs.Check([]rs.Operation{a, b})
	if err == nil || !strings.Contains(err.Error(), `"refund.cancel": its route POST /v1/refunds/{} is that of "refund.create"`) {
		t.Errorf("one route in two rows: %v", err)
	}
	b.Method = "DELETE"
	if err := rs.Check([]rs.Operation{a, b}); err != nil {
		t.Errorf("another method: %v", err)
	}
	b.Method, b.Selector = a.Method, "cancelRefund"
	if err := rs.Check([]rs.Operation{a, b}); err != nil {
		t.Errorf("one route, told apart by a selector: %v", err)
	}
	b.Name = a.Name
	if err := rs.Check([]rs.Operation{a, b}); err == nil || !strings.Contains(err.Error(), `"refund.create": the name stands in two rows`) {
		t.Errorf("one name in two rows: %v", err)
	}
}

// Everything that is wrong is said at once, one line each.
func TestCheckSaysAll(t *testing.T) {
	a, b := keyed(), keyless()
	a.KeyMax, a.Facts = 20, nil
	b.Class = "mail"
	err := rs.Check([]rs.Operation{a, b})
	if err == nil {
		t.Fatal("no error")
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 3 {
		t.Errorf("%d lines, want 3:\n%v", len(lines), err)
	}
	for i, name := range []string{a.Name, a.Name, b.Name} {
		if i < len(lines) && !strings.HasPrefix(lines[i], `operation "`+name+`": `) {
			t.Errorf("line %d does not name %s: %s", i+1, name, lines[i])
		}
	}
}

func TestFind(t *testing.T) {
	rows := []rs.Operation{keyed(), keyless()}
	if o, ok := rs.Find(rows, "mail.send_now"); !ok || o.Path != "/mail.v1.Mail/Send" {
		t.Errorf("Find = %q, %v", o.Path, ok)
	}
	if o, ok := rs.Find(rows, "mail.send"); ok || o.Name != "" {
		t.Errorf("Find of an unknown name = %q, %v", o.Name, ok)
	}
}

func TestHasKey(t *testing.T) {
	if !keyed().HasKey() || keyless().HasKey() {
		t.Error("HasKey is not whether the row has Keys")
	}
}

// The zero values are the cautious ones: nothing is sent twice, a failure is not
// final, and records are kept longest.
func TestZeroValues(t *testing.T) {
	var o rs.Operation
	if o.Resend != rs.Never || o.Failures != rs.RunAgain || o.Class != rs.Money || o.Class.String() != "money" || (rs.Fact{}).Grade != rs.Unverified {
		t.Errorf("the zero row: %+v", o)
	}
	if rs.Object.String() != "object" || rs.Notification.String() != "notification" {
		t.Error("a class does not print as its name")
	}
}
