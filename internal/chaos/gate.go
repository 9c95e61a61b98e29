package chaos

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

// step names a place in the life of a command. A worker that reaches the one it
// was told tells so and goes no further: then it is killed.
type step string

const (
	beforeClaim   step = "before claim"
	afterClaim    step = "after claim"
	afterWrite    step = "after write"
	afterResponse step = "after response"
	beforeSettle  step = "before settle"
	intoSettle    step = "into settle" // Tells, and goes on.
	afterSettle   step = "after settle"
	beforeRenew   step = "before renewal"
	afterRenew    step = "after renewal"
	afterTake     step = "after take"
	beforeFind    step = "before look-up"
	afterFind     step = "after look-up"
	afterPurge    step = "after purge"
	beforeCommit  step = "before commit"
	afterCommit   step = "after commit"
)

// gate stops a worker at one step.
type gate struct {
	stop    step
	reached func()
}

// at blocks for ever at the step to stop at. A goroutine with a timer, unlike one
// that waits for nothing, is no deadlock to Go.
func (g gate) at(s step) {
	if s != g.stop {
		return
	}
	g.reached()
	for s != intoSettle {
		<-time.After(time.Hour)
	}
}

// gatedStore stops around the steps of a ledger.
type gatedStore struct {
	store
	gate gate
}

func (s gatedStore) Claim(ctx context.Context, c recordstore.Claim) (recordstore.Claimed, error) {
	s.gate.at(beforeClaim)
	claimed, err := s.store.Claim(ctx, c)
	s.gate.at(afterClaim)
	return claimed, err
}

func (s gatedStore) Settle(ctx context.Context, set recordstore.Settlement) (recordstore.Record, error) {
	s.gate.at(beforeSettle)
	s.gate.at(intoSettle)
	rec, err := s.store.Settle(ctx, set)
	s.gate.at(afterSettle)
	return rec, err
}

func (s gatedStore) Renew(ctx context.Context, id recordstore.ID, holder string, fence int64, lease time.Duration) error {
	s.gate.at(beforeRenew)
	err := s.store.Renew(ctx, id, holder, fence, lease)
	s.gate.at(afterRenew)
	return err
}

func (s gatedStore) TakeDue(ctx context.Context, q recordstore.DueQuery) ([]recordstore.Record, time.Time, error) {
	records, now, err := s.store.TakeDue(ctx, q)
	if len(records) > 0 {
		s.gate.at(afterTake)
	}
	return records, now, err
}

// gatedAdapter stops around look-ups.
type gatedAdapter struct {
	versioned
	gate gate
}

func (a gatedAdapter) Find(ctx context.Context, l *outbound.Lookup) (outbound.Finding, error) {
	a.gate.at(beforeFind)
	f, err := a.versioned.Find(ctx, l)
	a.gate.at(afterFind)
	return f, err
}

func (a gatedAdapter) FindAll(ctx context.Context, ls []*outbound.Lookup) ([]outbound.Finding, error) {
	a.gate.at(beforeFind)
	fs, err := a.versioned.FindAll(ctx, ls)
	a.gate.at(afterFind)
	return fs, err
}

// gatedTransport stops once a write's bytes have left the process, and once its
// answer has arrived whole.
type gatedTransport struct {
	inner http.RoundTripper
	gate  gate
}

func newTransport(g gate) http.RoundTripper {
	dialer := &net.Dialer{Timeout: 5 * time.Second}
	return gatedTransport{gate: g, inner: &http.Transport{
		MaxIdleConnsPerHost: 64,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return &gatedConn{Conn: conn, gate: g}, nil
		},
	}}
}

const tokenPath = "/v1/oauth2/token"

func (t gatedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.inner.RoundTrip(r)
	if t.gate.stop != afterResponse || err != nil || r.Method == http.MethodGet || strings.HasSuffix(r.URL.Path, tokenPath) {
		return resp, err
	}
	body, err := io.ReadAll(resp.Body)
	t.gate.at(afterResponse)
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, err
}

// gatedConn stops once a request is out. net/http may take several writes for one.
type gatedConn struct {
	net.Conn
	gate    gate
	request []byte // As far as it was written.
}

func (c *gatedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if err == nil && c.whole(b) {
		c.gate.at(afterWrite)
	}
	return n, err
}

// whole reports whether b ends a request that writes.
func (c *gatedConn) whole(b []byte) bool {
	c.request = append(c.request, b...)
	_, body, ended := bytes.Cut(c.request, []byte("\r\n\r\n"))
	if !ended {
		return false
	}
	r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(c.request)))
	if err != nil || int64(len(body)) < r.ContentLength {
		return false
	}
	c.request = nil
	return r.Method != http.MethodGet && !strings.HasSuffix(r.URL.Path, tokenPath)
}
