package paypal_test

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
	fakepaypal "github.com/seed-6b5e302b/samekey/internal/fakeprovider/paypal"
	"github.com/seed-6b5e302b/samekey/providers/paypal"
)

// webhook is a delivery as it arrived.
type webhook struct {
	header http.Header
	body   []byte
}

// sandbox is the host that PayPal's sandbox publishes certificates on.
const sandbox = "https://api.sandbox.paypal.com"

// hooks starts a service that takes webhooks, for a fake whose clock is real.
func hooks(t *testing.T, base string) (*api, fakeprovider.Endpoint, <-chan webhook) {
	t.Helper()
	arrived := make(chan webhook, 10)
	service := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		arrived <- webhook{r.Header, body}
	}))
	t.Cleanup(service.Close)
	f := fakeprovider.New(fakepaypal.New(fakepaypal.Config{}), nil)
	srv, err := fakeprovider.Listen(f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	a := &api{t: t, f: f, url: srv.URL, http: &http.Client{Transport: srv.Transport(), Timeout: 30 * time.Second}}
	a.token = a.login("app", "secret").text("access_token")
	if base == "" {
		base = srv.URL
	}
	e, err := f.AddEndpoint(fakeprovider.Endpoint{URL: service.URL, Base: base})
	if err != nil {
		t.Fatal(err)
	}
	return a, e, arrived
}

func next(t *testing.T, arrived <-chan webhook) webhook {
	t.Helper()
	select {
	case w := <-arrived:
		return w
	case <-time.After(20 * time.Second):
		t.Fatal("no webhook arrived")
		return webhook{}
	}
}

// approve makes the fake publish an event.
func (a *api) approve() {
	a.t.Helper()
	order := a.post("/v2/checkout/orders", "o1", `{"intent":"CAPTURE","purchase_units":[{"amount":{"currency_code":"EUR","value":"1.00"}}]}`)
	a.seed(fakepaypal.Approval{ID: order.text("id")})
}

// A webhook passes a verifier of PayPal's scheme that fetches the certificate
// from the fake and trusts the fake's authority.
func TestWebhookIsSigned(t *testing.T) {
	a, e, arrived := hooks(t, sandbox)
	a.approve()
	w := next(t, arrived)
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(e.Authority)) {
		t.Fatalf("no authority in %q", e.Authority)
	}
	v := &paypal.Verifier{WebhookID: e.ID, Sandbox: true, Roots: roots,
		Certificate: func(_ context.Context, where string) ([]byte, error) {
			u, err := url.Parse(where)
			if err != nil {
				return nil, err
			}
			resp, err := a.http.Get(a.url + u.Path)
			if err != nil {
				return nil, err
			}
			defer resp.Body.Close()
			return io.ReadAll(resp.Body)
		}}
	if err := v.Verify(t.Context(), w.header, w.body); err != nil {
		t.Error(err)
	}
	if v.Verify(t.Context(), w.header, append(w.body, ' ')) == nil {
		t.Error("a changed body is accepted too")
	}
	if _, _, err := paypal.Event(w.body); err != nil {
		t.Errorf("%v: %s", err, w.body)
	}
}

// PayPal's own check of a webhook, for SDKs that ask it.
func TestVerifyWebhookSignature(t *testing.T) {
	a, e, arrived := hooks(t, "")
	a.approve()
	w := next(t, arrived)
	ask := func(id string, event []byte) string {
		body, err := json.Marshal(map[string]any{
			"auth_algo": w.header.Get("Paypal-Auth-Algo"), "cert_url": w.header.Get("Paypal-Cert-Url"),
			"transmission_id": w.header.Get("Paypal-Transmission-Id"), "transmission_time": w.header.Get("Paypal-Transmission-Time"),
			"transmission_sig": w.header.Get("Paypal-Transmission-Sig"), "webhook_id": id, "webhook_event": json.RawMessage(event),
		})
		if err != nil {
			t.Fatal(err)
		}
		return a.post("/v1/notifications/verify-webhook-signature", "", string(body)).text("verification_status")
	}
	if got := ask(e.ID, w.body); got != "SUCCESS" {
		t.Errorf("genuine: %q", got)
	}
	if got := ask("OTHER", w.body); got != "FAILURE" {
		t.Errorf("of another webhook: %q", got)
	}
	if got := ask(e.ID, []byte(`{"id":"forged"}`)); got != "FAILURE" {
		t.Errorf("forged: %q", got)
	}
	for path, want := range map[string]int{"/v1/notifications/certs/CERT-none": 404, "/v1/notifications/verify-webhook-signature": 400} {
		method := http.MethodGet
		if want == 400 {
			method = http.MethodPost
		}
		if got := a.call(method, path, "", `{}`); got.status != want {
			t.Errorf("%s: %d, want %d", path, got.status, want)
		}
	}
}

// PayPal signs with a certificate: a secret is refused, with what to use.
func TestWebhookTakesNoSecret(t *testing.T) {
	f := fakeprovider.New(fakepaypal.New(fakepaypal.Config{}), nil)
	t.Cleanup(f.Close)
	if _, err := f.AddEndpoint(fakeprovider.Endpoint{URL: "http://127.0.0.1:1/", Base: "http://x", Secret: "s"}); err == nil {
		t.Error("a secret was taken")
	}
}
