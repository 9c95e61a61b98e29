package paypal

import (
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"hash/crc32"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// defaultTolerance covers the three days in which PayPal delivers an event
	// again that was not taken.
	defaultTolerance = 4 * day
	aheadTolerance   = 5 * time.Minute
	maxHeader        = 2048 // bytes of one header field
)

// ErrWebhook is wrapped by every error of Verify that is about the webhook: it
// is not PayPal's, or not for this WebhookID. An error that does not wrap it, as
// of Certificate, leaves that open: let PayPal deliver again.
var ErrWebhook = errors.New("paypal: the webhook is refused")

// Verifier checks that a webhook is PayPal's, by its signature and certificate,
// without asking PayPal. It does no network I/O but Certificate's, and keeps the
// certificates that it accepted. It is safe for concurrent use and must not be
// copied. Source: https://developer.paypal.com/api/rest/webhooks/rest/.
type Verifier struct {
	WebhookID string // Required: PayPal's id of this webhook; it is part of what is signed.
	Sandbox   bool   // The sandbox's webhooks; they are signed with certificates of its own hosts.

	// Certificate fetches the certificate chain (PEM) at url. Required. It is asked
	// for https on PayPal's own API hosts only, and must follow no redirect to
	// another: its answer decides whom a webhook is from.
	Certificate func(ctx context.Context, url string) ([]byte, error)

	Roots     *x509.CertPool // The authorities that PayPal's certificate may be of. Defaults to the system's.
	Tolerance time.Duration  // Since the webhook was sent. Defaults to 4 days, as PayPal delivers again for 3.

	mu    sync.Mutex
	known map[string]certificate // by URL
}

// transmission is what the headers of a webhook say.
type transmission struct {
	id, time, url string
	signature     []byte
}

// Verify reports whether the webhook with these headers and this body, unchanged,
// was sent by PayPal to WebhookID. ctx is Certificate's.
func (v *Verifier) Verify(ctx context.Context, h http.Header, body []byte) error {
	if v.WebhookID == "" || v.Certificate == nil {
		return errors.New("paypal: Verifier.WebhookID or Verifier.Certificate is missing: state both")
	}
	if len(body) > maxEvent {
		return fmt.Errorf("%w: the body has more than %d bytes", ErrWebhook, maxEvent)
	}
	t, err := v.read(h)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrWebhook, err)
	}
	key, err := v.key(ctx, t.url)
	if err != nil {
		return err
	}
	signed := sha256.Sum256([]byte(t.id + "|" + t.time + "|" + v.WebhookID + "|" + strconv.FormatUint(uint64(crc32.ChecksumIEEE(body)), 10)))
	if rsa.VerifyPKCS1v15(key, crypto.SHA256, signed[:], t.signature) != nil {
		return fmt.Errorf("%w: the signature does not fit: the body must be as it came, and WebhookID that of this webhook", ErrWebhook)
	}
	return nil
}

// read checks the headers before anything is asked for.
func (v *Verifier) read(h http.Header) (t transmission, err error) {
	var fields [5]string
	for i, name := range []string{"PayPal-Transmission-Id", "PayPal-Transmission-Time", "PayPal-Transmission-Sig", "PayPal-Cert-Url", "PayPal-Auth-Algo"} {
		values := h.Values(name)
		if len(values) != 1 || values[0] == "" || len(values[0]) > maxHeader {
			return t, fmt.Errorf("the header %s is missing, there twice, or too long", name)
		}
		fields[i] = values[0]
	}
	t.id, t.time, t.url = fields[0], fields[1], fields[3]
	if strings.Contains(t.id, "|") {
		return t, errors.New("PayPal-Transmission-Id is no id")
	}
	if !strings.EqualFold(fields[4], "SHA256withRSA") {
		return t, errors.New("PayPal-Auth-Algo is not SHA256withRSA")
	}
	if t.signature, err = base64.StdEncoding.DecodeString(fields[2]); err != nil {
		return t, errors.New("PayPal-Transmission-Sig is no base64")
	}
	if err := v.inTime(t.time); err != nil {
		return t, err
	}
	return t, v.checkURL(t.url)
}

func (v *Verifier) inTime(sent string) error {
	at, err := time.Parse(time.RFC3339, sent)
	if err != nil {
		return errors.New("PayPal-Transmission-Time is no time")
	}
	tolerance := v.Tolerance
	if tolerance <= 0 {
		tolerance = defaultTolerance
	}
	switch age := time.Since(at); {
	case age > tolerance:
		return fmt.Errorf("it was sent longer ago than %v", tolerance)
	case age < -aheadTolerance:
		return errors.New("it was sent in the future: check the clock")
	}
	return nil
}

// checkURL refuses a certificate that is not on one of PayPal's own API hosts:
// whoever chooses where the certificate comes from signs what they like.
func (v *Verifier) checkURL(raw string) error {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "https" || u.User != nil || u.Opaque != "" || u.RawQuery != "" || u.Fragment != "" || u.Port() != "" {
		return errors.New("PayPal-Cert-Url is no plain https URL")
	}
	hosts := [2]string{"api.paypal.com", "api-m.paypal.com"}
	if v.Sandbox {
		hosts = [2]string{"api.sandbox.paypal.com", "api-m.sandbox.paypal.com"}
	}
	if host := strings.ToLower(u.Host); host != hosts[0] && host != hosts[1] {
		return fmt.Errorf("PayPal-Cert-Url is not on %s or %s", hosts[0], hosts[1])
	}
	if id, under := strings.CutPrefix(u.Path, "/v1/notifications/certs/"); !under || !idForm.MatchString(id) || u.EscapedPath() != u.Path {
		return errors.New("PayPal-Cert-Url is not below /v1/notifications/certs/")
	}
	return nil
}
