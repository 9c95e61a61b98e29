package fakeprovider

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"
)

// Server serves a fake. It is safe for concurrent use.
type Server struct {
	// URL is the base URL, without a slash at the end.
	URL string

	fake    *Fake
	http    *http.Server
	dial    func(ctx context.Context, network, addr string) (net.Conn, error)
	serving sync.WaitGroup

	mu         sync.Mutex
	transports []*http.Transport
}

// Listen serves f on a free port of the loopback interface.
func Listen(f *Fake) (*Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Server{URL: "http://" + l.Addr().String(), dial: (&net.Dialer{Timeout: 10 * time.Second}).DialContext}
	s.serve(f, l)
	return s, nil
}

// InMemory serves f over in-memory connections that only Transport reaches.
// Inside a testing/synctest bubble its waits let the bubble's clock move.
func InMemory(f *Fake) *Server {
	l := &pipeListener{conns: make(chan net.Conn), done: make(chan struct{})}
	s := &Server{URL: "http://provider.test", dial: l.dial}
	s.serve(f, l)
	return s
}

func (s *Server) serve(f *Fake, l net.Listener) {
	s.fake = f
	s.http = NewHTTPServer(f)
	s.serving.Go(func() { _ = s.http.Serve(l) }) // ends with ErrServerClosed
}

// NewHTTPServer returns a server for f on which every fault works.
func NewHTTPServer(f *Fake) *http.Server {
	return &http.Server{
		Handler:           f,
		ReadHeaderTimeout: 30 * time.Second,
		MaxHeaderBytes:    64 << 10,
		ConnContext:       func(ctx context.Context, _ net.Conn) context.Context { return ConnContext(ctx) },
	}
}

// Transport returns a new transport to the server, with its own connections. It
// uses no proxy. Close closes its idle connections.
func (s *Server) Transport() *http.Transport {
	t := &http.Transport{DialContext: s.dial, MaxIdleConnsPerHost: 64}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.transports = append(s.transports, t)
	return t
}

// Close closes the fake, all connections and the transports' idle ones, and
// waits until no goroutine serves a request.
func (s *Server) Close() {
	s.fake.Close()
	_ = s.http.Close() // its error is the listener's, which is gone either way
	s.serving.Wait()
	s.fake.handlers.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.transports {
		t.CloseIdleConnections()
	}
}

// pipeListener hands out one end of a net.Pipe for each dial.
type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

var errPipeClosed = errors.New("in-memory listener closed")

func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.done:
		return nil, errPipeClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, errPipeClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }
