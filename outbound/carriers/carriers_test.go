package carriers_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/internal/fakeincident"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/carriers"
	"github.com/seed-6b5e302b/samekey/outbound/graphqladapter"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/memory"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

var (
	fact  = rs.Fact{States: "keys are kept for a day", URL: "https://incidents.test/handbook", Read: "2026-12-01", Grade: rs.Documented}
	alert = fakeincident.Alert{Alert: "a-17", Service: "checkout"}
	cmd   = outbound.Command{ID: "alert-a-17"}
)

func config(base string, rows ...rs.Operation) httpadapter.Config {
	return httpadapter.Config{Provider: "incidents", Account: "eu", Mode: "test", BaseURL: base, Operations: rows,
		Authorize: func(context.Context, string, []outbound.Field, *http.Request) error { return nil }}
}

func row() rs.Operation {
	return rs.Operation{
		Name: "incident.create", Method: http.MethodPost, Path: "/v1/incidents", Keys: []rs.Place{rs.Header("Idempotency-Key")},
		Window: 24 * time.Hour, Resend: rs.Original, Facts: []rs.Fact{fact},
	}
}

func rest(base string) carriers.Carrier {
	return carriers.Carrier{Name: "rest", Adapter: httpadapter.New(httpadapter.Plain{}, config(base, row())), Encode: carriers.Body}
}

func graphql(base string) carriers.Carrier {
	m := graphqladapter.Mutation{
		Row:      graphqladapter.Operation("incident.create", "createIncident", "idempotencyKey", 24*time.Hour, fact),
		Document: "mutation M($input: In!) { createIncident(input: $input) { id } }",
	}
	return carriers.Carrier{Name: "graphql", Adapter: graphqladapter.New(config(base), nil, m), Encode: m.Encode, Decode: m.Decode}
}

func serve(t *testing.T, s *fakeincident.Service) string {
	t.Helper()
	server := httptest.NewServer(s.Handler())
	t.Cleanup(server.Close)
	return server.URL
}

func client(t *testing.T, a outbound.Adapter, ledger recordstore.Store, bodies outbound.Sealer) *outbound.Client {
	t.Helper()
	c, err := outbound.New(a, ledger, &outbound.Options{Bodies: bodies, Retry: outbound.Retry{Attempts: 1}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.WithoutCancel(t.Context())) })
	return c
}

func open(t *testing.T, c *outbound.Client) (*outbound.Reply, error) {
	t.Helper()
	return c.Do(t.Context(), carriers.Call("incident.create", cmd, alert))
}

func apart(ways ...carriers.Carrier) *carriers.Adapter {
	return carriers.New(carriers.Config{Carriers: ways})
}

// R8: with keys apart the record is the only memory of the way that a command went, so a
// request that cannot be kept, or not be read again, is not sent.
func TestTheRecordMustBeKept(t *testing.T) {
	t.Parallel()
	seal := func(id string) outbound.Sealer {
		return outbound.Seal(outbound.SealKey{ID: id, Bytes: bytes.Repeat([]byte{id[0]}, 32)})
	}
	s := fakeincident.New(false)
	base, ledger := serve(t, s), memory.New(nil)
	if _, err := open(t, client(t, apart(rest(base), graphql(base)), ledger, outbound.NoBodies())); !errors.Is(err, outbound.ErrInvalid) {
		t.Errorf("no bodies: %v", err)
	}
	s.LoseNext(fakeincident.REST, 1)
	if _, err := open(t, client(t, apart(rest(base), graphql(base)), ledger, seal("a"))); !errors.Is(err, outbound.ErrUncertain) {
		t.Fatalf("lost answer: %v", err)
	}
	_, err := open(t, client(t, apart(graphql(base), rest(base)), ledger, seal("b")))
	if !errors.Is(err, outbound.ErrUncertain) || !strings.Contains(err.Error(), "cannot be read here") || len(s.Keys(fakeincident.GraphQL)) != 0 {
		t.Errorf("another seal key: %v", err)
	}
	keysOnly, err := outbound.New(apart(graphql(base), rest(base)), ledger, &outbound.Options{KeysOnly: func(context.Context) bool { return true }})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open(t, keysOnly); !errors.Is(err, outbound.ErrStore) || len(s.Keys(fakeincident.GraphQL)) != 0 {
		t.Errorf("without a ledger: %v", err)
	}
	if r, err := open(t, client(t, apart(graphql(base), rest(base)), ledger, seal("a"))); err != nil || r.ExternalRef != "inc_1" || len(s.Incidents()) != 1 {
		t.Errorf("in the end: %+v, %v, %d incidents", r, err, len(s.Incidents()))
	}
}

