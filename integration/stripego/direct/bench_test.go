package direct_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"sync"
	"testing"

	"github.com/stripe/stripe-go/v86"

	"github.com/seed-6b5e302b/samekey/integration/stripemock"
	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
	fake "github.com/seed-6b5e302b/samekey/internal/fakeprovider/stripe"
)

const (
	account   = "acct_1Nv0FG"
	secretKey = "sk_test_direct"
)

// specification is read once for all tests.
var specification = sync.OnceValues(stripemock.Load)

// direct is stripe-go as it is before a fake of Stripe, without samekey. Every
// answer that passes is held against Stripe's specification.
type direct struct {
	*testing.T
	fake   *fakeprovider.Fake
	hooks  hooks
	sc     *stripe.Client
	api    stripe.Backend
	parent string // of an object that is read below another
}

func newDirect(t *testing.T) *direct {
	t.Helper()
	d := &direct{T: t, hooks: hooks{make(chan delivery, 10)}}
	d.fake = fakeprovider.New(fake.New(fake.Config{Account: account, SearchLag: -1}), &fakeprovider.Options{Webhooks: d.hooks})
	server := fakeprovider.InMemory(d.fake)
	t.Cleanup(server.Close)
	spec, err := specification()
	if err != nil {
		t.Fatal(err)
	}
	backends := stripe.NewBackendsWithConfig(&stripe.BackendConfig{
		HTTPClient: &http.Client{Transport: &judge{t, server.Transport(), spec}}, URL: stripe.String(server.URL),
		LeveledLogger: &stripe.LeveledLogger{Level: stripe.LevelNull},
	})
	api, ok := backends.API.(*stripe.BackendImplementation)
	if !ok {
		t.Fatalf("the backend is a %T", backends.API)
	}
	api.SetNetworkRetriesSleep(false)
	d.api, d.sc = api, stripe.NewClient(secretKey, stripe.WithBackends(backends))
	return d
}

// answer is what the SDK gave to its caller.
type answer struct {
	id     string
	header http.Header
	err    error
}

func of(r stripe.APIResource, id string, err error) answer {
	a := answer{id: id, err: err}
	if r.LastResponse != nil {
		a.header = r.LastResponse.Header
	}
	return a
}

func text(s string) *string { return stripe.String(s) }
func count(n int64) *int64  { return stripe.Int64(n) }

// judge holds answers against the specification.
type judge struct {
	t    *testing.T
	base http.RoundTripper
	spec *stripemock.Specification
}

func (j *judge) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := j.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	if err := j.spec.Check(r.Method, r.URL.Path, resp.StatusCode, body); err != nil {
		j.t.Error(err)
	}
	return resp, nil
}

func (d *direct) seed(object any) string {
	d.Helper()
	if object == nil {
		return ""
	}
	id, err := d.fake.Seed(object)
	if err != nil {
		d.Fatal(err)
	}
	return id
}

func (d *direct) inject(f fakeprovider.Fault) {
	d.Helper()
	if err := d.fake.Inject(f); err != nil {
		d.Fatal(err)
	}
}

func keyed(key string) stripe.Params { return stripe.Params{IdempotencyKey: &key} }

// wantRefusal holds that an error is stripe-go's own.
func (d *direct) wantRefusal(err error, status int, kind stripe.ErrorType, code stripe.ErrorCode) {
	d.Helper()
	e, ok := errors.AsType[*stripe.Error](err)
	if raw, v2 := errors.AsType[*stripe.V2RawError](err); v2 { // what stripe-go makes of API v2's
		e, ok = &stripe.Error{HTTPStatusCode: raw.HTTPStatusCode, RequestID: raw.RequestID, Code: stripe.ErrorCode(raw.Code)}, true
		if raw.Type != nil {
			e.Type = *raw.Type
		}
	}
	if !ok || e.HTTPStatusCode != status || e.Type != kind || e.Code != code || e.RequestID == "" {
		d.Errorf("got a %T %v, want stripe-go's error of status %d, type %s, code %q", err, err, status, kind, code)
	}
}

func (d *direct) wantEffects(operation string, n int) {
	d.Helper()
	if got := d.fake.Effects(operation); got != n {
		d.Errorf("%s had %d effects, want %d", operation, got, n)
	}
}

// wantReached holds that the SDK's method speaks to the operation that the table
// says it does.
func (d *direct) wantReached(operation string) {
	d.Helper()
	if len(d.fake.Requests(operation)) == 0 {
		d.Errorf("stripe-go did not reach %s but %+v", operation, d.fake.Requests(""))
	}
}
