package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// The demo starts its worker processes from its own executable, which is this
// test's here.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "demo-worker" || os.Args[1] == "reprocess") {
		main()
		return
	}
	os.Exit(m.Run())
}

// samekey runs a command line and returns what it printed.
func samekey(ctx context.Context, args ...string) (string, error) {
	var out bytes.Buffer
	cmd := root()
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(ctx)
	return out.String(), err
}

// The demo's figures are the providers' own count: effects are commands less
// declines, and nothing happened twice.
func TestDemo(t *testing.T) {
	t.Parallel()
	out, err := samekey(t.Context(), "demo")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	last := lines[len(lines)-1]
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(last, "commands ") || !strings.Contains(string(readme), "\n"+last+"\n") {
		t.Errorf("the last line is %q, which the README does not show", last)
	}
	for _, scene := range []string{"the same key is sent again", "the ledger answers", "a second sender", "with another amount", "declined", "SIGKILL", "another process finishes"} {
		for _, provider := range []string{"stripe", "paypal"} {
			if !regexp.MustCompile(`(?m)^` + provider + ` .*` + scene).MatchString(out) {
				t.Errorf("%s shows no line with %q", provider, scene)
			}
		}
	}
}

func TestDemoAsJSON(t *testing.T) {
	t.Parallel()
	out, err := samekey(t.Context(), "demo", "--json")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var got totals
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got.Commands < 10 || got.Effects != got.Commands-got.Declines || got.Duplicates != 0 || got.Declines == 0 ||
		got.Blocked < 2 || got.Conflicts < 2 || got.Deliveries <= got.Effects ||
		got.Labels.NewExecution == 0 || got.Labels.OriginalReplay == 0 || got.Labels.LatestStatus == 0 {
		t.Errorf("got %+v", got)
	}
}

// The standalone fakes answer, and their admin API injects and counts.
func TestFakeServers(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	r, w := io.Pipe()
	served := make(chan error, 1)
	cmd := root()
	cmd.SetOut(w)
	cmd.SetArgs([]string{"fake", "--stripe", "127.0.0.1:0", "--paypal", "127.0.0.1:0"})
	go func() {
		served <- cmd.ExecuteContext(ctx)
		w.Close()
	}()
	urls := make(map[string]string)
	for range 2 {
		var name, url, admin, adminURL string
		if _, err := fmt.Fscanln(r, &name, &url, &admin, &adminURL); err != nil {
			t.Fatal(err)
		}
		urls[name] = url
	}
	post := func(url, body string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer sk_test_x")
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return 0, ""
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(text)
	}
	if status, text := post(urls["stripe"]+"/_fake/faults", `{"kind":"drop_after_apply","operation":"customer.create"}`); status/100 != 2 {
		t.Fatalf("faults: %d %s", status, text)
	}
	if status, text := post(urls["stripe"]+"/v1/customers", "description=x"); status != 0 {
		t.Errorf("the fault did not lose the answer: %d %s", status, text)
	}
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, urls["stripe"]+"/_fake/effects", nil)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var effects struct{ Total int }
	if err := json.NewDecoder(resp.Body).Decode(&effects); err != nil || effects.Total != 1 {
		t.Errorf("effects %+v, %v; want 1", effects, err)
	}
	if status, text := post(urls["paypal"]+"/_fake/seed", `{"type":"approved_order","object":{"Value":"12.50","Currency":"EUR"}}`); status/100 != 2 || !strings.Contains(text, `"id"`) {
		t.Errorf("seed: %d %s", status, text)
	}
	stop()
	select {
	case err := <-served:
		if err != nil {
			t.Errorf("the end of the context is %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the fakes do not stop")
	}
}

func TestWrongUsage(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"fake"}, "name at least one address"},
		{[]string{"fake", "--stripe", "0.0.0.0:0"}, "loopback"},
		{[]string{"fake", "--stripe", "nonsense"}, "127.0.0.1:12111"},
		{[]string{"unheard"}, "unknown command"},
		{[]string{"demo", "extra"}, "unknown command"},
	} {
		out, err := samekey(t.Context(), tt.args...)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: %v, want %q\n%s", tt.args, err, tt.want, out)
		}
		if _, failed := errors.AsType[*failure](err); failed != (tt.args[0] == "fake") {
			t.Errorf("%v: failure %v", tt.args, failed)
		}
	}
	for _, name := range []string{"demo", "fake"} {
		if out, err := samekey(t.Context(), name, "--help"); err != nil || !strings.Contains(out, "Examples:") {
			t.Errorf("%s --help: %v\n%s", name, err, out)
		}
	}
}

// A driver's error has a line for each host and try: the same is told once.
func TestErrorsTellOnce(t *testing.T) {
	err := &failure{errors.New("no connection:\n\thost: refused\n\thost: refused: is the DSN right?")}
	if got, want := err.Error(), "no connection: host: refused: is the DSN right?"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
