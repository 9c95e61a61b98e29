package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/paypal"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
)

// What commands need beside the ledger stands in the environment, each value in
// NAME or in the file that NAME_FILE names.
const (
	envSecret   = "SAMEKEY_SECRET"
	envSealKeys = "SAMEKEY_SEAL_KEYS"
	envBodies   = "SAMEKEY_BODIES"
	envStripe   = "SAMEKEY_STRIPE_"
	envPayPal   = "SAMEKEY_PAYPAL_"
)

const sealKeysHelp = `` + envSealKeys + ` holds ID=BASE64 of
each key, the current one first, separated by commas, or ` + envBodies + ` is plain. Each
may stand in a file that the same name with _FILE holds the path of.`

const credentialsHelp = `Values stand in the environment, or in a file whose path is in the same name with _FILE:

  ` + envSecret + `             the ledger's secret, base64 (none: leave it out)
  ` + envSealKeys + `          ID=BASE64 of each seal key, the current one first
  ` + envBodies + `             plain or none, where bodies are not sealed
` + providersHelp

// providersHelp names the credentials of the providers.
const providersHelp = `  ` + envStripe + `ACCOUNT     Stripe's id of the account, acct_…
  ` + envStripe + `KEY         its secret key; with ` + envStripe + `TEST=1 that of test mode
  ` + envPayPal + `ACCOUNT     the merchant id
  ` + envPayPal + `CLIENT_ID   of the REST app; with ` + envPayPal + `SANDBOX=1 that of the sandbox
  ` + envPayPal + `SECRET      of the REST app`

// fromEnv returns the value of a variable, or what stands in the file that its
// _FILE names; "" for neither. Errors name the variable and hold no value.
func fromEnv(name string) (string, error) {
	value, path := os.Getenv(name), os.Getenv(name+"_FILE")
	switch {
	case value != "" && path != "":
		return "", fmt.Errorf("%s and %s_FILE are both set: leave one of them", name, name)
	case path == "":
		return strings.TrimSpace(value), nil
	}
	file, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("%s_FILE: %w", name, err)
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxDSN+1))
	if err != nil {
		return "", fmt.Errorf("%s_FILE: %w", name, err)
	}
	if text := strings.TrimSpace(string(content)); text != "" && len(content) <= maxDSN {
		return text, nil
	}
	return "", fmt.Errorf("%s_FILE: %s must hold the value and nothing else", name, path)
}

// allFromEnv returns the values of variables with one prefix.
func allFromEnv(prefix string, names ...string) (map[string]string, error) {
	values := make(map[string]string, len(names))
	var errs []error
	for _, name := range names {
		value, err := fromEnv(prefix + name)
		values[name] = value
		errs = append(errs, err)
	}
	return values, errors.Join(errs...)
}

// flagFromEnv reads a variable that is on or off.
func flagFromEnv(name string) (bool, error) {
	value := strings.TrimSpace(os.Getenv(name))
	if value == "" {
		return false, nil
	}
	on, err := strconv.ParseBool(value)
	if err != nil {
		return false, fmt.Errorf("%s is neither 1 nor 0", name)
	}
	return on, nil
}

func secretFromEnv() (keyderive.Secret, error) {
	text, err := fromEnv(envSecret)
	if err != nil || text == "" {
		return keyderive.Secret{}, err
	}
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil { // the decoder's error may tell of the value
		return keyderive.Secret{}, fmt.Errorf("%s is no base64: write it as `openssl rand -base64 32` does", envSecret)
	}
	s, err := keyderive.NewSecret(b)
	if err != nil {
		return s, fmt.Errorf("%s: %w", envSecret, err)
	}
	return s, nil
}

// sealKeysFromEnv returns the seal keys, the current one first; none is no error.
func sealKeysFromEnv() (keys []outbound.SealKey, err error) {
	text, err := fromEnv(envSealKeys)
	if err != nil || text == "" {
		return nil, err
	}
	for i, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == '\n' }) {
		id, encoded, ok := strings.Cut(strings.TrimSpace(part), "=")
		b, err := base64.StdEncoding.DecodeString(encoded)
		if !ok || id == "" || err != nil || len(b) != 32 {
			return nil, fmt.Errorf("%s: key no. %d is not ID=BASE64 of 32 bytes, as 2026=$(openssl rand -base64 32)", envSealKeys, i+1)
		}
		keys = append(keys, outbound.SealKey{ID: id, Bytes: b})
	}
	return keys, nil
}

// sealerFromEnv returns what opens and seals bodies.
func sealerFromEnv() (outbound.Sealer, error) {
	keys, err := sealKeysFromEnv()
	if err != nil {
		return nil, err
	}
	switch kind := strings.TrimSpace(os.Getenv(envBodies)); {
	case len(keys) > 0 && kind == "":
		return outbound.Seal(keys[0], keys[1:]...), nil
	case len(keys) > 0:
		return nil, fmt.Errorf("%s and %s are both set: leave one of them", envSealKeys, envBodies)
	case kind == "plain":
		return outbound.PlainBodies(), nil
	case kind == "none":
		return outbound.NoBodies(), nil
	}
	return nil, fmt.Errorf("no seal key is given: put ID=BASE64 into %s, or plain or none into %s, as the services have it", envSealKeys, envBodies)
}

// adaptersFromEnv returns an adapter for each provider whose credentials are there.
func adaptersFromEnv() (adapters []outbound.Adapter, err error) {
	if adapters, err = stripeFromEnv(nil); err == nil {
		adapters, err = paypalFromEnv(adapters)
	}
	if err == nil && len(adapters) == 0 {
		err = fmt.Errorf("no provider's credentials are given: set %sACCOUNT and %sKEY, or %sACCOUNT, %sCLIENT_ID and %sSECRET",
			envStripe, envStripe, envPayPal, envPayPal, envPayPal)
	}
	return adapters, err
}

func stripeFromEnv(adapters []outbound.Adapter) ([]outbound.Adapter, error) {
	v, err := allFromEnv(envStripe, "ACCOUNT", "KEY", "URL")
	if err != nil || v["ACCOUNT"] == "" && v["KEY"] == "" {
		return adapters, err
	}
	if v["ACCOUNT"] == "" || v["KEY"] == "" {
		return nil, fmt.Errorf("%sACCOUNT and %sKEY belong together: one of them is missing", envStripe, envStripe)
	}
	test, err := flagFromEnv(envStripe + "TEST")
	if err != nil {
		return nil, err
	}
	return append(adapters, stripe.New(stripe.Config{Account: v["ACCOUNT"], SecretKey: v["KEY"], Test: test, BaseURL: v["URL"]})), nil
}

func paypalFromEnv(adapters []outbound.Adapter) ([]outbound.Adapter, error) {
	v, err := allFromEnv(envPayPal, "ACCOUNT", "CLIENT_ID", "SECRET", "URL")
	if err != nil || v["ACCOUNT"] == "" && v["CLIENT_ID"] == "" && v["SECRET"] == "" {
		return adapters, err
	}
	if v["ACCOUNT"] == "" || v["CLIENT_ID"] == "" || v["SECRET"] == "" {
		return nil, fmt.Errorf("%sACCOUNT, %sCLIENT_ID and %sSECRET belong together: one of them is missing", envPayPal, envPayPal, envPayPal)
	}
	sandbox, err := flagFromEnv(envPayPal + "SANDBOX")
	if err != nil {
		return nil, err
	}
	return append(adapters, paypal.New(paypal.Config{
		Account: v["ACCOUNT"], ClientID: v["CLIENT_ID"], Secret: v["SECRET"], Sandbox: sandbox, BaseURL: v["URL"],
	})), nil
}
