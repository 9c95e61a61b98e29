package fakeserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stripe/stripe-go/v86"

	"github.com/seed-6b5e302b/samekey/integration/fakeserver"
)

// Every command line of the page does what the page says it prints: a line "# …"
// below a command is its output, in which "…" stands for anything.
func TestShellCommands(t *testing.T) {
	t.Parallel()
	fakes := fakeserver.Start(t)
	blocks := fakeserver.Blocks(t, "sh", fakes)
	if len(blocks) != 5 || !strings.HasPrefix(blocks[0], "go install github.com/seed-6b5e302b/samekey/cmd/samekey@") {
		t.Fatalf("the page has %d blocks of commands", len(blocks))
	}
	for _, block := range blocks[1:] {
		var want []string
		for line := range strings.SplitSeq(block, "\n") {
			if output, ok := strings.CutPrefix(line, "# "); ok {
				want = append(want, strings.ReplaceAll(regexp.QuoteMeta(output), "…", ".*"))
			}
		}
		got := shell(t, block)
		if !regexp.MustCompile("^" + strings.Join(want, " *\n") + " *\n?$").MatchString(got) {
			t.Errorf("these commands\n%s\nprint\n%s", block, got)
		}
	}
}

func shell(t *testing.T, script string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-eu", "-c", script)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s%s", err, script, out, stderr.Bytes())
	}
	return string(out)
}

func TestPython(t *testing.T) {
	t.Parallel()
	blocks := fakeserver.Blocks(t, "python", fakeserver.Start(t))
	if len(blocks) != 1 {
		t.Fatalf("the page has %d blocks of Python, want 1", len(blocks))
	}
	out, err := exec.CommandContext(t.Context(), "python3", "-c", blocks[0]).CombinedOutput()
	if err != nil || string(out) != "once\n" {
		t.Errorf("%v: python3 is needed here, on Debian apt-get install python3\n%s", err, out)
	}
}

// The page's workflow starts the fakes in the background and waits for them.
func TestWorkflowStep(t *testing.T) {
	t.Parallel()
	fakes := map[string]string{"stripe": "http://" + freeAddress(t), "paypal": "http://" + freeAddress(t)}
	blocks := fakeserver.Blocks(t, "yaml", fakes)
	if len(blocks) != 1 {
		t.Fatalf("the page has %d workflows, want 1", len(blocks))
	}
	_, step, found := strings.Cut(blocks[0], "- run: |\n")
	step, _, ended := strings.Cut(step, "\n      - ")
	if !found || !ended {
		t.Fatalf("the workflow has no step of several lines:\n%s", blocks[0])
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	cmd := exec.CommandContext(ctx, "bash", "-e", "-c", step+"\nwait")
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(fakeserver.Build(t))+":"+os.Getenv("PATH"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the step leaves the fakes running
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	answers := json.NewDecoder(out)
	for range fakes {
		var clock struct{ Now string }
		if err := answers.Decode(&clock); err != nil || clock.Now == "" {
			t.Fatalf("the fakes do not answer: %v\n%s", err, step)
		}
	}
	stop()
	_ = cmd.Wait() // its error is the kill
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// The page's Go block is this function.
func lostRefund(ctx context.Context, fake, charge string) (int64, error) {
	body := `{"kind":"drop_after_apply","operation":"refund.create"}`
	resp, err := http.Post(fake+"/_fake/faults", "application/json", strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	_ = resp.Body.Close()

	config := &stripe.BackendConfig{URL: stripe.String(fake), MaxNetworkRetries: stripe.Int64(1)}
	client := stripe.NewClient("sk_test_x", stripe.WithBackends(stripe.NewBackendsWithConfig(config)))
	params := &stripe.RefundCreateParams{Charge: &charge, Amount: stripe.Int64(500)}
	params.SetIdempotencyKey("refund-1")
	refund, err := client.V1Refunds.Create(ctx, params)
	if err != nil {
		return 0, err
	}
	return refund.Amount, nil
}

func TestGo(t *testing.T) {
	t.Parallel()
	code, err := os.ReadFile("fakeserver_test.go")
	if err != nil {
		t.Fatal(err)
	}
	blocks := fakeserver.Blocks(t, "go", nil)
	if len(blocks) != 1 || !strings.Contains(string(code), blocks[0]+"\n") {
		t.Errorf("the page's Go is not that of this file: %q", blocks)
	}
	fake := fakeserver.Start(t)["stripe"]
	var charge struct{ ID string }
	admin(t, "POST", fake+"/_fake/seed", `{"type":"charge"}`, &charge)
	if amount, err := lostRefund(t.Context(), fake, charge.ID); err != nil || amount != 500 {
		t.Errorf("refunded %d, %v", amount, err)
	}
	var effects struct{ Total, Requests int }
	if admin(t, "GET", fake+"/_fake/effects", "", &effects); effects.Total != 1 || effects.Requests != 2 {
		t.Errorf("%+v, want 1 effect of 2 requests", effects)
	}
}

// The admin API's paths in the page are those of the document, and none is missing.
func TestPageNamesEveryPath(t *testing.T) {
	t.Parallel()
	var document struct {
		Paths map[string]map[string]any
	}
	admin(t, "GET", fakeserver.Start(t)["stripe"]+"/_fake/openapi.json", "", &document)
	page, err := os.ReadFile(fakeserver.Page)
	if err != nil {
		t.Fatal(err)
	}
	for path := range document.Paths {
		if !strings.Contains(string(page), path) {
			t.Errorf("the page does not name %s", path)
		}
	}
	for _, m := range regexp.MustCompile("`(GET|POST|PATCH|DELETE) (/[a-z/]+)`").FindAllStringSubmatch(string(page), -1) {
		if _, ok := document.Paths[m[2]][strings.ToLower(m[1])]; !ok {
			t.Errorf("the page names %s %s, which there is not", m[1], m[2])
		}
	}
}

func admin(t *testing.T, method, url, body string, into any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %d, %v", method, url, resp.StatusCode, err)
	}
}
