package providertest

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// brokenAdapter is a sound adapter that breaks one rule, and the cases that must
// say so: those and no others.
type brokenAdapter struct {
	name  string
	fails string
	of    func() *shape
	spoil func(*shape)
}

// Each broken adapter fails the case that exists because of it, and no other.
func TestKitRejectsBrokenAdapters(t *testing.T) {
	t.Parallel()
	for _, b := range brokenAdapters() {
		t.Run(strings.ReplaceAll(b.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			s := b.of()
			b.spoil(s)
			got, said := failing(t, s)
			want := strings.Fields(b.fails)
			slices.Sort(want)
			for _, name := range want {
				switch {
				case !slices.Contains(got, name):
					t.Errorf("%s accepts this adapter", name)
				case !strings.Contains(said[name], "why it matters: ") || !strings.Contains(said[name], "what to change: "):
					t.Errorf("%s fails without explaining itself: %s", name, said[name])
				}
			}
			for _, name := range got {
				if !slices.Contains(want, name) {
					t.Errorf("%s fails too:\n%s", name, said[name])
				}
			}
		})
	}
}

// Every case is there because of an adapter that it rejects.
func TestEveryCaseRejectsAnAdapter(t *testing.T) {
	var rejects []string
	for _, b := range brokenAdapters() {
		rejects = append(rejects, strings.Fields(b.fails)...)
	}
	for _, c := range cases() {
		if !slices.Contains(rejects, c.name) {
			t.Errorf("%s rejects no broken adapter", c.name)
		}
	}
}

func brokenAdapters() []brokenAdapter {
	return slices.Concat(brokenWires(), brokenUnknowns(), brokenProofs(), brokenLabels(), brokenTimes(), brokenLookups(), brokenSecrets())
}

// The ways to break an adapter.

// judged changes the codec's verdicts where when holds.
func judged(when func(x *httpadapter.Exchange) bool, change func(v *outbound.Verdict)) func(*shape) {
	return func(s *shape) {
		s.judge = func(x *httpadapter.Exchange, v outbound.Verdict) outbound.Verdict {
			if when(x) {
				change(&v)
			}
			return v
		}
	}
}

func status(n int) func(*httpadapter.Exchange) bool {
	return func(x *httpadapter.Exchange) bool { return x.Status == n }
}

// none makes a proof of a verdict.
func none(code outbound.Code) func(*outbound.Verdict) {
	return func(v *outbound.Verdict) {
		*v = outbound.Verdict{Effect: outbound.EffectNone, Code: code, Answer: v.Answer, Deliveries: v.Deliveries, Err: v.Err}
	}
}

// sent changes requests on their way: n is the adapter's, the process's number,
// try how many requests with this body it sent before.
func sent(change func(r *http.Request, process, try int)) func(*shape) {
	return func(s *shape) {
		s.wire = func(process int, rt http.RoundTripper) http.RoundTripper {
			tries := map[string]int{}
			return roundTrip(func(r *http.Request) (*http.Response, error) {
				if r.Method == http.MethodPost {
					body, _ := io.ReadAll(r.Body)
					try := tries[string(body)]
					tries[string(body)]++
					setBody(r, body)
					change(r, process, try)
				}
				return rt.RoundTrip(r)
			})
		}
	}
}

// received changes answers on their way.
func received(change func(rt http.RoundTripper, r *http.Request, resp *http.Response)) func(*shape) {
	return func(s *shape) {
		s.wire = func(_ int, rt http.RoundTripper) http.RoundTripper {
			return roundTrip(func(r *http.Request) (*http.Response, error) {
				resp, err := rt.RoundTrip(r)
				if err == nil {
					change(rt, r, resp)
				}
				return resp, err
			})
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func setBody(r *http.Request, body []byte) {
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(string(body))), int64(len(body))
}

// wrapped is an adapter of which each step can be replaced.
type wrapped struct {
	*httpadapter.Adapter
	freeze    func(f outbound.Frozen, op rs.Operation, m outbound.Message) outbound.Frozen
	canonical func(a *httpadapter.Adapter, w io.Writer, version int, op rs.Operation, m outbound.Message, sensitive bool) error
	send      func(ctx context.Context, a *httpadapter.Adapter, d *outbound.Delivery) []outbound.Verdict
}

func (w *wrapped) Freeze(op rs.Operation, m outbound.Message, mark string) (outbound.Frozen, error) {
	f, err := w.Adapter.Freeze(op, m, mark)
	if w.freeze != nil && err == nil {
		f = w.freeze(f, op, m)
	}
	return f, err
}

func (w *wrapped) Canonical(to io.Writer, version int, op rs.Operation, m outbound.Message, sensitive bool) error {
	if w.canonical != nil {
		return w.canonical(w.Adapter, to, version, op, m, sensitive)
	}
	return w.Adapter.Canonical(to, version, op, m, sensitive)
}

func (w *wrapped) Send(ctx context.Context, d *outbound.Delivery) []outbound.Verdict {
	if w.send != nil {
		return w.send(ctx, w.Adapter, d)
	}
	return w.Adapter.Send(ctx, d)
}

func with(w wrapped) func(*shape) {
	return func(s *shape) {
		s.adapter = func(a *httpadapter.Adapter) outbound.Adapter {
			w := w
			w.Adapter = a
			return &w
		}
	}
}

// verdicts changes what Send returns, one by one.
func verdicts(change func(v *outbound.Verdict)) func(*shape) {
	return with(wrapped{send: func(ctx context.Context, a *httpadapter.Adapter, d *outbound.Delivery) []outbound.Verdict {
		all := a.Send(ctx, d)
		for i := range all {
			change(&all[i])
		}
		return all
	}})
}

// sentOnce changes the verdicts of calls with so many attempts.
func sentOnce(attempts int, change func(v *outbound.Verdict)) func(*shape) {
	return with(wrapped{send: func(ctx context.Context, a *httpadapter.Adapter, d *outbound.Delivery) []outbound.Verdict {
		all := a.Send(ctx, d)
		for i := range all {
			if d.Retry.Attempts == attempts {
				change(&all[i])
			}
		}
		return all
	}})
}

// failed changes verdicts whose error says this.
func failed(text string, change func(v *outbound.Verdict)) func(*shape) {
	return verdicts(func(v *outbound.Verdict) {
		if v.Err != nil && strings.Contains(v.Err.Error(), text) {
			change(v)
		}
	})
}

// row changes the row.
func row(change func(*rs.Operation)) func(*shape) {
	return func(s *shape) { change(&s.row) }
}
