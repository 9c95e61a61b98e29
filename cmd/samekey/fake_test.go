package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// fakeServer runs samekey fake with these flags and returns the lines that it
// prints, until the test ends.
func fakeServer(t *testing.T, flags ...string) *bufio.Scanner {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	r, w := io.Pipe()
	served := make(chan error, 1)
	cmd := root()
	cmd.SetOut(w)
	cmd.SetArgs(append([]string{"fake"}, flags...))
	go func() {
		served <- cmd.ExecuteContext(ctx)
		w.Close()
	}()
	t.Cleanup(func() {
		stop()
		go func() { _, _ = io.Copy(io.Discard, r) }()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return bufio.NewScanner(r)
}

// fields returns the words of the next line.
func fields(t *testing.T, lines *bufio.Scanner, want int) []string {
	t.Helper()
	if !lines.Scan() {
		t.Fatalf("no further line: %v", lines.Err())
	}
	words := strings.Fields(lines.Text())
	if len(words) != want {
		t.Fatalf("%q has %d words, want %d", lines.Text(), len(words), want)
	}
	return words
}

// The flags name webhook endpoints, and what webhooks are checked with is
// printed. The admin API describes itself; the provider's paths are not cleaned.
func TestFakeWebhooksByFlag(t *testing.T) {
	t.Parallel()
	arrived := make(chan *http.Request, 10)
	service := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { arrived <- r }))
	defer service.Close()
	lines := fakeServer(t, "--stripe", "127.0.0.1:0", "--stripe-webhook", service.URL,
		"--paypal", "127.0.0.1:0", "--paypal-webhook", service.URL, "--strict")
	stripe := fields(t, lines, 4)[1]
	if words := fields(t, lines, 7); words[2] != service.URL || !strings.HasPrefix(words[6], "whsec_") {
		t.Errorf("stripe's webhook: %q", words)
	}
	paypal := fields(t, lines, 4)[1]
	if words := fields(t, lines, 5); words[2] != service.URL || len(words[4]) != 17 {
		t.Errorf("paypal's webhook: %q", words)
	}
	send := func(method, url, body, key string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer sk_test_x")
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if key != "" {
			req.Header.Set("Idempotency-Key", key)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
	if status, text := send("POST", stripe+"/v1/customers", "description=x", ""); status != 400 || !strings.Contains(text, "strict") {
		t.Errorf("a strict fake took a write without a key: %d %s", status, text)
	}
	if status, text := send("POST", stripe+"/v1/customers", "description=x", "k"); status != 200 {
		t.Errorf("%d %s", status, text)
	}
	if status, text := send("POST", stripe+"//v1/customers", "description=x", "l"); status/100 == 3 {
		t.Errorf("an untidy path is redirected: %d %s", status, text)
	}
	select {
	case r := <-arrived:
		if r.Header.Get("Stripe-Signature") == "" {
			t.Errorf("the webhook has no signature: %v", r.Header)
		}
	case <-time.After(20 * time.Second):
		t.Error("no webhook arrived")
	}
	status, text := send("GET", paypal+adminPath+"/openapi.json", "", "")
	var document struct{ Openapi string }
	if err := json.Unmarshal([]byte(text), &document); status != 200 || err != nil || !strings.HasPrefix(document.Openapi, "3.") {
		t.Errorf("%d %v: %.80s", status, err, text)
	}
}

func TestFakeRefusesFlags(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--stripe", "127.0.0.1:0", "--stripe-webhook", "http://203.0.113.1/hook"}, "must be on this machine"},
		{[]string{"--stripe", "127.0.0.1:0", "--max-keys", "0"}, "at least 1"},
		{[]string{"--stripe", "127.0.0.1:0", "--paypal-webhook", "http://127.0.0.1:1/hook"}, "--paypal-webhook needs --paypal"},
	} {
		out, err := samekey(t.Context(), append([]string{"fake"}, tt.args...)...)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: %v, want %q\n%s", tt.args, err, tt.want, out)
		}
	}
}

// BenchmarkFakeStart prints how long the built program takes from its start until
// both fakes can be reached.
func BenchmarkFakeStart(b *testing.B) {
	program := filepath.Join(b.TempDir(), "samekey")
	if out, err := exec.CommandContext(b.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	for b.Loop() {
		cmd := exec.CommandContext(b.Context(), program, "fake", "--stripe", "127.0.0.1:0", "--paypal", "127.0.0.1:0")
		out, err := cmd.StdoutPipe()
		if err != nil {
			b.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		for lines, n := bufio.NewScanner(out), 0; n < 2; n++ {
			if !lines.Scan() {
				b.Fatal("the program ended")
			}
		}
		b.StopTimer()
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // its error is the kill
		b.StartTimer()
	}
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/start")
}
