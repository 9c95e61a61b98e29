package main

import (
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/internal/audit"
	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
	fakepaypal "github.com/seed-6b5e302b/samekey/internal/fakeprovider/paypal"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/paypal"
	"github.com/seed-6b5e302b/samekey/recordstore/sqlite"
)

const merchant = "MERCHANT12345"

// merchantLedger is a ledger of PayPal refunds. Its services work five hours ago, so
// that Transaction Search has caught up with them.
type merchantLedger struct {
	*testing.T
	fake    *fakeprovider.Fake
	server  *fakeprovider.Server
	client  *outbound.Client
	path    string
	capture string
}

func newMerchantLedger(t *testing.T) *merchantLedger {
	t.Helper()
	before := func() time.Time { return time.Now().Add(-5 * time.Hour) }
	m := &merchantLedger{T: t, path: filepath.Join(t.TempDir(), "ledger.db")}
	m.fake = fakeprovider.New(fakepaypal.New(fakepaypal.Config{MerchantID: merchant}), &fakeprovider.Options{Clock: before})
	var err error
	if m.server, err = fakeprovider.Listen(m.fake); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.server.Close() })
	s, err := sqlite.Open(m.path, &sqlite.Options{Now: before})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	m.serve(s)
	if m.capture, err = m.fake.Seed(fakepaypal.CompletedCapture{Value: "100.00", Currency: "EUR"}); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"ACCOUNT": merchant, "CLIENT_ID": "app", "SECRET": apiKey, "SANDBOX": "1", "URL": m.server.URL} {
		t.Setenv(envPayPal+name, value)
	}
	t.Setenv(envStripe+"ACCOUNT", "")
	t.Setenv(envStripe+"KEY", "")
	return m
}

// serve makes the client of a service with this ledger.
func (m *merchantLedger) serve(s store) {
	m.Helper()
	client, err := outbound.New(
		paypal.New(paypal.Config{Account: merchant, ClientID: "app", Secret: apiKey, Sandbox: true, BaseURL: m.server.URL}), s,
		&outbound.Options{Bodies: outbound.PlainBodies(), Retry: outbound.Retry{Attempts: 1}})
	if err != nil {
		m.Fatal(err)
	}
	m.Cleanup(func() { _ = client.Close(context.WithoutCancel(m.Context())) })
	m.client = client
}

func (m *merchantLedger) refund(command string) {
	m.Helper()
	_, err := m.client.Do(m.Context(), paypal.CaptureRefund(outbound.Command{ID: command}, m.capture,
		paypal.RefundRequest{Amount: paypal.Money{Currency: "EUR", Value: "1.00"}}))
	if err != nil {
		m.Fatalf("%s: %v", command, err)
	}
}

// others refunds with a request id of its own and this mark.
func (m *merchantLedger) others(requestID, mark string) {
	m.Helper()
	token := m.post("/v1/oauth2/token", "application/x-www-form-urlencoded", "grant_type=client_credentials", func(r *http.Request) { r.SetBasicAuth("app", apiKey) })
	m.post("/v2/payments/captures/"+m.capture+"/refund", "application/json", `{"amount":{"currency_code":"EUR","value":"2.00"},"custom_id":"`+mark+`"}`, func(r *http.Request) {
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("PayPal-Request-Id", requestID)
	})
}

// post posts, and returns the access token of the answer, if it has one.
func (m *merchantLedger) post(path, content, body string, with func(*http.Request)) string {
	m.Helper()
	r, err := http.NewRequestWithContext(m.Context(), http.MethodPost, m.server.URL+path, strings.NewReader(body))
	if err != nil {
		m.Fatal(err)
	}
	r.Header.Set("Content-Type", content)
	with(r)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		m.Fatal(err)
	}
	defer answer.Body.Close()
	var token struct {
		Token string `json:"access_token"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&token); err != nil || answer.StatusCode >= 300 {
		m.Fatalf("POST %s was answered %d: %v", path, answer.StatusCode, err)
	}
	return token.Token
}

func (m *merchantLedger) audit(code int) *audit.Report {
	m.Helper()
	out, err := stdout(m.Context(), "audit", "--since", "6h", "--json", "--sqlite", m.path)
	if got := exitCodeOf(err); got != code {
		m.Fatalf("exit code %d, want %d: %v\n%s", got, code, err, out)
	}
	if strings.Contains(out, apiKey) {
		m.Error("the report shows the secret")
	}
	var all audited
	if err := json.Unmarshal([]byte(out), &all); err != nil || len(all.Reports) != 1 {
		m.Fatalf("%d reports, %v\n%s", len(all.Reports), err, out)
	}
	return all.Reports[0]
}

// Transaction Search shows refunds by their marks once it caught up; what it may not
// show yet is not yet known, and where the clocks do not agree it proves nothing.
func TestAuditPayPal(t *testing.T) {
	m := newMerchantLedger(t)
	m.refund("refund-1")
	m.refund("refund-2")
	if r := m.audit(exitFailed); r.Complete || r.Counts[audit.Missing] != 0 || len(r.NotYetKnown) != 1 {
		t.Errorf("with clocks that do not agree: %+v", r)
	}
	m.fake.Advance(5 * time.Hour)
	if r := m.audit(0); r.Matched != 2 || r.Counts[audit.Outside] != 1 || !r.Complete { // the capture itself was made by others
		t.Errorf("a clean run says %+v", r)
	}
	m.refund("refund-gone") // the ledger dates it when the search has caught up with, and the search does not show it
	if r := m.audit(exitPerson); r.Counts[audit.Missing] != 1 || r.Matched != 2 {
		t.Errorf("one that the search should show: %+v", r)
	}
	s, err := sqlite.Open(m.path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	m.serve(s)
	m.refund("refund-new")
	if r := m.audit(exitPerson); r.Counts[audit.Missing] != 1 || r.NotYetKnown["/v1/reporting/transactions may not show it yet: the provider's lists lag"] != 1 {
		t.Errorf("one of this moment: %+v", r)
	}
	t.Setenv(envPayPal+"ACCOUNT", "MERCHANT99999")
	if _, err := samekey(t.Context(), "audit", "--since", "6h", "--sqlite", m.path); exitCodeOf(err) != exitFailed || !strings.Contains(err.Error(), "of another account") {
		t.Errorf("with another's credential: %v", err)
	}
}

// Two refunds with one mark are a duplicate, whatever their request ids and amounts.
func TestAuditPayPalDuplicate(t *testing.T) {
	m := newMerchantLedger(t)
	m.refund("refund-1")
	m.refund("refund-2")
	key, err := m.client.Key(outbound.Command{ID: "refund-2"}, "capture.refund", "")
	if err != nil {
		t.Fatal(err)
	}
	m.others("a-fresh-request-id", key.Mark())
	m.others("one-more", "")
	m.fake.Advance(5 * time.Hour)
	r := m.audit(exitPerson)
	if len(r.Findings) != 3 || r.Findings[0].Class != audit.Duplicate || r.Findings[0].Command != "refund-2" || len(r.Findings[0].Refs) != 2 || r.Counts[audit.Outside] != 2 {
		t.Errorf("found %+v", r.Findings)
	}
}
