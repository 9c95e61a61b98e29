package node

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/integration/fakeserver"
)

// The Node tests run whole, with the pinned SDKs, against the program that
// `samekey fake` is.
func TestNodeSDKs(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	needNode(t, ctx)
	install(t, ctx)
	fakes := fakeserver.Start(t)
	cmd := exec.CommandContext(ctx, "node", "--test", "--test-reporter=tap")
	// NO_PROXY: the PayPal SDK would send even loopback requests to a proxy.
	cmd.Env = append(os.Environ(), "STRIPE_FAKE="+fakes["stripe"], "PAYPAL_FAKE="+fakes["paypal"], "NO_PROXY=*", "no_proxy=*")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("node --test: %v\n%s", err, out)
	}
	for name, want := range map[string]bool{"pass": true, "fail": false, "skipped": false, "todo": false, "cancelled": false} {
		m := regexp.MustCompile(`(?m)^# ` + name + ` (\d+)$`).FindSubmatch(out)
		if m == nil || (string(m[1]) != "0") != want {
			t.Errorf("node's tests have no %q as they should\n%s", name, out)
		}
	}
}

// needNode fails the test unless Node.js 20 or newer is there with npm.
func needNode(t *testing.T, ctx context.Context) {
	t.Helper()
	const advice = "Node.js 20 or newer and npm are needed here: on Debian, apt-get install nodejs npm"
	out, err := exec.CommandContext(ctx, "node", "--version").Output()
	if err != nil {
		t.Fatalf("node --version: %v. %s", err, advice)
	}
	major, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(string(out)), "v"), ".")
	if n, err := strconv.Atoi(major); err != nil || n < 20 {
		t.Fatalf("node is %s. %s", bytes.TrimSpace(out), advice)
	}
	if _, err := exec.LookPath("npm"); err != nil {
		t.Fatalf("%v. %s", err, advice)
	}
}

// install brings the SDKs that package-lock.json pins, unless they are there.
func install(t *testing.T, ctx context.Context) {
	t.Helper()
	lock, err := os.ReadFile("package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	stamp := filepath.Join("node_modules", ".installed-lock.json")
	if have, err := os.ReadFile(stamp); err == nil && bytes.Equal(have, lock) {
		return
	}
	if out, err := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts").CombinedOutput(); err != nil {
		t.Fatalf("npm ci: %v\n%s", err, out)
	}
	if err := os.WriteFile(stamp, lock, 0o600); err != nil {
		t.Fatal(err)
	}
}

// The page's Node blocks run as they stand there, but for the fakes' addresses.
func TestPage(t *testing.T) {
	ctx := t.Context()
	needNode(t, ctx)
	install(t, ctx)
	blocks := fakeserver.Blocks(t, "js", fakeserver.Start(t))
	if len(blocks) != 2 {
		t.Fatalf("the page has %d blocks of JavaScript, want 2", len(blocks))
	}
	here, err := filepath.Abs("node_modules")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(here, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"# pass 1\n", "CREATED\n"} {
		file := filepath.Join(dir, "page.mjs")
		if err := os.WriteFile(file, []byte(blocks[i]), 0o600); err != nil {
			t.Fatal(err)
		}
		args := []string{file}
		if strings.Contains(blocks[i], "node:test") {
			args = []string{"--test", "--test-reporter=tap", file}
		}
		cmd := exec.CommandContext(ctx, "node", args...)
		cmd.Env = append(os.Environ(), "NO_PROXY=*", "no_proxy=*")
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), want) {
			t.Errorf("block %d: %v\n%s", i+1, err, out)
		}
	}
}

// The lock file names no host, so that the packages come from the registry that
// each machine is set up for.
func TestLockFileNamesNoHost(t *testing.T) {
	t.Parallel()
	lock, err := os.ReadFile("package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(lock, []byte(`"resolved"`)) || !bytes.Contains(lock, []byte(`"integrity": "sha512-`)) {
		t.Error("package-lock.json names a host or lacks checksums: make it again with the .npmrc of this folder")
	}
}
