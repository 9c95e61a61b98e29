package direct_test

import (
	"bytes"
	"errors"
	"net/http"
	"testing"

	plutov "github.com/plutov/paypal/v4"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
	fake "github.com/seed-6b5e302b/samekey/internal/fakeprovider/paypal"
)

// direct is plutov/paypal as it is before a fake of PayPal, without samekey.
type direct struct {
	*testing.T
	fake  *fakeprovider.Fake
	pp    *plutov.Client
	hooks *hooks
}

func newDirect(t *testing.T, cfg fake.Config) *direct {
	t.Helper()
	d := &direct{T: t, hooks: &hooks{arrived: make(chan *http.Request, 10)}}
	d.fake = fakeprovider.New(fake.New(cfg), &fakeprovider.Options{Webhooks: d.hooks})
	server := fakeprovider.InMemory(d.fake)
	t.Cleanup(server.Close)
	var err error
	if d.pp, err = plutov.NewClient("client", "secret", server.URL); err != nil {
		t.Fatal(err)
	}
	d.pp.SetHTTPClient(&http.Client{Transport: server.Transport()})
	if _, err := d.pp.GetAccessToken(t.Context()); err != nil {
		t.Fatal(err)
	}
	return d
}

// hooks is a service that takes webhooks.
type hooks struct{ arrived chan *http.Request }

func (h *hooks) RoundTrip(r *http.Request) (*http.Response, error) {
	var body bytes.Buffer
	if _, err := body.ReadFrom(r.Body); err != nil {
		return nil, err
	}
	got := r.Clone(r.Context())
	got.Body = nopCloser{&body}
	h.arrived <- got
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Header: http.Header{}, Request: r}, nil
}

type nopCloser struct{ *bytes.Buffer }

func (nopCloser) Close() error { return nil }

func (d *direct) seed(object any) string {
	d.Helper()
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

// send makes a request that the SDK has no method for, with what it offers for
// that.
func (d *direct) send(method, path string, body, result any) error {
	r, err := d.pp.NewRequest(d.Context(), method, d.pp.APIBase+path, body)
	if err != nil {
		return err
	}
	return d.pp.SendWithAuth(r, result)
}

// create is send for a new object. It returns the object's id.
func (d *direct) create(path string, body any) (string, error) {
	var made struct {
		ID   string `json:"id"`
		Href string `json:"href"` // of an invoice
	}
	err := d.send(http.MethodPost, path, body, &made)
	if made.ID == "" && made.Href != "" {
		made.ID = made.Href[len(d.pp.APIBase+path+"/"):]
	}
	return made.ID, err
}

// wantRefusal holds that an error is the SDK's own, which can be printed.
func (d *direct) wantRefusal(err error, status int, name, issue string) {
	d.Helper()
	e, ok := errors.AsType[*plutov.ErrorResponse](err)
	if !ok || e.Error() == "" || e.Response.StatusCode != status || e.Name != name || e.DebugID == "" ||
		issue != "" && (len(e.Details) != 1 || e.Details[0].Issue != issue) {
		d.Errorf("got a %T %v, want a *paypal.ErrorResponse of status %d, name %s, issue %q", err, err, status, name, issue)
	}
}

func (d *direct) wantEffects(operation string, n int) {
	d.Helper()
	if got := d.fake.Effects(operation); got != n {
		d.Errorf("%s had %d effects, want %d", operation, got, n)
	}
}
