package console

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

const (
	token = "the-token-of-this-console"

	// envScreenshots names the folder that screenshots for the documentation are
	// written to. Without it none is written.
	envScreenshots = "SAMEKEY_SCREENSHOTS"

	patience = time.Minute // for a browser on a busy machine
)

// startConsole runs samekey console as a process of its own and returns its address.
// It must end by itself, without an error, when it is told to.
func startConsole(t *testing.T, args ...string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "samekey")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./cmd/samekey")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	cmd := exec.Command(program, append([]string{"console", "--listen", "127.0.0.1:0"}, args...)...)
	cmd.Env = append(os.Environ(), "SAMEKEY_CONSOLE_TOKEN="+token)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		kill := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
		defer kill.Stop()
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the console ended with %v", err)
		}
	})
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatalf("samekey console ended early: %v", lines.Err())
	}
	_, address, _ := strings.Cut(lines.Text(), "http://")
	return address
}

// startProxy starts all the network that the browser has: it leads to the console and
// nowhere else, so that what a browser asks of its own maker stays here too. It counts
// what went through.
func startProxy(t *testing.T, console string) (url string, passed *atomic.Int64) {
	t.Helper()
	passed = new(atomic.Int64)
	next := httputil.ReverseProxy{Rewrite: func(*httputil.ProxyRequest) {}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != console || r.Method == http.MethodConnect {
			http.Error(w, "this leads nowhere", http.StatusBadGateway)
			return
		}
		passed.Add(1)
		next.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL, passed
}

// startBrowser starts a headless Chromium whose requests all go to the proxy, those
// to this machine too. Nothing has another way out: no name is resolved.
func startBrowser(t *testing.T, proxyURL string) context.Context {
	t.Helper()
	chromium := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil && chromium == "" {
			chromium = path
		}
	}
	if chromium == "" {
		t.Fatal("this test needs Chromium, as Debian's package chromium")
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(chromium), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.UserDataDir(t.TempDir()), chromedp.WindowSize(1280, 900),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-domain-reliability", true), chromedp.Flag("no-pings", true),
		chromedp.Flag("proxy-server", proxyURL), chromedp.Flag("proxy-bypass-list", "<-loopback>"),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
	)
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancelBrowser := chromedp.NewContext(ctx)
	t.Cleanup(cancelBrowser)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	return ctx
}

// person is somebody with a browser of their own: cookies are not shared. No page of
// theirs runs JavaScript.
type person struct {
	*testing.T
	ctx     context.Context
	console string

	mu    sync.Mutex
	asked map[string]int // What their pages asked for, by scheme and host.
}

func newPerson(t *testing.T, browser context.Context, console string) *person {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	p := &person{T: t, ctx: ctx, console: "http://" + console, asked: map[string]int{}}
	err := chromedp.Listen(ctx, p.hear)
	if err != nil {
		t.Fatal(err)
	}
	p.scripts(false)
	return p
}

// hear notes what pages ask for, and what the browser complains about, as what the
// policy blocks. The answer to a refused verdict is no complaint.
func (p *person) hear(event any) {
	switch e := event.(type) {
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError && !strings.Contains(e.Entry.Text, "409 (Conflict)") {
			p.Errorf("the browser complains: %s %s", e.Entry.Text, e.Entry.URL)
		}
	case *network.EventRequestWillBeSent:
		to, err := url.Parse(e.Request.URL)
		if err != nil {
			p.Errorf("a page asked for %q", e.Request.URL)
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.asked[to.Scheme+"://"+to.Host]++
	}
}

// askedOnly wants all requests of a person's pages to have gone to the console.
func (p *person) askedOnly() {
	p.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asked[p.console] == 0 || len(p.asked) != 1 {
		p.Errorf("the pages asked for %v, want %s alone", p.asked, p.console)
	}
}

// call sends a command to the browser.
func call[P, R any](p *person, command cdp.Command[P, R], params P) R {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	r, err := chromedp.Call(ctx, command, params)
	if err != nil {
		p.Fatal(err)
	}
	return r
}

// run does something in the browser and returns what comes of it.
func run[T any](p *person, action chromedp.Action[T]) T {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, action)
	if err != nil {
		p.Fatal(err)
	}
	return v
}

// scripts lets the pages of a person run JavaScript, or not.
func (p *person) scripts(run bool) {
	p.Helper()
	call(p, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !run})
}

// visit loads a page of the console.
func (p *person) visit(path string) {
	p.Helper()
	run(p, chromedp.Navigate(p.console+path))
}

// press clicks what leads to another page.
func (p *person) press(selector string) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if _, err := chromedp.RunResponse(ctx, chromedp.Click(chromedp.CSS(selector))); err != nil {
		p.Fatalf("%s: %v", selector, err)
	}
}

// fill types into the field with an id.
func (p *person) fill(id, text string) {
	p.Helper()
	run(p, chromedp.SendKeys(chromedp.CSS("#"+id), text))
}

func (p *person) signIn() {
	p.Helper()
	p.visit("/")
	p.fill("token", token)
	p.press("form.tall button")
	p.shows("Sign out")
}

// html returns the page as the browser holds it.
func (p *person) html() string {
	p.Helper()
	return run(p, chromedp.OuterHTML(chromedp.CSS("html")))
}

func (p *person) shows(words ...string) {
	p.Helper()
	html := p.html()
	for _, w := range words {
		if !strings.Contains(html, w) {
			p.Errorf("the page does not show %q:\n%s", w, html)
		}
	}
}

func (p *person) hides(words ...string) {
	p.Helper()
	html := p.html()
	for _, w := range words {
		if strings.Contains(html, w) {
			p.Errorf("the page shows %q:\n%s", w, html)
		}
	}
}

// screenshot writes the whole page as a picture, where that is asked.
func (p *person) screenshot(name string) {
	p.Helper()
	dir := os.Getenv(envScreenshots)
	if dir == "" {
		return
	}
	png := run(p, chromedp.FullScreenshot(100))
	err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644))
	if err != nil {
		p.Fatal(err)
	}
}
