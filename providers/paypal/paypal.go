// Package paypal adapts PayPal's REST APIs: Orders v2, Payments v2, Payouts,
// Subscriptions, Vault v3 and Invoicing.
//
//	pp, err := outbound.New(paypal.New(paypal.Config{
//		Account: "7LNZBW6JPQ3TN", ClientID: id, Secret: secret,
//	}), ledger, opts)
//	reply, err := pp.Do(ctx, paypal.OrderCapture(outbound.Command{ID: row.ID}, orderID, nil))
//	capture, err := paypal.CaptureOf(reply)
//
// What PayPal reports by itself is handed to the client once it is verified:
//
//	if err := verifier.Verify(ctx, r.Header, body); err != nil { … }
//	if o, ok, err := paypal.Event(body); ok && err == nil {
//		err = pp.Observe(ctx, o)
//	}
//
// PayPal answers a resend with the latest status of the earlier request, never
// with its stored answer: a replayed capture may read REFUNDED. The package
// holds what PayPal does and how its answers read; what is done with that is
// package outbound's. Services that test against a fake find one in package
// providertest.
package paypal

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"unicode"

	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// Config says whose calls the adapter makes.
type Config struct {
	// Account is the merchant id of the account that ClientID belongs to. Required:
	// it is part of every key, so all services must state it alike.
	Account string

	// ClientID and Secret are those of the REST app. Under a drop-in the caller's
	// own token is sent, and these serve in the background and where that token is
	// refused. With neither them nor Credentials only calls that bring a token are
	// served, and a reconciler can neither resend nor look up.
	ClientID, Secret string

	// Credentials returns the app for an account, where there are many. It is asked
	// at each attempt and safe for concurrent use. Defaults to ClientID and Secret
	// for all, with PayPal-Auth-Assertion for accounts other than Account.
	Credentials func(ctx context.Context, account string) (clientID, secret string, err error)

	Sandbox   bool              // Part of every key.
	BaseURL   string            // Defaults to PayPal's, by Sandbox.
	Transport http.RoundTripper // Defaults to httpadapter.DefaultTransport.

	// MarkInvoices stamps invoice_id of authorization captures with the command's
	// mark, where the caller left it free: a partial capture whose answer was lost
	// can be found by nothing else. Payers and accounting see it. Defaults to false.
	MarkInvoices bool
}

const (
	liveURL    = "https://api-m.paypal.com"
	sandboxURL = "https://api-m.sandbox.paypal.com"
)

// New returns the adapter. What is wrong with cfg is an error of outbound.New.
func New(cfg Config) *httpadapter.Adapter {
	mode, host := "live", "api.paypal.com"
	if cfg.Sandbox {
		mode, host = "sandbox", "api.sandbox.paypal.com"
	}
	var hosts []string
	if cfg.BaseURL == "" {
		cfg.BaseURL, hosts = liveURL, []string{host}
		if cfg.Sandbox {
			cfg.BaseURL = sandboxURL
		}
	}
	if cfg.Transport == nil {
		cfg.Transport = httpadapter.DefaultTransport()
	}
	a := &authorizer{cfg: cfg, tokens: newTokenSource(cfg.BaseURL, cfg.Transport)}
	frozen := []string{"PayPal-Partner-Attribution-Id", "PayPal-Client-Metadata-Id"}
	if cfg.Sandbox {
		frozen = append(frozen, "PayPal-Mock-Response")
	}
	refresh := a.refresh
	if cfg.needsCaller() {
		refresh = nil // a token that is refused is the caller's own
	}
	return httpadapter.New(codec{}, httpadapter.Config{
		Provider:    "paypal",
		Account:     cfg.Account,
		Mode:        mode,
		BaseURL:     cfg.BaseURL,
		Hosts:       hosts,
		Operations:  cfg.operations(),
		Frozen:      frozen,
		Credentials: []string{headerAuthorization, headerAssertion},
		Untouched:   []string{"POST /v1/oauth2/token"},
		AccountOf:   accountOf,
		Authorize:   a.authorize,
		NeedsCaller: cfg.needsCaller(),
		Refresh:     refresh,
		SettingsErr: cfg.check(),
		Transport:   cfg.Transport,
	})
}

func (cfg *Config) operations() []rs.Operation {
	rows := Operations()
	for i := range rows {
		if cfg.MarkInvoices && rows[i].Name == authorizationCapture.Name {
			rows[i].Marks = []rs.Place{rs.JSON("/invoice_id")}
		}
	}
	return rows
}

// needsCaller reports whether there is no app whose token could be asked for.
func (cfg *Config) needsCaller() bool {
	return cfg.Credentials == nil && cfg.ClientID == "" && cfg.Secret == ""
}

// errUntidy is of a value that PayPal never gave out as it is. A mounted secret
// often ends in a newline.
var errUntidy = errors.New("it holds white space or a control character, as the newline at the end of a mounted file: trim it")

// tidy reports whether s holds neither white space nor control characters.
func tidy(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return unicode.IsSpace(c) || unicode.IsControl(c) })
}

func (cfg *Config) check() error {
	var errs []error
	if cfg.Account == "" {
		errs = append(errs, errors.New("Config.Account is missing: state the merchant id"))
	}
	for _, f := range []struct{ name, value string }{
		{"Account", cfg.Account}, {"ClientID", cfg.ClientID}, {"Secret", cfg.Secret},
	} {
		if !tidy(f.value) {
			errs = append(errs, fmt.Errorf("%s: %w", "Config."+f.name, errUntidy))
		}
	}
	if strings.Contains(cfg.Account, "@") {
		errs = append(errs, errors.New("Config.Account is an e-mail address: state the merchant id"))
	}
	if cfg.Credentials == nil && (cfg.ClientID == "") != (cfg.Secret == "") {
		errs = append(errs, errors.New("Config.ClientID or Config.Secret is missing: state both, or Config.Credentials, or none where every call brings its token"))
	}
	u, err := url.Parse(cfg.BaseURL)
	if err != nil || u.Host == "" {
		errs = append(errs, errors.New("Config.BaseURL is no absolute URL"))
	} else if host := strings.ToLower(u.Hostname()); strings.HasSuffix(host, ".paypal.com") && strings.HasSuffix(host, ".sandbox.paypal.com") != cfg.Sandbox {
		errs = append(errs, fmt.Errorf("Config.Sandbox is %t, but Config.BaseURL leads to %s: state them alike", cfg.Sandbox, host))
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("paypal: %w", errors.Join(errs...))
}
