package httpadapter

import (
	"errors"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/seed-6b5e302b/samekey/outbound"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

func fields(pairs ...string) (f []outbound.Field) {
	for i := 0; i < len(pairs); i += 2 {
		f = append(f, outbound.Field{Name: pairs[i], Value: pairs[i+1]})
	}
	return f
}

// A frozen message holds neither credentials nor key nor anything else in no
// list, and its headers have one order.
func TestFreezeKeepsWhatIsFrozen(t *testing.T) {
	a := adapter(t, config("https://api.test/base/"))
	f, err := a.Freeze(charge, outbound.Message{
		Method: "POST",
		Target: "https://API.test:443/base/v1/charges?expand[]=a",
		Header: fields("prefer", "return=minimal", "authorization", "Bearer x", "idempotency-key", "mine", "content-type", formType,
			"traceparent", "00-1", "User-Agent", "sdk", "api-version", " 7 ", "Cookie", "a=b"),
		Body: []byte("b=2&a=1"),
	}, "mark")
	if err != nil {
		t.Fatal(err)
	}
	want := outbound.Message{
		Method: "POST", Target: "/v1/charges?expand[]=a",
		Header: fields("Api-Version", "7", "Content-Type", formType, "Prefer", "return=minimal"),
		Body:   []byte("b=2&a=1&metadata%5Bmark%5D=mark"),
	}
	if !reflect.DeepEqual(f.Message, want) || f.Sensitive {
		t.Errorf("frozen = %+v, want %+v", f, want)
	}
}

// C12: marks are stamped before the first delivery, and only where the caller
// left their place free.
func TestFreezeMarks(t *testing.T) {
	a := adapter(t, config("https://api.test"))
	for _, tt := range []struct {
		op                      rs.Operation
		contentType, body, want string
	}{
		{charge, formType, "a=1", "a=1&metadata%5Bmark%5D=M"},
		{charge, "", "", "metadata%5Bmark%5D=M"},
		{charge, formType, "metadata[mark]=own", "metadata[mark]=own"},
		{charge, formType, "metadata[mark]=&a=1", "a=1&metadata%5Bmark%5D=M"},
		{charge, formType, "metadata=", "metadata="},
		{charge, "text/plain", "x", "x"},
		{order, jsonType, ``, `{"note":{"mark":"M"}}`},
		{order, jsonType, `{"note":"own"}`, `{"note":"own"}`},
		{order, jsonType, `{ "note": {"mark":"own"} }`, `{ "note": {"mark":"own"} }`},
		{order, jsonType, `{"note":{"mark":null},"units":[{"mark":"own","n":1.50},{"mark":""}]}`, `{"note":{"mark":"M"},"units":[{"mark":"own","n":1.50},{"mark":"M"}]}`},
		{order, "application/vnd.x+json; charset=utf-8", `{"request":{"id":"chosen"},"note":[]}`, `{"note":[],"request":{}}`},
	} {
		m := outbound.Message{Method: tt.op.Method, Target: tt.op.Path, Body: []byte(tt.body)}
		if tt.contentType != "" {
			m.Header = fields("Content-Type", tt.contentType)
		}
		op := tt.op
		if tt.contentType == "text/plain" {
			op.Keys = charge.Keys
		}
		f, err := a.Freeze(op, m, "M")
		if err != nil || string(f.Message.Body) != tt.want {
			t.Errorf("%s %q: body %s, %v, want %s", tt.op.Name, tt.body, f.Message.Body, err, tt.want)
		}
		if fieldValue(f.Message.Header, "Content-Type") == "" {
			t.Errorf("%s %q: a body without a Content-Type", tt.op.Name, tt.body)
		}
	}
}

// A request that fills a sensitive field or a security code is never stored.
func TestFreezeFindsSensitiveFields(t *testing.T) {
	a := adapter(t, config("https://api.test"))
	multi := "--B\r\nContent-Disposition: form-data; name=\"card[number]\"\r\n\r\n4111\r\n--B--\r\n"
	for _, tt := range []struct {
		op                       rs.Operation
		contentType, query, body string
		sensitive                bool
	}{
		{charge, formType, "", "card[number]=4111", true},
		{charge, formType, "", "card%5Bcvc%5D=1", true},
		{charge, formType, "?card[number]=4111", "a=1", true},
		{charge, formType, "", "card[number]=&card[exp]=1", false},
		{charge, "multipart/form-data; boundary=B", "", multi, true},
		{order, jsonType, "", `{"card":{"number":"4111"}}`, true},
		{order, jsonType, "", `{"card":{"cvc":1}}`, true},
		{order, jsonType, "", `{"card":{"number":null,"cvc":""}}`, false},
	} {
		f, err := a.Freeze(tt.op, outbound.Message{
			Method: "POST", Target: tt.op.Path + tt.query, Header: fields("Content-Type", tt.contentType), Body: []byte(tt.body),
		}, "")
		if err != nil || f.Sensitive != tt.sensitive {
			t.Errorf("%s: sensitive = %t, %v, want %t", tt.body, f.Sensitive, err, tt.sensitive)
		}
	}
}

// What is refused is refused with an error that says why and shows no values.
func TestFreezeRefuses(t *testing.T) {
	a := adapter(t, config("https://api.test/base"))
	json := fields("Content-Type", jsonType)
	form := fields("Content-Type", formType)
	for name, m := range map[string]outbound.Message{
		"another host":        {Method: "POST", Target: "https://evil.test/base/v1/charges"},
		"host without scheme": {Method: "POST", Target: "//evil.test/v1/charges"},
		"plain text":          {Method: "POST", Target: "http://api.test/base/v1/charges"},
		"outside the base":    {Method: "POST", Target: "https://api.test/v1/charges"},
		"credentials":         {Method: "POST", Target: "https://4111@api.test/base/v1/charges"},
		"dots":                {Method: "POST", Target: "/v1/x/../charges"},
		"escaped dots":        {Method: "POST", Target: "/v1/%2e%2E/charges"},
		"dots behind a slash": {Method: "POST", Target: "/v1/x%2f..%2fcharges"},
		"fragment":            {Method: "POST", Target: "/v1/charges#4111"},
		"relative":            {Method: "POST", Target: "v1/charges"},
		"no URL":              {Method: "POST", Target: "https://%zz4111"},
		"control":             {Method: "POST", Target: "/v1/char%0ages"},
		"long":                {Method: "POST", Target: "/v1/charges?" + strings.Repeat("4111", 5000)},
		"another method":      {Method: "PUT", Target: "/v1/charges"},
		"another path":        {Method: "POST", Target: "/v1/refunds"},
		"query":               {Method: "POST", Target: "/v1/charges?a=%zz4111"},
		"header":              {Method: "POST", Target: "/v1/charges", Header: fields("Prefer", "a\r\nX: 4111")},
		"long header":         {Method: "POST", Target: "/v1/charges", Header: fields("Prefer", strings.Repeat("4111", 20000))},
		"content type":        {Method: "POST", Target: "/v1/charges", Header: fields("Content-Type", "4111/;;"), Body: []byte("x")},
		"form":                {Method: "POST", Target: "/v1/charges", Header: form, Body: []byte("a=%4111%zz")},
		"semicolon":           {Method: "POST", Target: "/v1/charges", Header: form, Body: []byte("a=1;b=4111")},
		"JSON":                {Method: "POST", Target: "/v1/charges", Header: json, Body: []byte(`{"a":4111`)},
		"member twice":        {Method: "POST", Target: "/v1/charges", Header: json, Body: []byte(`{"a":4111,"a":2}`)},
		"half a surrogate":    {Method: "POST", Target: "/v1/charges", Header: json, Body: []byte(`{"a":"4111\ud800"}`)},
		"rounded number":      {Method: "POST", Target: "/v1/charges", Header: json, Body: []byte(`{"a":41111111111111111111}`)},
		"vanishing number":    {Method: "POST", Target: "/v1/charges", Header: json, Body: []byte(`{"a":4111e-999}`)},
		"deep":                {Method: "POST", Target: "/v1/charges", Header: json, Body: []byte(strings.Repeat("[", 101) + "4111" + strings.Repeat("]", 101))},
		"multipart":           {Method: "POST", Target: "/v1/charges", Header: fields("Content-Type", "multipart/form-data"), Body: []byte("4111")},
		"parts":               {Method: "POST", Target: "/v1/charges", Header: fields("Content-Type", "multipart/form-data; boundary=B"), Body: []byte("--B\r\n4111")},
	} {
		f, err := a.Freeze(charge, m, "")
		if err == nil {
			t.Errorf("%s: frozen as %+v, want an error", name, f)
			continue
		}
		if strings.Contains(err.Error(), "4111") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: the error is more than one line without values: %q", name, err)
		}
		if err := a.Canonical(&strings.Builder{}, 1, charge, m, true); err == nil {
			t.Errorf("%s: it has a canonical form", name)
		}
	}
	// A message that cannot carry its key is refused before anything is stored.
	if _, err := a.Freeze(order, outbound.Message{Method: "POST", Target: order.Path, Header: json, Body: []byte(`[]`)}, ""); err == nil {
		t.Error("a body without a place for the key was frozen")
	}
}

