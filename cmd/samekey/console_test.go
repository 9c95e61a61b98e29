package main

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore/sqlite"
)

const consoleToken = "the-token-of-this-console"

// heard is what a command prints while it runs.
type heard struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (h *heard) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.Write(b)
}

// String returns what was printed so far.
func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}

// startConsole runs samekey console on a free port and returns its URL. It must end
// without an error when the test does. Nothing that it prints may hold the token.
func startConsole(t *testing.T, args ...string) string {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	out, to := io.Pipe()
	log := &heard{}
	cmd := root()
	cmd.SetOut(to)
	cmd.SetErr(log)
	cmd.SetArgs(append([]string{"console", "--listen", "127.0.0.1:0"}, args...))
	ended := make(chan error, 1)
	go func() {
		err := cmd.ExecuteContext(ctx)
		_ = to.CloseWithError(io.EOF) // never fails
		ended <- err
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the console ended with %v\n%s", err, log)
		}
		if strings.Contains(log.String(), consoleToken) {
			t.Errorf("the log holds the token:\n%s", log)
		}
	})
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatalf("no line says where the console is\n%s", log)
	}
	at, found := strings.CutPrefix(lines.Text(), "console ")
	if !found {
		t.Fatalf("the first line is %q", lines.Text())
	}
	return at
}

func newLedgerFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ledger.db")
	s, err := sqlite.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// load loads a page.
func load(t *testing.T, c *http.Client, at string) string {
	t.Helper()
	resp, err := c.Get(at)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %v\n%s", at, resp.StatusCode, err, page)
	}
	return string(page)
}

func signedIn(t *testing.T, at, token string) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &http.Client{Jar: jar, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	t.Cleanup(c.CloseIdleConnections)
	resp, err := c.PostForm(at+"/login", url.Values{"token": {token}})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("signing in: %d", resp.StatusCode)
	}
	return c
}

// The console shows ledgers of both kinds: read only without a token, and with one it
// acts and opens bodies.
func TestConsole(t *testing.T) {
	onBoth(t, func(p *prepared) {
		p.contradict("refund-7")
		at := startConsole(p.T, p.flags...)
		page := load(p.T, http.DefaultClient, at)
		p.shows(page, ">refund-7</a>", "read only")
		p.shows(load(p.T, http.DefaultClient, at+"/search?by=command&q=refund-7"), "This console only reads")

		giveSealKey(p.T)
		p.Setenv(envConsoleToken, consoleToken)
		at = startConsole(p.T, append(p.flags, "--allow-resolve", "--show-bodies")...)
		p.shows(load(p.T, http.DefaultClient, at), "The console's token")
		c := signedIn(p.T, at, consoleToken)
		p.shows(load(p.T, c, at+"/search?by=command&q=refund-7"), "Record the verdict", "show what was sent and answered")
	})
}

