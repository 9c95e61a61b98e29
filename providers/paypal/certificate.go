package paypal

import (
	"bytes"
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"
)

const (
	maxCertificates = 16       // that a Verifier keeps
	maxChain        = 8        // certificates in one answer
	maxPEM          = 64 << 10 // bytes
	minKey          = 2048     // bits
	keepFor         = day
)

// certificate is one that was accepted.
type certificate struct {
	key   *rsa.PublicKey
	until time.Time
}

// key returns the public key of the certificate at url, which was checked to be
// PayPal's place for one.
func (v *Verifier) key(ctx context.Context, url string) (*rsa.PublicKey, error) {
	v.mu.Lock()
	c, known := v.known[url]
	v.mu.Unlock()
	if known && time.Now().Before(c.until) {
		return c.key, nil
	}
	chain, err := v.Certificate(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("paypal: the webhook's certificate could not be fetched: %w", err)
	}
	now := time.Now()
	if c, err = v.accept(chain, now); err != nil {
		return nil, fmt.Errorf("%w: its certificate %w", ErrWebhook, err)
	}
	v.keep(url, c)
	return c.key, nil
}

// keep holds a certificate for a day, and no more of them than a few: what is
// too old goes first, then what is oldest.
func (v *Verifier) keep(url string, c certificate) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.known == nil {
		v.known = make(map[string]certificate)
	}
	delete(v.known, url)
	if len(v.known) >= maxCertificates {
		oldest := ""
		for u, k := range v.known {
			if oldest == "" || k.until.Before(v.known[oldest].until) {
				oldest = u
			}
		}
		delete(v.known, oldest)
	}
	v.known[url] = c
}

// accept checks a chain: of PayPal's name for signing messages, by one of the
// authorities, at this time.
func (v *Verifier) accept(chain []byte, now time.Time) (certificate, error) {
	leaf, between, err := parseChain(chain)
	if err != nil {
		return certificate{}, err
	}
	if !namesPayPal(leaf) {
		return certificate{}, errors.New("is not PayPal's for signing messages: its name is not messageverificationcerts…paypal.com")
	}
	_, err = leaf.Verify(x509.VerifyOptions{
		Roots: v.Roots, Intermediates: between, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	})
	if err != nil {
		return certificate{}, fmt.Errorf("is not trusted: %w", err)
	}
	key, ok := leaf.PublicKey.(*rsa.PublicKey)
	if !ok || key.N.BitLen() < minKey {
		return certificate{}, fmt.Errorf("has no RSA key of %d bits or more", minKey)
	}
	until := now.Add(keepFor)
	if leaf.NotAfter.Before(until) {
		until = leaf.NotAfter
	}
	return certificate{key, until}, nil
}

// parseChain reads the signer's certificate, which stands first, and those that
// lead from it to an authority.
func parseChain(chain []byte) (leaf *x509.Certificate, between *x509.CertPool, err error) {
	if len(chain) > maxPEM {
		return nil, nil, fmt.Errorf("has more than %d bytes", maxPEM)
	}
	between = x509.NewCertPool()
	for n := 0; ; n++ {
		var block *pem.Block
		if block, chain = pem.Decode(bytes.TrimSpace(chain)); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" || n == maxChain {
			return nil, nil, fmt.Errorf("is no chain of at most %d certificates", maxChain)
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, nil, errors.New("cannot be parsed")
		}
		if leaf == nil {
			leaf = c
		} else {
			between.AddCert(c)
		}
	}
	if leaf == nil {
		return nil, nil, errors.New("is no PEM")
	}
	return leaf, between, nil
}

// namesPayPal reports whether a certificate is of the name under which PayPal
// signs webhooks. A certificate of another of its names, as a web server's, is
// not for that.
func namesPayPal(c *x509.Certificate) bool {
	names := c.DNSNames
	if len(names) == 0 {
		names = []string{c.Subject.CommonName}
	}
	for _, name := range names {
		name = strings.ToLower(name)
		if name == "messageverificationcerts.paypal.com" || name == "messageverificationcerts.sandbox.paypal.com" {
			return true
		}
	}
	return false
}