type checking struct{ judge }

func (checking) Check(_ rs.Operation, m outbound.Message) error {
	if !strings.Contains(string(m.Body), "amount=") {
		return errors.New("state the amount")
	}
	return nil
}

func TestFreezeAsksTheChecker(t *testing.T) {
	a := New(checking{}, config("https://api.test"))
	if _, err := a.Freeze(charge, FormCall(charge, outbound.Command{}, nil, nil).Message, ""); err == nil || err.Error() != "state the amount" {
		t.Errorf("error = %v, want the checker's", err)
	}
	if _, err := a.Freeze(charge, chargeCall().Message, ""); err != nil {
		t.Error(err)
	}
}

func TestFurtherHosts(t *testing.T) {
	cfg := config("https://api.test")
	cfg.Hosts = []string{"Files.test", "up.test:8443"}
	a := adapter(t, cfg)
	for target, want := range map[string]string{
		"https://files.test/v1/charges":         "https://files.test/v1/charges",
		"https://FILES.test:443/v1/charges?a=b": "https://files.test/v1/charges?a=b",
		"https://up.test:8443/v1/charges":       "https://up.test:8443/v1/charges",
		"https://up.test/v1/charges":            "",
		"http://files.test/v1/charges":          "",
	} {
		f, err := a.Freeze(charge, outbound.Message{Method: "POST", Target: target}, "")
		if f.Message.Target != want || (err == nil) != (want != "") {
			t.Errorf("%s: frozen as %q, %v, want %q", target, f.Message.Target, err, want)
		}
	}
}

