package stripemock_test

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// baseURL is where stripe-mock listens.
var baseURL string

func TestMain(m *testing.M) { os.Exit(run(m)) }

// run builds stripe-mock, which is a tool of this module, and runs it for the
// tests.
func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "stripe-mock")
	if err != nil {
		return failed(err)
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "stripe-mock")
	if out, err := exec.Command("go", "build", "-o", program, "github.com/stripe/stripe-mock").CombinedOutput(); err != nil {
		return failed(fmt.Errorf("building stripe-mock: %w\n%s", err, out))
	}
	// Both addresses: else it listens on all interfaces too.
	mock := exec.Command(program, "-http-addr", "127.0.0.1:0", "-https-addr", "127.0.0.1:0")
	out, err := mock.StdoutPipe()
	if err != nil {
		return failed(err)
	}
	mock.Stderr = os.Stderr
	if err := mock.Start(); err != nil {
		return failed(err)
	}
	defer func() {
		mock.Process.Kill()
		mock.Wait() // it was killed: its error says so
	}()
	address := make(chan string, 1)
	go func() {
		defer close(address)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if a, ok := strings.CutPrefix(lines.Text(), "Listening for HTTP at address: "); ok {
				address <- a
			}
		}
	}()
	select {
	case a, ok := <-address:
		if !ok {
			return failed(fmt.Errorf("stripe-mock ended before it listened"))
		}
		baseURL = "http://" + a
	case <-time.After(time.Minute):
		return failed(fmt.Errorf("stripe-mock did not say where it listens"))
	}
	return m.Run()
}

func failed(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// wire notes how stripe-mock answers.
type wire struct {
	base http.RoundTripper
	mu   sync.Mutex
	seen []exchange
}

type exchange struct {
	what   string
	status int
	key    string // as stripe-mock echoes it
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := w.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = append(w.seen, exchange{r.Method + " " + r.URL.RequestURI(), resp.StatusCode, resp.Header.Get("Idempotency-Key")})
	return resp, nil
}

// take returns what was seen, and forgets it.
func (w *wire) take() []exchange {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := w.seen
	w.seen = nil
	return seen
}
