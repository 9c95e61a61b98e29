package paypal

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"hash/crc32"
	"math/big"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
)

// certificatePath is where PayPal publishes the certificates of its webhooks.
const certificatePath = "/v1/notifications/certs/"

// certificateName is whom PayPal's certificates for sandbox webhooks are of.
const certificateName = "messageverificationcerts.sandbox.paypal.com"

// signer signs webhooks with a certificate of an authority of its own. It is made
// when it is first needed, since an RSA key takes a while.
type signer struct {
	once      sync.Once
	err       error
	key       *rsa.PrivateKey
	id        string // of the certificate, as its URL ends
	chain     []byte // PEM, the signer's own first
	authority string // PEM
}

func (s *signer) ready() error {
	s.once.Do(func() { s.err = s.make(time.Now()) })
	return s.err
}

// make creates the authority and the certificate, valid for a year around now.
func (s *signer) make(now time.Time) error {
	root, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	if s.key, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
		return err
	}
	from, until := now.AddDate(0, -6, 0), now.AddDate(0, 6, 0)
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "samekey fake PayPal authority"},
		NotBefore: from, NotAfter: until, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, &root.PublicKey, root)
	if err != nil {
		return err
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: certificateName}, DNSNames: []string{certificateName},
		NotBefore: from, NotAfter: until, KeyUsage: x509.KeyUsageDigitalSignature,
	}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, ca, &s.key.PublicKey, root)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(leafDER)
	s.id = fmt.Sprintf("CERT-%x-%x-%x", sum[:4], sum[4:8], sum[8:12])
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER})
	s.chain = append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leafDER}), authority...)
	s.authority = string(authority)
	return nil
}

// sign signs what PayPal signs: the transmission's id and time, the webhook's id
// and the body's CRC-32.
func (s *signer) sign(transmission, stamp, webhook string, body []byte) (string, error) {
	sum := digest(transmission, stamp, webhook, body)
	signature, err := rsa.SignPKCS1v15(nil, s.key, crypto.SHA256, sum[:])
	return base64.StdEncoding.EncodeToString(signature), err
}

func digest(transmission, stamp, webhook string, body []byte) [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%s|%s|%s|%d", transmission, stamp, webhook, crc32.ChecksumIEEE(body)))
}

// Register implements fakeprovider.Notifier.
func (d *dialect) Register(e *fakeprovider.Endpoint, random func(int, string) string) error {
	if e.Secret != "" {
		return errors.New("secret: PayPal signs with a certificate; leave it out and use the certificate_authority of the answer")
	}
	if err := d.signer.ready(); err != nil {
		return err
	}
	e.ID, e.Authority = random(17, upperDigits), d.signer.authority
	return nil
}

// Webhook implements fakeprovider.Notifier.
// Source: https://developer.paypal.com/api/rest/webhooks/rest/.
func (d *dialect) Webhook(e fakeprovider.Event, to fakeprovider.Endpoint, at time.Time) (fakeprovider.Webhook, error) {
	if err := d.signer.ready(); err != nil {
		return fakeprovider.Webhook{}, err
	}
	self := to.Base + "/v1/notifications/webhooks-events/" + e.ID
	body := encode(object{
		"id": e.ID, "event_version": "1.0", "create_time": e.At.Format("2006-01-02T15:04:05.000Z"),
		"resource_type": resourceType(e.Type), "resource_version": "2.0", "event_type": e.Type,
		"summary": "What happened, in words.", "resource": e.Object,
		"links": []object{
			{"href": self, "rel": "self", "method": "GET"},
			{"href": self + "/resend", "rel": "resend", "method": "POST"},
		},
	})
	transmission, stamp := transmissionID(), at.UTC().Format(time.RFC3339)
	signature, err := d.signer.sign(transmission, stamp, to.ID, body)
	return fakeprovider.Webhook{Body: body, Header: http.Header{
		"Content-Type":             {"application/json"},
		"Paypal-Transmission-Id":   {transmission},
		"Paypal-Transmission-Time": {stamp},
		"Paypal-Transmission-Sig":  {signature},
		"Paypal-Cert-Url":          {to.Base + certificatePath + d.signer.id},
		"Paypal-Auth-Algo":         {"SHA256withRSA"},
	}}, err
}

// transmissionID is a new one for each delivery, in the form of a UUID.
func transmissionID() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// resourceType names what an event is about.
func resourceType(typ string) string {
	for _, t := range []struct{ prefix, resource string }{
		{"CHECKOUT.ORDER.", "checkout-order"},
		{"PAYMENT.AUTHORIZATION.", "authorization"},
		{"PAYMENT.CAPTURE.REFUNDED", "refund"},
		{"PAYMENT.CAPTURE.", "capture"},
		{"PAYMENT.PAYOUTSBATCH.", "payouts"},
		{"BILLING.PLAN.", "plan"},
		{"BILLING.SUBSCRIPTION.", "subscription"},
		{"INVOICING.INVOICE.", "invoices"},
		{"VAULT.PAYMENT-TOKEN.", "payment_token"},
	} {
		if strings.HasPrefix(typ, t.prefix) {
			return t.resource
		}
	}
	return "resource"
}

// certificate answers a fetch of the certificate chain, for which PayPal asks no
// credentials.
func (d *dialect) certificate(id string) fakeprovider.Answer {
	if err := d.signer.ready(); err != nil || id != d.signer.id {
		return notFound("").answer("")
	}
	return fakeprovider.Answer{Status: http.StatusOK, Body: d.signer.chain, Header: http.Header{"Content-Type": {"application/x-pem-file"}}}
}

// verifyWebhook is POST /v1/notifications/verify-webhook-signature.
func verifyWebhook(x *exec) (reply, *failure) {
	b := x.body()
	algo, url := b.need("auth_algo", maxText), b.need("cert_url", 2048)
	transmission, stamp := b.need("transmission_id", maxText), b.need("transmission_time", maxText)
	signature, webhook := b.need("transmission_sig", 2048), b.need("webhook_id", maxText)
	var raw struct {
		Event json.RawMessage `json:"webhook_event"`
	}
	if json.Unmarshal(x.call.Request.Body, &raw) != nil || len(raw.Event) == 0 {
		b.bad("MISSING_REQUIRED_PARAMETER", "webhook_event", "The event is missing.")
	}
	if x.err != nil {
		return reply{}, x.err
	}
	status := "FAILURE"
	_, id, _ := strings.Cut(url, certificatePath)
	sig, err := base64.StdEncoding.DecodeString(signature)
	s := x.signer
	if err == nil && s.ready() == nil && id == s.id && strings.EqualFold(algo, "SHA256withRSA") {
		sum := digest(transmission, stamp, webhook, bytes.TrimSpace(raw.Event))
		if rsa.VerifyPKCS1v15(&s.key.PublicKey, crypto.SHA256, sum[:], sig) == nil {
			status = "SUCCESS"
		}
	}
	return reply{body: object{"verification_status": status}}, nil
}