func TestProfile(t *testing.T) {
	a := adapter(t, config("https://api.test"))
	p, err := a.Profile()
	if err != nil || p.Provider != "test" || p.Account != "A1" || p.Mode != "test" || len(p.Operations) != 5 || !reflect.DeepEqual(p.Canonicals, []int{1}) || !p.Credentials {
		t.Errorf("Profile = %+v, %v", p, err)
	}
	cfg := config("https://api.test")
	cfg.NeedsCaller = true
	if p, err := New(judge{}, cfg).Profile(); err != nil || p.Credentials {
		t.Errorf("an adapter that needs the caller's credentials claims its own (%v)", err)
	}
	own := errors.New("the secret is empty")
	for name, spoil := range map[string]func(c *Config){
		"no provider":     func(c *Config) { c.Provider = "" },
		"no account":      func(c *Config) { c.Account = " " },
		"no mode":         func(c *Config) { c.Mode = "" },
		"no URL":          func(c *Config) { c.BaseURL = "api.test" },
		"URL with query":  func(c *Config) { c.BaseURL = "https://api.test?a=b" },
		"URL as a host":   func(c *Config) { c.Hosts = []string{"https://files.test/"} },
		"no rows":         func(c *Config) { c.Operations = nil },
		"own":             func(c *Config) { c.SettingsErr = own },
		"frozen secret":   func(c *Config) { c.Frozen = []string{"AUTHORIZATION"} },
		"gRPC":            func(c *Config) { c.Operations[0].Method = "" },
		"short key":       func(c *Config) { c.Operations[0].KeyMax = 20 },
		"path":            func(c *Config) { c.Operations[0].Path = "/v1/{id}:cancel" },
		"key as secret":   func(c *Config) { c.Operations[0].Keys = []rs.Place{rs.Header("authorization")} },
		"many key places": func(c *Config) { c.Operations[0].Keys = []rs.Place{rs.JSON("/a/*/id")} },
		"custom volatile": func(c *Config) { c.Operations[0].Volatile = []rs.Place{rs.Custom("x")} },
		"one route":       func(c *Config) { c.Operations[1].Path = c.Operations[0].Path },
	} {
		cfg := config("https://api.test")
		spoil(&cfg)
		if _, err := New(judge{}, cfg).Profile(); err == nil || name == "own" && !errors.Is(err, own) {
			t.Errorf("%s: error = %v, want one that says so", name, err)
		}
	}
	if _, err := New(nil, config("https://api.test")).Profile(); err == nil {
		t.Error("an adapter without a codec was accepted")
	}
}

func TestMatch(t *testing.T) {
	fixed := rs.Operation{Name: "charge.search", Method: "POST", Path: "/v1/charges/search/capture", Facts: fact()}
	cfg := config("https://api.test/base")
	cfg.Hosts = []string{"files.test"}
	a := adapter(t, cfg).With(fixed)
	if _, err := a.Profile(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ method, url, want string }{
		{"POST", "https://api.test/base/v1/charges", "charge.create"},
		{"POST", "https://api.test/base/v1/%63harges?x=1", "charge.create"},
		{"POST", "https://files.test/v1/charges", "charge.create"},
		{"POST", "https://api.test/base/v1/charges/ch_1/capture", "charge.capture"},
		{"POST", "https://api.test/base/v1/charges/a%2Fb/capture", "charge.capture"},
		{"POST", "https://api.test/base/v1/charges/search/capture", "charge.search"},
		{"POST", "https://api.test/base/v1/charges/search/void", "charge.void"},
		{"POST", "https://api.test/base/v1/charges//capture", ""},
		{"POST", "https://api.test/base/v1/charges/", ""},
		{"POST", "https://api.test/v1/charges", ""},
		{"POST", "https://api.test/basement/v1/charges", ""},
		{"GET", "https://api.test/base/v1/charges", ""},
		{"POST", "https://evil.test/base/v1/charges", ""},
		{"POST", "https://api.test/base/v1/charges/../charges", ""},
	} {
		u, err := url.Parse(tt.url)
		if err != nil {
			t.Fatal(err)
		}
		op, ok := a.Match(&http.Request{Method: tt.method, URL: u})
		if op.Name != tt.want || ok != (tt.want != "") {
			t.Errorf("%s %s is %q, want %q", tt.method, tt.url, op.Name, tt.want)
		}
	}
}