// A token file is made once, for its owner only, and serves again.
func TestConsoleTokenFile(t *testing.T) {
	t.Setenv(envConsoleToken, "")
	ledger := newLedgerFile(t)
	path := filepath.Join(t.TempDir(), "token")
	at := startConsole(t, "--sqlite", ledger, "--allow-resolve", "--token-file", path)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the file is %v (%v)", info, err)
	}
	made, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	token := strings.TrimSpace(string(made))
	load(t, signedIn(t, at, token), at)
	again := startConsole(t, "--sqlite", ledger, "--token-file", path)
	load(t, signedIn(t, again, token), again)
	if now, err := os.ReadFile(path); err != nil || string(now) != string(made) {
		t.Errorf("the file changed (%v)", err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	fails(t, exitFailed, "can be read by other users", "console", "--sqlite", ledger, "--listen", "127.0.0.1:0", "--token-file", path)
}

// Other machines reach it by HTTPS only, and with a token.
func TestConsoleOverTLS(t *testing.T) {
	ledger := newLedgerFile(t)
	cert, key := certificate(t)
	t.Setenv(envConsoleToken, consoleToken)
	at := startConsole(t, "--sqlite", ledger, "--tls-cert", cert, "--tls-key", key, "--listen", "0.0.0.0:0")
	at = "https://127.0.0.1" + at[strings.LastIndex(at, ":"):]
	load(t, signedIn(t, at, consoleToken), at)
}

// certificate writes a certificate of its own and its key, and returns their paths.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	signed, err := x509.CreateCertificate(rand.Reader, of, of, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: signed}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// What would be open to others, and what is wrong, is refused in one line that says
// what to do.
func TestConsoleRefuses(t *testing.T) {
	ledger := newLedgerFile(t)
	console := func(args ...string) []string { return append([]string{"console", "--sqlite", ledger}, args...) }
	t.Setenv(envConsoleToken, "")
	t.Setenv(envSealKeys, "")
	t.Setenv(envBodies, "")
	for _, tt := range []struct {
		code int
		says string
		args []string
	}{
		{exitUsage, "write it as 127.0.0.1:8484", console("--listen", "8484")},
		{exitUsage, "must not travel in the clear", console("--listen", ":8484")},
		{exitUsage, "must not travel in the clear", console("--listen", "192.0.2.1:8484")},
		{exitUsage, "belong together", console("--tls-cert", "cert.pem")},
		{exitUsage, "is no host name", console("--host", "https://console.example.com")},
		{exitUsage, "no ledger is named", []string{"console"}},
		{exitFailed, "a token is needed here", console("--allow-resolve")},
		{exitFailed, "a token is needed here", console("--show-bodies")},
		{exitFailed, "a token is needed here", console("--host", "console.example.com")},
		{exitFailed, "a token is needed here", console("--listen", "0.0.0.0:0", "--behind-tls")},
		{exitFailed, "--tls-cert, --tls-key", console("--tls-cert", "none.pem", "--tls-key", "none.pem")},
		{exitFailed, "no such file", console("--token-file", filepath.Join(t.TempDir(), "none", "token"))},
	} {
		fails(t, tt.code, tt.says, tt.args...)
	}
	t.Setenv(envConsoleToken, "short")
	if line := fails(t, exitFailed, "the token has 5 bytes", console()...); strings.Contains(line, "short") {
		t.Errorf("%q holds the token", line)
	}
	t.Setenv(envConsoleToken, consoleToken)
	fails(t, exitFailed, "no seal key is given", console("--show-bodies")...)
	fails(t, exitFailed, "leave one of them", console("--token-file", "token")...)
}

// Every command line of docs/console.md serves a console, but for the address, and
// its pictures are there.
func TestConsolePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/console.md")
	if err != nil {
		t.Fatal(err)
	}
	pictures := regexp.MustCompile(`\(console/([a-z-]+\.png)\)`).FindAllStringSubmatch(string(page), -1)
	if len(pictures) == 0 {
		t.Error("the page has no pictures")
	}
	for _, p := range pictures {
		if _, err := os.Stat(filepath.Join("../../docs/console", p[1])); err != nil {
			t.Error(err)
		}
	}
	cert, key := certificate(t)
	token, ledger := filepath.Join(t.TempDir(), "token"), newLedgerFile(t)
	giveSealKey(t)
	t.Setenv(envConsoleToken, "")
	here := strings.NewReplacer("/etc/samekey/console.pem", cert, "/etc/samekey/console.key", key, "~/.samekey-console", token,
		"/var/lib/samekey/console-token", token, "/var/lib/shop/ledger.db", ledger)
	lines := 0
	for line := range strings.Lines(string(page)) {
		if !strings.HasPrefix(line, "samekey console") {
			continue
		}
		lines++
		args := append(strings.Fields(here.Replace(line))[2:], "--listen", "127.0.0.1:0", "--sqlite", ledger)
		at := startConsole(t, args...)
		c := http.DefaultClient
		if slices.Contains(args, token) {
			content, err := os.ReadFile(token)
			if err != nil {
				t.Fatal(err)
			}
			c = signedIn(t, at, strings.TrimSpace(string(content)))
		}
		if page := load(t, c, at); !strings.Contains(page, "Nothing is open") {
			t.Errorf("%s: %s", line, page)
		}
	}
	if lines < 6 {
		t.Errorf("the page has %d command lines", lines)
	}
}
