package main

import (
	"os"
	"strings"
	"testing"
)

func environment(pairs ...string) func(string) string {
	values := map[string]string{}
	for i := 0; i+1 < len(pairs); i += 2 {
		values[pairs[i]] = pairs[i+1]
	}
	return func(name string) string { return values[name] }
}

// Live keys, half credentials and none are refused, in a line that says what to
// set and shows no value.
func TestCredentialsAreRefused(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		env  func(string) string
		want string
	}{
		{environment(), "STRIPE_SECRET_KEY"},
		{environment("STRIPE_SECRET_KEY", "sk_live_51Secret"), "sk_test_"},
		{environment("STRIPE_SECRET_KEY", "rk_live_51Secret"), "rk_test_"},
		{environment("STRIPE_SECRET_KEY", " \n"), "STRIPE_SECRET_KEY"},
		{environment("STRIPE_SECRET_KEY", "pk_test_51Secret"), "sk_test_"},
		{environment("STRIPE_SECRET_KEY", "sk_test_51Secret", "PAYPAL_CLIENT_ID", "51Secret"), "set both"},
		{environment("PAYPAL_CLIENT_SECRET", "51Secret"), "set both"},
		{environment("PAYPAL_CLIENT_ID", "51Secret", "PAYPAL_CLIENT_SECRET", "51Secret", "PAYPAL_ENVIRONMENT", "live"), "sandbox only"},
	} {
		var out, errs strings.Builder
		code := program(t.Context(), x.env, &out, &errs)
		said := errs.String()
		if code != exitUsage || out.Len() != 0 || !strings.Contains(said, x.want) || strings.Contains(said, "51Secret") || strings.Count(said, "\n") != 1 {
			t.Errorf("exit code %d, said %q and %q, want %q", code, said, out.String(), x.want)
		}
	}
}

// Credentials go to the two test addresses, whatever the environment says.
func TestAddresses(t *testing.T) {
	t.Parallel()
	suites, err := configured(environment("STRIPE_SECRET_KEY", "rk_test_1\n", "PAYPAL_CLIENT_ID", " id", "PAYPAL_CLIENT_SECRET", "secret",
		"STRIPE_API_BASE", "https://example.com", "PAYPAL_BASE", "https://api-m.paypal.com"))
	if err != nil || len(suites) != 2 {
		t.Fatalf("got %d suites and %v, want both", len(suites), err)
	}
	for i, want := range []string{"https://api.stripe.com", "https://api-m.sandbox.paypal.com"} {
		if got := suites[i].api.base; got != want {
			t.Errorf("%s is called at %s, want %s", suites[i].provider, got, want)
		}
	}
}

// The page names every variable, every setting of the fakes and every verdict.
func TestPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/sandbox.md")
	if err != nil {
		t.Fatal(err)
	}
	words := []string{string(holds), string(changed), string(learned), string(unchecked), "make sandbox"}
	note := func(name string) string { words = append(words, name); return "" }
	if _, err := configured(note); err == nil {
		t.Error("an empty environment has credentials")
	}
	both := environment("STRIPE_SECRET_KEY", "sk_test_1", "PAYPAL_CLIENT_ID", "id", "PAYPAL_CLIENT_SECRET", "secret")
	suites, err := configured(func(name string) string { note(name); return both(name) })
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range suites {
		for _, f := range s.facts() {
			words = append(words, f.setting)
		}
	}
	for _, w := range words {
		if !strings.Contains(string(page), w) {
			t.Errorf("docs/sandbox.md does not name %q", w)
		}
	}
}