// R12: a fact that nobody has shown is none: keys count as apart.
func TestUnverifiedIsApart(t *testing.T) {
	t.Parallel()
	s := fakeincident.New(false)
	base, ledger := serve(t, s), memory.New(nil)
	believed := fact
	believed.Grade = rs.Unverified
	made := func(ways ...carriers.Carrier) *carriers.Adapter {
		return carriers.New(carriers.Config{Carriers: ways, SharedKeys: &believed})
	}
	s.LoseNext(fakeincident.REST, 1)
	if _, err := open(t, client(t, made(rest(base), graphql(base)), ledger, outbound.PlainBodies())); !errors.Is(err, outbound.ErrUncertain) {
		t.Fatal(err)
	}
	if r, err := open(t, client(t, made(graphql(base), rest(base)), ledger, outbound.PlainBodies())); err != nil || r.ExternalRef != "inc_1" || len(s.Keys(fakeincident.GraphQL)) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// R32: a service that begins with REST alone and gets carriers later keeps its records:
// no honest retry is a conflict, and an unknown outcome goes where it went before.
func TestFromOneAdapterToSeveral(t *testing.T) {
	t.Parallel()
	s := fakeincident.New(false)
	base, ledger := serve(t, s), memory.New(nil)
	s.LoseNext(fakeincident.REST, 1)
	alone := client(t, rest(base).Adapter, ledger, outbound.PlainBodies())
	call := httpadapter.JSONCall(row(), cmd, nil, alert)
	if _, err := alone.Do(t.Context(), call); !errors.Is(err, outbound.ErrUncertain) {
		t.Fatal(err)
	}
	several := carriers.New(carriers.Config{Carriers: []carriers.Carrier{graphql(base), rest(base)}, Before: "rest"})
	r, err := open(t, client(t, several, ledger, outbound.PlainBodies()))
	if err != nil || r.ExternalRef != "inc_1" || len(s.Incidents()) != 1 || len(s.Keys(fakeincident.GraphQL)) != 0 {
		t.Errorf("%+v, %v, %d incidents", r, err, len(s.Incidents()))
	}
	if k := s.Keys(fakeincident.REST); len(k) != 2 || k[0] != k[1] {
		t.Error("the key has changed")
	}
}

// R22: a look-up goes by any carrier that can, since objects are the same.
func TestFindByAnyCarrier(t *testing.T) {
	t.Parallel()
	asked := 0
	looked := row()
	looked.Lookup = "by list"
	able := carriers.Carrier{Name: "rest", Encode: carriers.Body, Adapter: httpadapter.New(httpadapter.WithFind(httpadapter.Plain{},
		func(_ context.Context, _ httpadapter.Get, l *outbound.Lookup) (outbound.Finding, error) {
			asked++
			return httpadapter.Found(httpadapter.Plain{}, l.Operation, []byte(`{"status":"open", "id":"inc_9"}`)), nil
		}), config("https://incidents.test", looked))}
	a := apart(able)
	f, err := a.Find(t.Context(), &outbound.Lookup{Operation: looked, Account: "eu", Message: outbound.Message{Header: []outbound.Field{{Name: "Samekey-Carrier", Value: "gone"}}}})
	if err != nil || asked != 1 || f.ExternalRef != "inc_9" || string(f.Answer.Body) != `{"id":"inc_9","status":"open"}` {
		t.Errorf("%+v, %v after %d questions", f, err, asked)
	}
	if _, err := apart(rest("https://incidents.test")).Find(t.Context(), &outbound.Lookup{Operation: row()}); err == nil {
		t.Error("a carrier without a look-up found something")
	}
}

// R8, R20: the reconciler of a process that prefers another carrier resends by the one
// that the record names.
func TestReconcilerKeepsTheWay(t *testing.T) {
	t.Parallel()
	s := fakeincident.New(false)
	base, ledger := serve(t, s), memory.New(nil)
	opts := &outbound.Options{Retry: outbound.Retry{Attempts: 1}, FirstCheck: time.Nanosecond}
	first, err := outbound.New(apart(rest(base), graphql(base)), ledger, opts)
	if err != nil {
		t.Fatal(err)
	}
	s.LoseNext(fakeincident.REST, 1)
	if _, err := open(t, first); !errors.Is(err, outbound.ErrUncertain) {
		t.Fatal(err)
	}
	r, err := outbound.NewReconciler(nil, client(t, apart(graphql(base), rest(base)), ledger, nil))
	if err != nil {
		t.Fatal(err)
	}
	swept, err := r.Sweep(t.Context())
	if err != nil || swept.Resent != 1 || swept.Settled != 1 || len(s.Incidents()) != 1 || len(s.Keys(fakeincident.REST)) != 2 {
		t.Errorf("%+v, %v: %d incidents, %d requests by REST", swept, err, len(s.Incidents()), len(s.Keys(fakeincident.REST)))
	}
}

// What cannot work is said before the first call.
func TestProfileRefuses(t *testing.T) {
	t.Parallel()
	const base = "https://incidents.test"
	changed := func(change func(*rs.Operation)) carriers.Carrier {
		r := row()
		change(&r)
		return carriers.Carrier{Name: "other", Adapter: httpadapter.New(httpadapter.Plain{}, config(base, r)), Encode: carriers.Body}
	}
	stranger := config(base, row())
	stranger.Account = "us"
	for says, ways := range map[string][]carriers.Carrier{
		"Carriers is empty":               nil,
		"two carriers are named":          {rest(base), rest(base)},
		"needs a Name":                    {{Name: "a b", Adapter: rest(base).Adapter, Encode: carriers.Body}},
		"needs an Adapter and an Encode":  {{Name: "rest"}},
		"its Window is not that":          {rest(base), changed(func(o *rs.Operation) { o.Window = time.Hour })},
		"its Resend is not that":          {rest(base), changed(func(o *rs.Operation) { o.Resend = rs.Latest })},
		"its Failures is not that":        {rest(base), changed(func(o *rs.Operation) { o.Failures = rs.Stored })},
		"its Class is not that":           {rest(base), changed(func(o *rs.Operation) { o.Class = rs.Object })},
		"are not those of the other":      {rest(base), {Name: "us", Encode: carriers.Body, Adapter: httpadapter.New(httpadapter.Plain{}, stranger)}},
		"Config.BaseURL is no absolute":   {rest("")},
		"carrier rest: Config.BaseURL is": {rest("")},
	} {
		if _, err := apart(ways...).Profile(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
	if _, err := carriers.New(carriers.Config{Carriers: []carriers.Carrier{rest(base)}, Before: "soap"}).Profile(); err == nil || !strings.Contains(err.Error(), `no carrier is named "soap"`) {
		t.Errorf("an unknown carrier before: %v", err)
	}
}

// R7: parameters mean the same in any order; what the author calls volatile or
// sensitive is so on every carrier.
func TestParameters(t *testing.T) {
	t.Parallel()
	const base = "https://incidents.test"
	a := carriers.New(carriers.Config{
		Carriers:   []carriers.Carrier{rest(base), graphql(base)},
		Parameters: map[string]carriers.Parameters{"incident.create": {Volatile: []rs.Place{rs.JSON("/seen")}, Sensitive: []rs.Place{rs.JSON("/token")}}},
	})
	p, err := a.Profile()
	if err != nil {
		t.Fatal(err)
	}
	op := p.Operations[0]
	canonical := func(parameters any) []byte {
		var b bytes.Buffer
		if err := a.Canonical(&b, p.Canonicals[0], op, carriers.Call(op.Name, cmd, parameters).Message, true); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	same := canonical(map[string]any{"alert": "a"})
	if !slices.Equal(canonical(map[string]any{"seen": 3, "alert": "a"}), same) || slices.Equal(canonical(map[string]any{"alert": "b"}), same) {
		t.Error("the fingerprint is not of the parameters")
	}
	frozen, err := a.Freeze(op, carriers.Call(op.Name, cmd, map[string]any{"alert": "a", "token": "t"}).Message, "")
	if err != nil || !frozen.Sensitive {
		t.Errorf("a sensitive parameter: %v, %v", frozen.Sensitive, err)
	}
}
