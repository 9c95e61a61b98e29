package paypal

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"hash/crc32"
	"math/big"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const (
	webhookID = "1JE4291016473214C"
	certURL   = "https://api.paypal.com/v1/notifications/certs/CERT-360caa42-fca2a594-1d93a270"
	certName  = "messageverificationcerts.paypal.com"
)

// authority is a CA of the test's own. It is made once: keys take time.
type authority struct {
	key, signer *rsa.PrivateKey
	weak        *rsa.PrivateKey
	cert        *x509.Certificate
}

var ownAuthority = sync.OnceValue(func() *authority {
	a := &authority{key: newKey(2048), signer: newKey(2048), weak: newKey(1024)}
	der, err := x509.CreateCertificate(rand.Reader, caTemplate(), caTemplate(), &a.key.PublicKey, a.key)
	if err != nil {
		panic(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		panic(err)
	}
	return a
})

func newKey(bits int) *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		panic(err)
	}
	return key
}

func caTemplate() *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Test authority"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<36, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
}

func (a *authority) roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// issue makes a chain for a name, after change.
func (a *authority) issue(t *testing.T, public crypto.PublicKey, change func(*x509.Certificate)) []byte {
	t.Helper()
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: certName}, DNSNames: []string{certName},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(365 * 24 * time.Hour),
	}
	if change != nil {
		change(leaf)
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, a.cert, public, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// sign returns the headers of a webhook that was sent at a time.
func (a *authority) sign(t *testing.T, body []byte, at time.Time) http.Header {
	t.Helper()
	const id = "69cd13f0-d67a-11e5-baa3-778b53f4ae55"
	stamp := at.UTC().Format(time.RFC3339)
	sum := sha256.Sum256(fmt.Appendf(nil, "%s|%s|%s|%d", id, stamp, webhookID, crc32.ChecksumIEEE(body)))
	signature, err := rsa.SignPKCS1v15(rand.Reader, a.signer, crypto.SHA256, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	h := http.Header{}
	h.Set("PAYPAL-TRANSMISSION-ID", id)
	h.Set("PAYPAL-TRANSMISSION-TIME", stamp)
	h.Set("PAYPAL-TRANSMISSION-SIG", base64.StdEncoding.EncodeToString(signature))
	h.Set("PAYPAL-CERT-URL", certURL)
	h.Set("PAYPAL-AUTH-ALGO", "SHA256withRSA")
	return h
}

// served is a Certificate that counts what it is asked for.
type served struct {
	chain []byte
	err   error
	asked []string
}

func (s *served) fetch(_ context.Context, url string) ([]byte, error) {
	s.asked = append(s.asked, url)
	return s.chain, s.err
}

var eventBody = []byte(`{"id":"WH-1","event_type":"PAYMENT.CAPTURE.COMPLETED","resource":{"id":"C"}}`)

func TestVerify(t *testing.T) {
	t.Parallel()
	a := ownAuthority()
	s := &served{chain: a.issue(t, &a.signer.PublicKey, nil)}
	v := &Verifier{WebhookID: webhookID, Certificate: s.fetch, Roots: a.roots()}
	for range 3 {
		if err := v.Verify(t.Context(), a.sign(t, eventBody, time.Now()), eventBody); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.asked) != 1 || s.asked[0] != certURL {
		t.Errorf("asked for %q, want the certificate once", s.asked)
	}
}

// Whatever is changed in a webhook, it is refused, with the reason. What the
// headers show is refused before the certificate is asked for.
func TestVerifyRefuses(t *testing.T) {
	t.Parallel()
	a := ownAuthority()
	set := func(name, value string) func(http.Header) {
		return func(h http.Header) { h.Set(name, value) }
	}
	for name, c := range map[string]struct {
		change func(http.Header)
		body   string
		at     time.Time
		says   string
		asks   bool
	}{
		"another body":             {body: "{}", says: "signature does not fit", asks: true},
		"another id":               {change: set("PayPal-Transmission-Id", "other"), says: "signature does not fit", asks: true},
		"another signature":        {change: set("PayPal-Transmission-Sig", "AAAA"), says: "signature does not fit", asks: true},
		"no signature":             {change: func(h http.Header) { h.Del("PayPal-Transmission-Sig") }, says: "Transmission-Sig is missing"},
		"two signatures":           {change: func(h http.Header) { h.Add("PayPal-Transmission-Sig", "AAAA") }, says: "there twice"},
		"no base64":                {change: set("PayPal-Transmission-Sig", "!"), says: "no base64"},
		"an id with a bar":         {change: set("PayPal-Transmission-Id", "a|b"), says: "no id"},
		"another algorithm":        {change: set("PayPal-Auth-Algo", "SHA1withRSA"), says: "not SHA256withRSA"},
		"no time":                  {change: set("PayPal-Transmission-Time", "yesterday"), says: "no time"},
		"too long a header":        {change: set("PayPal-Transmission-Id", strings.Repeat("x", 3000)), says: "too long"},
		"too old":                  {at: time.Now().Add(-97 * time.Hour), says: "longer ago than"},
		"from the future":          {at: time.Now().Add(time.Hour), says: "future"},
		"plain http":               {change: set("PayPal-Cert-Url", strings.Replace(certURL, "https", "http", 1)), says: "no plain https URL"},
		"a foreign host":           {change: set("PayPal-Cert-Url", "https://evil.example/v1/notifications/certs/CERT-1"), says: "is not on api.paypal.com"},
		"a host that ends alike":   {change: set("PayPal-Cert-Url", "https://evilapi.paypal.com/v1/notifications/certs/CERT-1"), says: "is not on"},
		"a host that begins alike": {change: set("PayPal-Cert-Url", "https://api.paypal.com.evil.example/v1/notifications/certs/CERT-1"), says: "is not on"},
		"PayPal's shop window":     {change: set("PayPal-Cert-Url", "https://www.paypal.com/v1/notifications/certs/CERT-1"), says: "is not on"},
		"the sandbox":              {change: set("PayPal-Cert-Url", "https://api.sandbox.paypal.com/v1/notifications/certs/CERT-1"), says: "is not on"},
		"a user before it":         {change: set("PayPal-Cert-Url", "https://api.paypal.com@evil.example/v1/notifications/certs/CERT-1"), says: "no plain https URL"},
		"a backslash":              {change: set("PayPal-Cert-Url", `https://evil.example\@api.paypal.com/v1/notifications/certs/CERT-1`), says: "PayPal-Cert-Url"},
		"a port":                   {change: set("PayPal-Cert-Url", "https://api.paypal.com:8443/v1/notifications/certs/CERT-1"), says: "no plain https URL"},
		"a dot behind it":          {change: set("PayPal-Cert-Url", "https://api.paypal.com./v1/notifications/certs/CERT-1"), says: "is not on"},
		"a query":                  {change: set("PayPal-Cert-Url", certURL+"?x=1"), says: "no plain https URL"},
		"another path":             {change: set("PayPal-Cert-Url", "https://api.paypal.com/v1/oauth2/token"), says: "not below"},
		"a path that climbs":       {change: set("PayPal-Cert-Url", "https://api.paypal.com/v1/notifications/certs/../x"), says: "not below"},
		"an escaped path":          {change: set("PayPal-Cert-Url", "https://api.paypal.com/v1/notifications/certs/%41"), says: "not below"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &served{chain: a.issue(t, &a.signer.PublicKey, nil)}
			v := &Verifier{WebhookID: webhookID, Certificate: s.fetch, Roots: a.roots()}
			at := c.at
			if at.IsZero() {
				at = time.Now()
			}
			h, body := a.sign(t, eventBody, at), eventBody
			if c.change != nil {
				c.change(h)
			}
			if c.body != "" {
				body = []byte(c.body)
			}
			err := v.Verify(t.Context(), h, body)
			if !errors.Is(err, ErrWebhook) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v; want %q", err, c.says)
			}
			if (len(s.asked) > 0) != c.asks {
				t.Errorf("the certificate was asked for: %q", s.asked)
			}
		})
	}
}

