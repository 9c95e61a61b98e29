package stripe

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"unicode"

	"github.com/seed-6b5e302b/samekey/outbound"
)

// access sets credentials and account headers.
type access struct{ Config }

func (a *access) mode() string {
	if a.Test {
		return modeTest
	}
	return modeLive
}

func (a *access) check() error {
	if !strings.HasPrefix(a.Account, "acct_") {
		return errors.New("stripe: Config.Account must be Stripe's id of the account, acct_…")
	}
	if !tidy(a.Account) {
		return fmt.Errorf("stripe: Config.Account: %w", errUntidy)
	}
	if a.SecretKey != "" {
		if err := a.checkKey(a.SecretKey); err != nil {
			return fmt.Errorf("stripe: Config.SecretKey: %w", err)
		}
		if organization(a.SecretKey) && a.Version == "" {
			return errors.New("stripe: an organization key needs Config.Version")
		}
	}
	return nil // BaseURL is checked by httpadapter
}

// checkKey refuses what is no secret key and a key of the other mode. A key
// that tells no mode is taken.
func (a *access) checkKey(key string) error {
	if !tidy(key) {
		return errUntidy
	}
	if !strings.HasPrefix(key, "sk_") && !strings.HasPrefix(key, "rk_") {
		return errors.New("expected a secret or restricted key, sk_… or rk_…")
	}
	return a.checkMode(key)
}

// errUntidy is of a value that no header can carry as it is. A mounted secret
// often ends in a newline.
var errUntidy = errors.New("it holds white space or a control character, as the newline at the end of a mounted file: trim it")

// tidy reports whether s holds neither white space nor control characters.
func tidy(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return unicode.IsSpace(c) || unicode.IsControl(c) })
}

func (a *access) checkMode(key string) error {
	switch mode := keyMode(key); {
	case mode == "" || mode == a.mode():
		return nil
	case mode == modeLive:
		return errors.New("a live key, but Config.Test is set")
	default:
		return errors.New("a test key, but Config.Test is not set")
	}
}

// keyMode returns the mode that a key states; "" if it states none.
func keyMode(key string) string {
	for _, prefix := range []string{"sk_", "rk_"} {
		rest, ok := strings.CutPrefix(key, prefix)
		if !ok {
			continue
		}
		rest = strings.TrimPrefix(rest, "org_")
		for _, mode := range []string{modeLive, modeTest} {
			if strings.HasPrefix(rest, mode+"_") {
				return mode
			}
		}
	}
	return ""
}

// organization reports whether key acts for all accounts of an organization.
// Source: https://docs.stripe.com/keys/organization-api-keys.
func organization(key string) bool { return strings.HasPrefix(key, "sk_org") }

// authorize sets the credential and the account header of one attempt. The
// credential never appears in its errors.
func (a *access) authorize(ctx context.Context, account string, own []outbound.Field, r *http.Request) error {
	key, err := a.secret(ctx, account, own)
	if err != nil {
		return err
	}
	for _, f := range own {
		r.Header.Set(f.Name, f.Value)
	}
	if own == nil {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	ofAccount := own == nil && a.Credentials != nil // the key is the account's own
	switch {
	case organization(key):
		r.Header.Set(headerContext, account) // it stands on every request of such a key
	case account == a.Account || ofAccount:
	case strings.Contains(account, "/") || a.isV2(r.URL):
		r.Header.Set(headerContext, account)
	default:
		r.Header.Set(headerAccount, account)
	}
	return nil
}

// secret returns the key that requests of an account are sent with. A key of the
// other mode is outbound.ErrInvalid.
func (a *access) secret(ctx context.Context, account string, own []outbound.Field) (string, error) {
	switch {
	case own != nil:
		key := ""
		for _, f := range own {
			if strings.EqualFold(f.Name, "Authorization") {
				key = secretIn(f.Value)
			}
		}
		if err := a.checkMode(key); err != nil {
			return "", fmt.Errorf("%w: stripe: the request's own key: %w", outbound.ErrInvalid, err)
		}
		return key, nil
	case a.Credentials != nil:
		key, err := a.Credentials(ctx, account)
		if err != nil {
			return "", fmt.Errorf("stripe: Config.Credentials: %w", err)
		}
		if !tidy(key) {
			return "", fmt.Errorf("%w: stripe: the key that Config.Credentials returned: %w", outbound.ErrInvalid, errUntidy)
		}
		if err := a.checkMode(key); err != nil {
			return "", fmt.Errorf("%w: stripe: Config.Credentials: %w", outbound.ErrInvalid, err)
		}
		if err := a.checkKey(key); err != nil {
			return "", fmt.Errorf("%w: stripe: Config.Credentials: %w", outbound.ErrAuth, err)
		}
		return key, nil
	case a.SecretKey == "":
		return "", fmt.Errorf("%w: no SecretKey in stripe.Config: this adapter serves a drop-in only", outbound.ErrInvalid)
	}
	return a.SecretKey, nil
}

func (a *access) isV2(u *url.URL) bool {
	path := u.EscapedPath()
	if base, err := url.Parse(a.BaseURL); err == nil {
		path = strings.TrimPrefix(path, strings.TrimSuffix(base.EscapedPath(), "/"))
	}
	return strings.HasPrefix(path, "/v2/")
}

// secretIn returns the key in an Authorization header, bearer or basic; "" if
// there is none.
func secretIn(authorization string) string {
	kind, value, _ := strings.Cut(authorization, " ")
	switch {
	case strings.EqualFold(kind, "Bearer"):
		return strings.TrimSpace(value)
	case strings.EqualFold(kind, "Basic"):
		b, err := base64.StdEncoding.DecodeString(strings.TrimSpace(value))
		if err != nil {
			return ""
		}
		user, _, _ := strings.Cut(string(b), ":")
		return user
	}
	return ""
}
