package providertest

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/memory"
)

var errNoSeeds = errors.New("the dialect seeds nothing")

// spy stands between the engine and a dialect and notes what arrives, raw.
type spy struct {
	mu   sync.Mutex
	seen []seen
	echo echo // what errors repeat of their request
}

// seen is a request as the dialect read it.
type seen struct {
	*Received
	operation string
	write     bool
	key       string
	window    time.Duration
}

// on returns a constructor of the dialects of provider, watched.
func (s *spy) on(provider func() Dialect) func() Dialect {
	return func() Dialect {
		d := spying{provider(), s}
		if n, ok := d.Dialect.(Namer); ok {
			return namedSpying{d, n}
		}
		return d
	}
}

// of returns the requests of an operation, oldest first.
func (s *spy) of(operation string) (found []seen) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.seen {
		if r.operation == operation {
			found = append(found, r)
		}
	}
	return found
}

// all returns every request.
func (s *spy) all() []seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

// echo is what an error repeats of its request.
type echo func(c *Call) string

func echoes() []echo {
	return []echo{
		func(c *Call) string { return c.Key },
		func(c *Call) string { return credential(c.Request.Header) },
		func(c *Call) string { return string(c.Request.Body) },
	}
}

// repeat makes errors repeat what nobody should repeat.
func (s *spy) repeat(what echo) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.echo = what
}

func (s *spy) repeats() echo {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.echo
}

// spying is a dialect under watch.
type spying struct {
	Dialect
	spy *spy
}

type namedSpying struct {
	spying
	Namer
}

func (d spying) Recognise(r *Received) Call {
	c := d.Dialect.Recognise(r)
	d.spy.mu.Lock()
	d.spy.seen = append(d.spy.seen, seen{r, c.Operation, c.Write, c.Key, c.Window})
	d.spy.mu.Unlock()
	return c
}

// Seed implements Seeder; where the dialect is none, the sample's seed is a
// mistake that the engine reports.
func (d spying) Seed(tx *Tx, object any) (string, error) {
	s, ok := d.Dialect.(Seeder)
	if !ok {
		return "", errNoSeeds
	}
	return s.Seed(tx, object)
}

func (d spying) Seeds() map[string]any {
	if s, ok := d.Dialect.(Seeder); ok {
		return s.Seeds()
	}
	return nil
}

func (d spying) Execute(tx *Tx, c *Call) Answer { return d.twist(c, d.Dialect.Execute(tx, c)) }

func (d spying) Refuse(c *Call, why Refusal) Answer { return d.twist(c, d.Dialect.Refuse(c, why)) }

// twist makes an error repeat the request in every place where text can stand.
func (d spying) twist(c *Call, a Answer) Answer {
	what := d.spy.repeats()
	if a.Status < 400 || c.Request == nil || !c.Write || what == nil {
		return a
	}
	text := what(c)
	a.Body = echoed(a.Body, text)
	a.Header = a.Header.Clone()
	if a.Header == nil {
		a.Header = http.Header{}
	}
	a.Header.Set("X-Echo", strings.Map(printable, text))
	return a
}

func printable(r rune) rune {
	if r < ' ' || r > '~' {
		return -1
	}
	return r
}

// echoed adds text to every string of a JSON body; another body becomes the text.
func echoed(body []byte, text string) []byte {
	var v any
	if json.Unmarshal(body, &v) != nil {
		return []byte(text)
	}
	out, err := json.Marshal(addText(v, text))
	if err != nil {
		return []byte(text)
	}
	return out
}

func addText(v any, text string) any {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			v[name] = addText(member, text)
		}
	case []any:
		for i, element := range v {
			v[i] = addText(element, text)
		}
	case string:
		return v + " " + text
	}
	return v
}

// credential is the token of a request's Authorization header.
func credential(h http.Header) string {
	value := h.Get("Authorization")
	if _, token, ok := strings.Cut(value, " "); ok {
		return token
	}
	return value
}

// ledger is a ledger in memory that keeps every state its records went through.
type ledger struct {
	*memory.Store
	mu      sync.Mutex
	records []recordstore.Record
}

func newLedger() *ledger { return &ledger{Store: memory.New(nil)} }

func (l *ledger) note(rec recordstore.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records = append(l.records, rec)
}

// kept returns the records, oldest state first.
func (l *ledger) kept() []recordstore.Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.records)
}

func (l *ledger) Claim(ctx context.Context, c recordstore.Claim) (recordstore.Claimed, error) {
	claimed, err := l.Store.Claim(ctx, c)
	if err == nil {
		l.note(claimed.Record)
	}
	return claimed, err
}

func (l *ledger) Settle(ctx context.Context, s recordstore.Settlement) (recordstore.Record, error) {
	rec, err := l.Store.Settle(ctx, s)
	if err == nil {
		l.note(rec)
	}
	return rec, err
}

// dying is the ledger of a process that dies before it can settle.
type dying struct{ *ledger }

var errDied = errors.New("the process died")

func (dying) Settle(context.Context, recordstore.Settlement) (recordstore.Record, error) {
	return recordstore.Record{}, errDied
}

func (dying) Report(context.Context, recordstore.ID, recordstore.Result) (recordstore.Record, error) {
	return recordstore.Record{}, errDied
}
