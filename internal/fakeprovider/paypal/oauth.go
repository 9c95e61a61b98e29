package paypal

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// token is an access token that was issued.
type token struct{ expires time.Time }

// tokenPrefix starts every token, as at PayPal. The client id follows, so that
// an app's keys can be told apart without looking at the tokens.
const tokenPrefix = "A21AA"

// readBasic returns the client's credentials and whether PayPal accepts them.
func (c Config) readBasic(h http.Header) (id string, ok bool) {
	r := http.Request{Header: h}
	id, secret, ok := r.BasicAuth()
	switch {
	case !ok || id == "" || secret == "":
		return "", false
	case c.ClientID != "" && id != c.ClientID, c.Secret != "" && secret != c.Secret:
		return "", false
	}
	return id, true
}

// readBearer returns the token and the client id in it.
func readBearer(h http.Header) (value, app string) {
	scheme, value, found := strings.Cut(h.Get("Authorization"), " ")
	if !found || !strings.EqualFold(scheme, "Bearer") {
		return "", ""
	}
	value = strings.TrimSpace(value)
	encoded, _, _ := strings.Cut(strings.TrimPrefix(value, tokenPrefix), ".")
	id, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil {
		return value, "" // not one of ours: it will not be found
	}
	return value, string(id)
}

// authenticate refuses a token that was never issued, has expired or was
// revoked.
func (x *exec) authenticate() *failure {
	if x.route.op == "token" || x.cfg.Lenient {
		return nil
	}
	if t, known := x.s.tokens[x.bearer]; !known || !x.tx.Now.Before(t.expires) {
		return badToken()
	}
	return nil
}

// issueToken is POST /v1/oauth2/token.
func issueToken(x *exec) (reply, *failure) {
	if x.app == "" {
		return reply{}, &failure{status: http.StatusUnauthorized, raw: object{
			"error": "invalid_client", "error_description": "The client id or the secret is wrong."}}
	}
	if x.form.Get("grant_type") != "client_credentials" {
		return reply{}, &failure{status: http.StatusBadRequest, raw: object{
			"error": "unsupported_grant_type", "error_description": "grant_type must be client_credentials."}}
	}
	for value, t := range x.s.tokens {
		if !x.tx.Now.Before(t.expires) {
			delete(x.s.tokens, value)
		}
	}
	if x.s.size() >= x.cfg.MaxObjects {
		return reply{}, full()
	}
	value := tokenPrefix + base64.RawURLEncoding.EncodeToString([]byte(x.app)) + "." + x.tx.Token(54, base62)
	x.s.tokens[value] = token{expires: x.tx.Now.Add(x.cfg.TokenLifetime)}
	return reply{id: "token", body: object{
		"scope":        "https://uri.paypal.com/services/payments/payment https://uri.paypal.com/services/reporting/search/read openid",
		"access_token": value,
		"token_type":   "Bearer",
		"app_id":       "APP-80W284485P519543T",
		"expires_in":   int64(x.cfg.TokenLifetime / time.Second),
		"nonce":        stamp(x.tx.Now) + x.tx.Token(43, base62),
	}}, nil
}

// userInfo is GET /v1/identity/oauth2/userinfo: whose token it is.
func userInfo(x *exec) (reply, *failure) {
	if x.query.Get("schema") != "paypalv1.1" {
		x.bad("INVALID_PARAMETER_VALUE", "schema", "The schema must be paypalv1.1.")
		return reply{}, x.err
	}
	return reply{body: object{"user_id": "https://www.paypal.com/webapps/auth/identity/user/" + x.cfg.MerchantID,
		"payer_id": x.cfg.MerchantID, "verified_account": "true"}}, nil
}

// parseForm reads a form body; a malformed one has no values.
func parseForm(body []byte) url.Values {
	v, err := url.ParseQuery(string(body))
	if err != nil {
		return url.Values{}
	}
	return v
}
