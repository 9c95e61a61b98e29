package paypal

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/seed-6b5e302b/samekey/outbound"
)

const (
	headerAuthorization = "Authorization"
	headerAssertion     = "PayPal-Auth-Assertion"
)

// authorizer sets what is asked for anew at each attempt.
type authorizer struct {
	cfg    Config
	tokens *tokenSource
}

// authorize sets the token, the account and Prefer of one attempt. A caller's
// own token is sent as it came, unless PayPal refused it before.
//
// Prefer is no part of what a request means: without it PayPal answers with
// less than a judgement needs (amount, custom_id, the payments under an order).
// An SDK that changes it between calls makes no other request of them.
func (a *authorizer) authorize(ctx context.Context, account string, own []outbound.Field, r *http.Request) error {
	r.Header.Set("Prefer", "return=representation")
	authorization, assertion := valueOf(own, headerAuthorization), valueOf(own, headerAssertion)
	if authorization == "" || a.tokens.rejected(bearer(authorization)) {
		c, err := a.client(ctx, account)
		if err != nil {
			return err
		}
		token, err := a.tokens.token(ctx, c)
		if err != nil {
			return err
		}
		authorization, assertion = "Bearer "+token, a.assertion(c.id, account)
	} else if assertion == "" {
		if a.cfg.needsCaller() && account != a.cfg.Account {
			return fmt.Errorf("%w: paypal: the call is for another account than Config.Account: bring %s with the token", outbound.ErrAuth, headerAssertion)
		}
		assertion = a.assertion(a.cfg.ClientID, account)
	}
	r.Header.Set(headerAuthorization, authorization)
	if assertion != "" {
		r.Header.Set(headerAssertion, assertion)
	}
	return nil
}

// refresh replaces the token that rejected carried, if nobody did so before.
func (a *authorizer) refresh(ctx context.Context, account string, rejected *http.Request) error {
	c, err := a.client(ctx, account)
	if err != nil {
		return err
	}
	a.tokens.reject(c.id, bearer(rejected.Header.Get(headerAuthorization)))
	_, err = a.tokens.token(ctx, c)
	return err
}

func (a *authorizer) client(ctx context.Context, account string) (client, error) {
	if a.cfg.needsCaller() {
		return client{}, fmt.Errorf("%w: paypal: the call brings no token, and the configuration has no app: bring one, or state ClientID and Secret", outbound.ErrAuth)
	}
	if a.cfg.Credentials == nil {
		return client{a.cfg.ClientID, a.cfg.Secret}, nil
	}
	id, secret, err := a.cfg.Credentials(ctx, account)
	if err != nil {
		return client{}, fmt.Errorf("paypal: Config.Credentials: %w", err)
	}
	if id == "" || secret == "" {
		return client{}, fmt.Errorf("%w: paypal: Config.Credentials returned no client id or no secret", outbound.ErrAuth)
	}
	if !tidy(id) || !tidy(secret) {
		return client{}, fmt.Errorf("%w: paypal: what Config.Credentials returned: %w", outbound.ErrInvalid, errUntidy)
	}
	return client{id, secret}, nil
}

// assertion is what lets one app act for another account: an unsigned JWT, as
// PayPal documents it. "" where the app acts for its own.
func (a *authorizer) assertion(clientID, account string) string {
	if a.cfg.Credentials != nil || account == "" || account == a.cfg.Account {
		return ""
	}
	claims, err := json.Marshal(struct {
		Issuer string `json:"iss"`
		Payer  string `json:"payer_id"`
	}{clientID, account})
	if err != nil {
		return "" // two strings always encode
	}
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"none"}`)) + "." + encode(claims) + "."
}

// accountOf reads the account that a caller's request acts for.
func accountOf(h http.Header) (string, error) {
	assertion := h.Get(headerAssertion)
	if assertion == "" {
		return "", nil
	}
	parts := strings.Split(assertion, ".")
	if len(parts) != 3 {
		return "", errors.New("PayPal-Auth-Assertion is no JWT: build it with payer_id, the merchant id")
	}
	payload := strings.NewReplacer("+", "-", "/", "_").Replace(strings.TrimRight(parts[1], "="))
	plain, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil {
		return "", errors.New("PayPal-Auth-Assertion cannot be read: build it with payer_id, the merchant id")
	}
	var claims struct {
		Payer string `json:"payer_id"`
	}
	if json.Unmarshal(plain, &claims) != nil || claims.Payer == "" {
		return "", errors.New("PayPal-Auth-Assertion names no payer_id: an e-mail address may change and is no account, name the merchant id as payer_id")
	}
	return claims.Payer, nil
}

// valueOf is the value of one header field, "" if there is none.
func valueOf(fields []outbound.Field, name string) string {
	for _, f := range fields {
		if strings.EqualFold(f.Name, name) {
			return f.Value
		}
	}
	return ""
}

// bearer is the token in the value of Authorization.
func bearer(authorization string) string {
	scheme, token, found := strings.Cut(authorization, " ")
	if !found || !strings.EqualFold(scheme, "Bearer") {
		return authorization
	}
	return strings.TrimSpace(token)
}