// A signature is worth what its certificate is worth.
func TestVerifyCertificates(t *testing.T) {
	t.Parallel()
	a := ownAuthority()
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	named := func(cn string, names ...string) func(*x509.Certificate) {
		return func(c *x509.Certificate) { c.Subject.CommonName, c.DNSNames = cn, names }
	}
	good := a.issue(t, &a.signer.PublicKey, nil)
	for name, c := range map[string]struct {
		chain []byte
		roots *x509.CertPool
		says  string // "" for accepted
	}{
		"by its common name":   {chain: a.issue(t, &a.signer.PublicKey, named(certName))},
		"the sandbox's name":   {chain: a.issue(t, &a.signer.PublicKey, named("", "messageverificationcerts.sandbox.paypal.com"))},
		"another of PayPal's":  {chain: a.issue(t, &a.signer.PublicKey, named("www.paypal.com", "www.paypal.com")), says: "its name is not"},
		"a name that ends so":  {chain: a.issue(t, &a.signer.PublicKey, named("x", "messageverificationcerts.paypal.com.evil.example")), says: "its name is not"},
		"only the common name": {chain: a.issue(t, &a.signer.PublicKey, named(certName, "evil.example")), says: "its name is not"},
		"expired":              {chain: a.issue(t, &a.signer.PublicKey, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }), says: "expired"},
		"not valid yet":        {chain: a.issue(t, &a.signer.PublicKey, func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Hour) }), says: "not yet valid"},
		"of nobody":            {chain: good, roots: x509.NewCertPool(), says: "not trusted"},
		"another key":          {chain: a.issue(t, &a.key.PublicKey, nil), says: "signature does not fit"},
		"a weak key":           {chain: a.issue(t, &a.weak.PublicKey, nil), says: "RSA key of 2048 bits"},
		"no RSA key":           {chain: a.issue(t, &other.PublicKey, nil), says: "RSA key of 2048 bits"},
		"no PEM":               {chain: []byte("<html>"), says: "is no PEM"},
		"nothing":              {says: "is no PEM"},
		"a key":                {chain: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")}), says: "is no chain"},
		"no certificate":       {chain: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}), says: "cannot be parsed"},
		"a long chain":         {chain: []byte(strings.Repeat(string(good), 9)), says: "at most 8"},
		"too much":             {chain: make([]byte, maxPEM+1), says: "has more than"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &served{chain: c.chain}
			v := &Verifier{WebhookID: webhookID, Certificate: s.fetch, Roots: c.roots}
			if c.roots == nil {
				v.Roots = a.roots()
			}
			err := v.Verify(t.Context(), a.sign(t, eventBody, time.Now()), eventBody)
			switch {
			case c.says == "" && err != nil:
				t.Error(err)
			case c.says != "" && (!errors.Is(err, ErrWebhook) || !strings.Contains(err.Error(), c.says)):
				t.Errorf("error %v; want %q", err, c.says)
			}
		})
	}
}

