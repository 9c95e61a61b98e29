package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// provider is a process that answers as Stripe answers a refund, at once and
// without looking: it stands for a provider that costs nothing, so that what is
// compared is the caller's side.
type provider struct {
	url string // Refunds are made at url + "/v1/refunds".
}

// slow is the base URL at which an answer takes d.
func (p *provider) slow(d time.Duration) string { return p.url + "/slow/" + d.String() }

// held is the base URL at which answers wait for release.
func (p *provider) held() string { return p.url + "/held" }

// provider starts the process, once for a run. It ends with this one.
func (b *bench) provider(ctx context.Context) (*provider, error) {
	if b.remote != nil {
		return b.remote, nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, "-child=provider")
	cmd.Stderr = os.Stderr
	lifeline, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	said, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	b.onClose(func() {
		lifeline.Close()
		_ = cmd.Wait() // how it ended changes nothing
	})
	line, err := bufio.NewReader(said).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("the provider's process did not start: %w", err)
	}
	b.remote = &provider{url: strings.TrimSpace(line)}
	return b.remote, nil
}

// waiting returns how many requests the provider holds now.
func (p *provider) waiting(ctx context.Context) (int, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/waiting", nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(text))
}

// release answers all that is held.
func (p *provider) release(ctx context.Context) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+"/release", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// serveProvider is the process: it serves until its standard input ends.
func serveProvider() error {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: newRefunds(), ReadHeaderTimeout: time.Minute, Protocols: new(http.Protocols)}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	fmt.Println("http://" + l.Addr().String())
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	if err := server.Close(); err != nil {
		return err
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// refunds answers refunds.
type refunds struct {
	serial  atomic.Int64
	waiting atomic.Int64

	mu   sync.Mutex
	held chan struct{} // Closed by a release.
}

func newRefunds() *refunds { return &refunds{held: make(chan struct{})} }

// ServeHTTP implements http.Handler.
func (f *refunds) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/waiting":
		fmt.Fprint(w, f.waiting.Load())
		return
	case "/release":
		f.mu.Lock()
		defer f.mu.Unlock()
		close(f.held)
		f.held = make(chan struct{})
		return
	}
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return // the caller has gone
	}
	if rest, slow := strings.CutPrefix(r.URL.Path, "/slow/"); slow {
		text, _, _ := strings.Cut(rest, "/")
		d, err := time.ParseDuration(text)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		f.waiting.Add(1)
		time.Sleep(d)
		f.waiting.Add(-1)
	}
	if strings.HasPrefix(r.URL.Path, "/held/") {
		f.mu.Lock()
		held := f.held
		f.mu.Unlock()
		f.waiting.Add(1)
		<-held
		f.waiting.Add(-1)
	}
	h := w.Header()
	for name, value := range answerHeader() {
		h[name] = value
	}
	_, _ = io.WriteString(w, refundAnswer(f.serial.Add(1))) // the caller may have gone
}

// answerHeader is what stands over an answer of Stripe's.
func answerHeader() http.Header {
	return http.Header{
		"Content-Type": {"application/json"}, "Request-Id": {"req_Tz1cKu5a9kJzYn"}, "Stripe-Version": {"2025-09-30.clover"},
		"Idempotency-Key": {"00000000-0000-8000-8000-000000000000"}, "Original-Request": {"req_Tz1cKu5a9kJzYn"},
		"Cache-Control": {"no-cache, no-store"}, "Access-Control-Max-Age": {"300"}, "Stripe-Should-Retry": {"false"},
	}
}

// refundAnswer is a refund as Stripe shows it, about 600 bytes.
func refundAnswer(serial int64) string {
	return fmt.Sprintf(`{
  "id": "re_%024d",
  "object": "refund",
  "amount": 500,
  "balance_transaction": "txn_1MmlLrLkdIwHu7ix8pjWjm7R",
  "charge": "ch_1MmlLrLkdIwHu7ix0uke3Ezy",
  "created": 1679090539,
  "currency": "eur",
  "destination_details": {
    "card": {"reference": "1679090540", "reference_status": "available", "reference_type": "acquirer_reference_number", "type": "refund"},
    "type": "card"
  },
  "metadata": {},
  "payment_intent": null,
  "reason": null,
  "receipt_number": null,
  "source_transfer_reversal": null,
  "status": "succeeded",
  "transfer_reversal": null
}
`, serial)
}
