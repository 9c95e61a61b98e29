package httpadapter

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/seed-6b5e302b/samekey/outbound"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// R2: the key goes where the provider wants it, and only at the delivery.
func TestKeyPlaces(t *testing.T) {
	p := serve(t, func(w http.ResponseWriter, _ *http.Request, _ int) { ok(w) })
	a := adapter(t, config(p.URL))
	raw, mark := key(t).Raw(), key(t).Mark()
	for _, tt := range []struct {
		call         outbound.Call
		header, body string
	}{
		{chargeCall(), raw, "amount=1250&note=a+b%26c&metadata%5Bmark%5D=" + mark},
		{captureCall(), raw, ""},
		{
			FormCall(payout, outbound.Command{ID: "cmd_1"}, nil, url.Values{"amount": {"1"}, "request_id": {"chosen"}}), "",
			"amount=1&request_id=" + raw,
		},
		{
			JSONCall(order, outbound.Command{ID: "cmd_1"}, nil, map[string]any{"units": []any{map[string]any{}, map[string]any{"mark": "own"}}}), "",
			`{"note":{"mark":"` + mark + `"},"request":{"id":"` + raw + `"},"units":[{"mark":"` + mark + `"},{"mark":"own"}]}`,
		},
	} {
		d := delivery(t, a, tt.call)
		for _, f := range d.Message.Header {
			if strings.Contains(f.Value, raw) {
				t.Errorf("%s: the frozen message holds the key", tt.call.Operation)
			}
		}
		if strings.Contains(string(d.Message.Body), raw) || strings.Contains(string(d.Message.Body), "chosen") {
			t.Errorf("%s: the frozen body holds a key: %s", tt.call.Operation, d.Message.Body)
		}
		if v := a.Send(t.Context(), d); v[0].Effect != outbound.EffectApplied {
			t.Fatalf("%s: %+v", tt.call.Operation, v)
		}
		got := p.received()
		if last := got[len(got)-1]; last.key != tt.header || last.body != tt.body {
			t.Errorf("%s: header %q and body %s, want %q and %s", tt.call.Operation, last.key, last.body, tt.header, tt.body)
		}
	}
}

// custom places key and mark itself.
type custom struct{ judge }

func (custom) PlaceKey(_ rs.Operation, body []byte, key string) ([]byte, error) {
	return append(slices.Clone(body), "|key="+key...), nil
}

func (custom) PlaceMark(_ rs.Operation, body []byte, mark string) ([]byte, error) {
	return append(slices.Clone(body), "|mark="+mark...), nil
}

func TestCustomPlaces(t *testing.T) {
	p := serve(t, func(w http.ResponseWriter, _ *http.Request, _ int) { ok(w) })
	row := rs.Operation{
		Name: "thing.create", Method: "POST", Path: "/graphql", Resend: rs.Original, Facts: fact(),
		Keys: []rs.Place{rs.Custom("input.id")}, Marks: []rs.Place{rs.Custom("input.mark")},
	}
	cfg := config(p.URL)
	cfg.Operations = []rs.Operation{row}
	a := New(custom{}, cfg)
	if _, err := a.Profile(); err != nil {
		t.Fatal(err)
	}
	call := outbound.Call{Operation: row.Name, Message: outbound.Message{Method: "POST", Target: "/graphql", Body: []byte("query")}}
	if v := a.Send(t.Context(), delivery(t, a, call)); v[0].Effect != outbound.EffectApplied {
		t.Fatalf("verdicts = %+v", v)
	}
	if got, want := p.received()[0].body, "query|mark="+key(t).Mark()+"|key="+key(t).Raw(); got != want {
		t.Errorf("body = %s, want %s", got, want)
	}
	if _, err := New(judge{}, cfg).Profile(); err == nil {
		t.Error("a codec that places nothing was accepted for custom places")
	}
}

// What is kept of an answer holds no cookies, nothing of the connection, and not
// the raw key, which some providers echo (R14).
func TestAnswerHeaders(t *testing.T) {
	p := serve(t, func(w http.ResponseWriter, r *http.Request, _ int) {
		h := w.Header()
		h.Set("Idempotency-Key", r.Header.Get("Idempotency-Key"))
		h.Set("Set-Cookie", "session=1")
		h.Set("Connection", "X-Hop")
		h.Set("X-Hop", "1")
		h.Add("X-Two", "a")
		h.Add("X-Two", "b")
		h.Set("A-Big", strings.Repeat("x", maxHeader))
		h.Set("Request-Id", "req_1")
		ok(w)
	})
	a := adapter(t, config(p.URL))
	v := a.Send(t.Context(), delivery(t, a, chargeCall()))
	var got []string
	for _, f := range v[0].Answer.Header {
		if f.Name != "Date" && f.Name != "Content-Type" {
			got = append(got, f.Name+"="+f.Value)
		}
	}
	if want := []string{"Request-Id=req_1", "X-Two=a", "X-Two=b"}; !slices.Equal(got, want) {
		t.Errorf("kept headers = %v, want %v", got, want)
	}
	if v[0].Answer.Status != http.StatusOK || string(v[0].Answer.Body) != `{"id":"ch_1"}` {
		t.Errorf("answer = %+v, want it as it came", v[0].Answer)
	}
}

// seeker looks an effect up by one GET.
type seeker struct {
	judge
	target string
}