// An intermediate authority is part of the chain that PayPal serves.
func TestVerifyIntermediate(t *testing.T) {
	t.Parallel()
	a := ownAuthority()
	between := caTemplate()
	between.SerialNumber, between.Subject.CommonName = big.NewInt(3), "Between"
	der, err := x509.CreateCertificate(rand.Reader, between, a.cert, &a.signer.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	below := &authority{key: a.signer, signer: a.signer, cert: parsed}
	leaf := below.issue(t, &a.signer.PublicKey, nil)
	intermediate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for name, c := range map[string]struct {
		chain []byte
		good  bool
	}{"whole": {append(leaf, intermediate...), true}, "without it": {leaf, false}} {
		s := &served{chain: c.chain}
		v := &Verifier{WebhookID: webhookID, Certificate: s.fetch, Roots: a.roots()}
		if err := v.Verify(t.Context(), a.sign(t, eventBody, time.Now()), eventBody); (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Accepted certificates are kept for a day, never longer than they are valid, and
// no more than a few; what could not be fetched or was refused is not kept.
func TestCertificatesKept(t *testing.T) {
	t.Parallel()
	a := ownAuthority()
	synctest.Test(t, func(t *testing.T) {
		s := &served{err: errors.New("no route")}
		v := &Verifier{WebhookID: webhookID, Certificate: s.fetch, Roots: a.roots()}
		verify := func(url string) error {
			h := a.sign(t, eventBody, time.Now())
			h.Set("PayPal-Cert-Url", url)
			return v.Verify(t.Context(), h, eventBody)
		}
		if err := verify(certURL); err == nil || errors.Is(err, ErrWebhook) || !strings.Contains(err.Error(), "no route") {
			t.Errorf("error %v: that nobody could fetch it says nothing of the webhook", err)
		}
		s.err, s.chain = nil, a.issue(t, &a.signer.PublicKey, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(30 * time.Hour) })
		steps := []struct {
			wait  time.Duration
			asked int
			good  bool
		}{{0, 2, true}, {23 * time.Hour, 2, true}, {2 * time.Hour, 3, true}, {4 * time.Hour, 3, true}, {2 * time.Hour, 4, false}, {0, 5, false}}
		for i, step := range steps {
			time.Sleep(step.wait)
			if err := verify(certURL); (err == nil) != step.good || len(s.asked) != step.asked {
				t.Errorf("step %d: %v after %d fetches, want %d", i, err, len(s.asked), step.asked)
			}
		}
		s.chain = a.issue(t, &a.signer.PublicKey, nil)
		for i := range 3 * maxCertificates {
			if err := verify(fmt.Sprintf("%s-%d", certURL, i)); err != nil {
				t.Fatal(err)
			}
		}
		if len(v.known) > maxCertificates {
			t.Errorf("%d certificates are kept", len(v.known))
		}
	})
}

func TestVerifierSettings(t *testing.T) {
	t.Parallel()
	a := ownAuthority()
	s := &served{chain: a.issue(t, &a.signer.PublicKey, nil)}
	h := a.sign(t, eventBody, time.Now())
	for _, v := range []*Verifier{{Certificate: s.fetch}, {WebhookID: webhookID}} {
		if err := v.Verify(t.Context(), h, eventBody); err == nil || !strings.Contains(err.Error(), "state both") {
			t.Errorf("error %v", err)
		}
	}
	mine := &Verifier{WebhookID: "2JE4291016473214C", Certificate: s.fetch, Roots: a.roots()}
	if err := mine.Verify(t.Context(), h, eventBody); !errors.Is(err, ErrWebhook) {
		t.Errorf("a webhook for another id: %v", err)
	}
	strict := &Verifier{WebhookID: webhookID, Certificate: s.fetch, Roots: a.roots(), Tolerance: time.Minute}
	if err := strict.Verify(t.Context(), a.sign(t, eventBody, time.Now().Add(-2*time.Minute)), eventBody); !errors.Is(err, ErrWebhook) {
		t.Errorf("a webhook of two minutes ago: %v", err)
	}
	if err := strict.Verify(t.Context(), h, make([]byte, maxEvent+1)); !errors.Is(err, ErrWebhook) {
		t.Errorf("a large body: %v", err)
	}
	sandbox := &Verifier{WebhookID: webhookID, Certificate: s.fetch, Roots: a.roots(), Sandbox: true}
	if err := sandbox.Verify(t.Context(), h, eventBody); !errors.Is(err, ErrWebhook) {
		t.Errorf("the sandbox's verifier took a live certificate: %v", err)
	}
	h.Set("PayPal-Cert-Url", "https://API.sandbox.paypal.com/v1/notifications/certs/CERT-1")
	if err := sandbox.Verify(t.Context(), h, eventBody); err != nil {
		t.Error(err)
	}
}

func FuzzVerify(f *testing.F) {
	f.Add("69cd13f0", "2026-11-30T12:00:00Z", "AAAA", certURL, "SHA256withRSA", eventBody)
	f.Add("", "", "", "https://api.paypal.com/v1/notifications/certs/x", "", []byte{})
	f.Fuzz(func(t *testing.T, id, at, signature, url, algorithm string, body []byte) {
		s := &served{}
		v := &Verifier{WebhookID: webhookID, Certificate: s.fetch, Tolerance: 1 << 62}
		h := http.Header{}
		for name, value := range map[string]string{"Id": id, "Time": at, "Sig": signature} {
			h.Set("PayPal-Transmission-"+name, value)
		}
		h.Set("PayPal-Cert-Url", url)
		h.Set("PayPal-Auth-Algo", algorithm)
		if v.Verify(t.Context(), h, body) == nil {
			t.Error("a webhook without a certificate was accepted")
		}
		for _, asked := range s.asked {
			if !strings.HasPrefix(strings.ToLower(asked), "https://api.paypal.com/") && !strings.HasPrefix(strings.ToLower(asked), "https://api-m.paypal.com/") {
				t.Errorf("the certificate was asked for at %q", asked)
			}
		}
	})
}
