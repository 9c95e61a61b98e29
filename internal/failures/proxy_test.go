package failures

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// mishap is what the proxy does to a statement.
type mishap string

const (
	loseAnswer  mishap = "answer lost"    // The server is done, nobody hears.
	halfAnswer  mishap = "answer cut"     // Half of it arrives.
	halfRequest mishap = "request cut"    // The server gets half a message.
	delayAnswer mishap = "answer delayed" // Until released.
	stopServer  mishap = "server down"    // Before it sees the statement.
)

// statement tells the two statements of a call apart by what only they contain.
type statement string

const (
	claimStatement  statement = "RETURNING created_at"
	settleStatement statement = "CASE WHEN $22::boolean"
)

func (s statement) String() string {
	if s == claimStatement {
		return "claim"
	}
	return "settle"
}

// proxy stands between a client and PostgreSQL. It understands just as much of
// their protocol as it needs to spoil a chosen statement, and passes all else on.
type proxy struct {
	t      *testing.T
	target string // Where the server listens, on TCP.
	addr   string

	mu      sync.Mutex
	of      statement
	how     mishap
	times   int
	struck  int
	release chan struct{}
	down    func() // Stops the server.
}

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{t: t, target: target, addr: listener.Addr().String(), release: make(chan struct{})}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return // closed
			}
			all.Go(func() { p.serve(client) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close() // it ends all that waits
		all.Wait()
	})
	return p
}

// spoil lets how happen to the next statements of one kind, so many times.
func (p *proxy) spoil(of statement, how mishap, times int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.of, p.how, p.times, p.struck = of, how, times, 0
}

// stopAt lets down stop the server at the next statement of one kind.
func (p *proxy) stopAt(of statement, down func()) {
	p.spoil(of, stopServer, 1)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = down
}

// stop stops the server.
func (p *proxy) stop() {
	p.mu.Lock()
	down := p.down
	p.mu.Unlock()
	down()
}

// heal lets everything pass again, and what was delayed too. It returns how often
// something happened.
func (p *proxy) heal() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.times = 0
	close(p.release)
	p.release = make(chan struct{})
	return p.struck
}

// strikes says what happens to a statement with this text, "" for nothing.
func (p *proxy) strikes(sql string) (how mishap, until <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.times == 0 || !strings.Contains(sql, string(p.of)) {
		return "", nil
	}
	p.times--
	p.struck++
	return p.how, p.release
}

// session is one connection of a client, with its own to the server.
type session struct {
	*proxy
	client, server net.Conn
	prepared       map[string]string // SQL by the statement's name.

	mu    sync.Mutex
	how   mishap // Happens to the next answer.
	until <-chan struct{}
}

func (p *proxy) serve(client net.Conn) {
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		_ = client.Close() // as a server that is not there
		return
	}
	s := &session{proxy: p, client: client, server: server, prepared: map[string]string{}}
	var both sync.WaitGroup
	for _, pass := range []func() error{s.requests, s.answers} {
		both.Go(func() {
			_ = pass() // how it ends is what the client sees
			_, _ = client.Close(), server.Close()
		})
	}
	both.Wait()
}

var errSpoiled = errors.New("the connection was cut")

// requests passes on what the client says: first a message without a type, then
// messages of one type byte each.
func (s *session) requests() error {
	first, err := readMessage(s.client, false)
	if err == nil {
		_, err = s.server.Write(first)
	}
	for err == nil {
		var m []byte
		if m, err = readMessage(s.client, true); err != nil {
			return err
		}
		how, until := s.judge(m)
		switch how {
		case halfRequest:
			_, err = s.server.Write(m[:len(m)/2])
			return errors.Join(err, errSpoiled)
		case stopServer:
			s.stop()
			return errSpoiled
		case "":
		default:
			s.mu.Lock()
			s.how, s.until = how, until // no answer to it can come before it is passed on
			s.mu.Unlock()
		}
		_, err = s.server.Write(m)
	}
	return err
}

// judge remembers what is prepared, and says what happens to an execution.
func (s *session) judge(m []byte) (mishap, <-chan struct{}) {
	const parse, bind = 'P', 'B'
	first, rest, _ := bytes.Cut(m[5:], []byte{0})
	second, _, _ := bytes.Cut(rest, []byte{0})
	switch m[0] {
	case parse:
		s.prepared[string(first)] = string(second)
	case bind:
		return s.strikes(s.prepared[string(second)])
	}
	return "", nil
}

// answers passes on what the server says, or spoils what it says up to the message
// that ends an answer.
func (s *session) answers() error {
	const ready = 'Z'
	var spoiled []byte
	for {
		m, err := readMessage(s.server, true)
		if err != nil {
			return err
		}
		s.mu.Lock()
		how, until := s.how, s.until
		s.mu.Unlock()
		if how == "" {
			if _, err := s.client.Write(m); err != nil {
				return err
			}
			continue
		}
		if spoiled = append(spoiled, m...); m[0] != ready {
			continue
		}
		switch how {
		case halfAnswer:
			_, err = s.client.Write(spoiled[:len(spoiled)/2])
			return errors.Join(err, errSpoiled)
		case loseAnswer:
			return errSpoiled
		}
		select { // delayAnswer
		case <-until:
		case <-s.t.Context().Done():
			return errSpoiled
		}
		s.mu.Lock()
		s.how = ""
		s.mu.Unlock()
		if _, err := s.client.Write(spoiled); err != nil {
			return err
		}
		spoiled = nil
	}
}

// readMessage reads a message of PostgreSQL's protocol, whole.
func readMessage(r io.Reader, typed bool) ([]byte, error) {
	head := make([]byte, 4, 5)
	if typed {
		head = head[:5]
	}
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	length := binary.BigEndian.Uint32(head[len(head)-4:])
	const most = 16 << 20
	if length < 4 || length > most {
		return nil, errors.New("this is not PostgreSQL's protocol")
	}
	m := append(head, make([]byte, length-4)...)
	_, err := io.ReadFull(r, m[len(head):])
	return m, err
}