func (s seeker) Find(ctx context.Context, get Get, _ *outbound.Lookup) (outbound.Finding, error) {
	x, err := get(ctx, s.target, url.Values{"limit": {"3"}})
	if err != nil {
		return outbound.Finding{}, err
	}
	return outbound.Finding{Effect: outbound.EffectApplied, ExternalRef: string(x.Body), ObjectStatus: http.StatusText(x.Status)}, nil
}

func lookupConfig(baseURL string) (Config, rs.Operation) {
	row := charge
	row.Lookup = "by id"
	cfg := config(baseURL)
	cfg.Operations = []rs.Operation{row}
	return cfg, row
}

func TestFind(t *testing.T) {
	var version string
	p := serve(t, func(w http.ResponseWriter, r *http.Request, _ int) {
		version = r.Header.Get("API-Version")
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, "nothing")
	})
	cfg, row := lookupConfig(p.URL)
	a := New(seeker{target: "/v1/charges/ch_1?expand=x"}, cfg)
	m := outbound.Message{Header: []outbound.Field{{Name: "Api-Version", Value: "7"}, {Name: "Content-Type", Value: formType}}}
	f, err := a.Find(t.Context(), &outbound.Lookup{Operation: row, Account: "A1", Message: m, Credentials: []outbound.Field{{Name: "Authorization", Value: "Bearer own"}}})
	if err != nil || f.ExternalRef != "nothing" || f.ObjectStatus != "Not Found" {
		t.Fatalf("Find = %+v, %v, want the 404 as an answer", f, err)
	}
	got := p.received()[0]
	if got.method != "GET" || got.target != "/v1/charges/ch_1?expand=x&limit=3" || got.authorization != "Bearer own" || got.contentType != "" || got.key != "" {
		t.Errorf("look-up = %+v, want an authorised GET", got)
	}
	if version != "7" {
		t.Errorf("the look-up asked for version %q, want the operation's own", version)
	}
}

// C24: a look-up that fails is an error, which is unknown. Credentials go to no
// other host.
func TestFindFails(t *testing.T) {
	p := serve(t, func(w http.ResponseWriter, _ *http.Request, _ int) {
		w.Header().Set("Content-Length", "100")
		io.WriteString(w, "part")
	})
	cfg, row := lookupConfig(p.URL)
	for _, target := range []string{"/v1/charges", "https://evil.test/v1/charges", "//evil.test/x", "/v1/../admin", "/%2e%2e/x"} {
		if f, err := New(seeker{target: target}, cfg).Find(t.Context(), &outbound.Lookup{Operation: row}); err == nil {
			t.Errorf("%s: finding %+v, want an error", target, f)
		}
	}
	if n := len(p.received()); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
	if _, err := New(judge{}, cfg).Find(t.Context(), &outbound.Lookup{Operation: row}); err == nil {
		t.Error("a codec that is no Finder found something")
	}
	if _, err := New(judge{}, cfg).Profile(); err == nil {
		t.Error("a row with a Lookup was accepted for a codec that is no Finder")
	}
	cfg.MaxBody = 3
	long := serve(t, func(w http.ResponseWriter, _ *http.Request, _ int) { io.WriteString(w, "long") })
	cfg.BaseURL = long.URL
	if _, err := New(seeker{target: "/x"}, cfg).Find(t.Context(), &outbound.Lookup{Operation: row}); err == nil {
		t.Error("an oversized answer was read")
	}
}

func TestFindRenewsCredentials(t *testing.T) {
	p := serve(t, func(w http.ResponseWriter, r *http.Request, _ int) {
		if r.Header.Get("Authorization") != "Bearer new" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	s := &tokens{current: "old"}
	cfg, row := lookupConfig(p.URL)
	cfg.Authorize, cfg.Refresh = s.authorize, s.refresh
	f, err := New(seeker{target: "/x"}, cfg).Find(t.Context(), &outbound.Lookup{Operation: row})
	if err != nil || f.ObjectStatus != "OK" || s.refreshes != 1 {
		t.Errorf("Find = %+v, %v after %d refreshes, want one refresh and an answer", f, err, s.refreshes)
	}
}

// What could not be sent is refused before the wire.
func TestSendRefusesWhatCannotBeSent(t *testing.T) {
	a := adapter(t, config("https://api.test"))
	good := delivery(t, a, chargeCall())
	for name, spoil := range map[string]func(d *outbound.Delivery){
		"another host": func(d *outbound.Delivery) { d.Message.Target = "https://evil.test/v1/charges" },
		"no key":       func(d *outbound.Delivery) { d.Key = delivery(t, a, voidCall()).Key },
		"body": func(d *outbound.Delivery) {
			d.Operation = order
			d.Message.Body, d.Message.Header = []byte("[1]"), []outbound.Field{{Name: "Content-Type", Value: jsonType}}
		},
	} {
		d := *good
		spoil(&d)
		v := a.Send(t.Context(), &d)
		if len(v) != 1 || v[0].Effect != outbound.EffectNone || v[0].Code != outbound.ErrInvalid || v[0].Deliveries != 0 || v[0].Err == nil {
			t.Errorf("%s: %+v, want one refusal", name, v)
		}
	}
	if errors.Is(errNoAnswer(1), context.DeadlineExceeded) {
		t.Error("the attempt's limit passes for a context's")
	}
}
