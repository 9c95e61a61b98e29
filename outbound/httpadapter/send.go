package httpadapter

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/seed-6b5e302b/samekey/outbound"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// Send delivers a frozen message until an answer is worth no other attempt. All
// attempts carry the same bytes and key; the codec's verdicts, not statuses,
// decide about the next one. An operation without a key goes over a connection
// of its own, and again only after an answer that proves that nothing happened.
//
// Redirects are never followed, and 3xx, truncated and oversized answers are
// unknown. Errors name no URL and no value of the request.
func (a *Adapter) Send(ctx context.Context, d *outbound.Delivery) []outbound.Verdict {
	s, err := a.newSending(d)
	if err != nil {
		return []outbound.Verdict{{Effect: outbound.EffectNone, Code: outbound.ErrInvalid, Err: err}}
	}
	s.first = s.round(ctx)
	if s.again(ctx) { // else the loop would end after its first round: most calls do without it
		s.loop(ctx)
	}
	return s.outcome(ctx)
}

// loop makes further attempts. For its first round trip it is given what the first
// attempt taught.
func (s *sending) loop(ctx context.Context) {
	loop := &retryablehttp.Client{
		HTTPClient: &http.Client{
			Transport:     s,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		RetryMax:     s.retry.Attempts - 1,
		CheckRetry:   func(ctx context.Context, _ *http.Response, _ error) (bool, error) { return s.again(ctx), nil },
		Backoff:      func(time.Duration, time.Duration, int, *http.Response) time.Duration { return s.pause },
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
	// The loop's own request carries the context only: each attempt makes the one
	// that is sent.
	request, err := retryablehttp.NewRequestWithContext(ctx, s.d.Message.Method, s.to.String(), nil)
	if err != nil {
		s.note(errors.New("the target is no URL"))
		return
	}
	if resp, err := loop.Do(request); err == nil {
		resp.Body.Close()
	}
}

// sending is one call of Send. It is the loop's transport: what the loop takes
// for a round trip is an attempt, judged.
type sending struct {
	a        *Adapter
	d        *outbound.Delivery
	retry    outbound.Retry
	to       *url.URL
	key      string // what the provider deduplicates by; "" for an operation without
	body     []byte // with the key, where the row puts it there
	verdicts []outbound.Verdict
	one      [1]outbound.Verdict // room for the first: most calls have no other
	doubt    bool                // an attempt so far has an unknown effect
	renewed  bool                // Refresh was called
	rounds   int                 // attempts, renewed credentials apart
	first    wire                // what the first of them taught
	told     bool                // The loop knows first.
	pause    time.Duration       // before the next attempt
}

func (a *Adapter) newSending(d *outbound.Delivery) (*sending, error) {
	s := &sending{a: a, d: d, retry: withDefaults(d.Retry), key: d.Key.Raw(), doubt: d.Resend}
	s.verdicts = s.one[:0]
	l, err := a.locate(d.Message.Target)
	if err != nil {
		return nil, err
	}
	if s.to, err = a.url(l); err != nil {
		return nil, errors.New("the target is no URL")
	}
	if d.Operation.HasKey() == d.Key.IsZero() {
		return nil, fmt.Errorf("%s: a delivery has a key exactly where the row has places for it", d.Operation.Name)
	}
	s.body = d.Message.Body
	if d.Operation.HasKey() {
		s.body, err = a.placeKey(d.Operation, d.Message, s.key)
	}
	return s, err
}

// withDefaults fills in what outbound.Retry documents.
func withDefaults(r outbound.Retry) outbound.Retry {
	for _, d := range []struct {
		value    *time.Duration
		fallback time.Duration
	}{
		{&r.MinWait, 500 * time.Millisecond}, {&r.MaxWait, 10 * time.Second},
		{&r.MaxRetryAfter, 20 * time.Second}, {&r.AttemptTimeout, 20 * time.Second},
	} {
		if *d.value <= 0 {
			*d.value = d.fallback
		}
	}
	if r.Attempts <= 0 {
		r.Attempts = 4
	}
	r.MinWait = min(r.MinWait, r.MaxWait)
	return r
}

var errAttempt = errors.New("httpadapter: the attempt has no answer") // for the loop only: s.verdicts says more

// round makes one attempt, and a second one at once where refused credentials
// could be renewed.
func (s *sending) round(ctx context.Context) wire {
	s.rounds++
	w, rejected := s.attempt(ctx)
	if rejected != nil && s.mayRenew(w) {
		s.renewed = true
		if err := s.a.renew(ctx, s.d.Account, rejected); err != nil {
			s.note(fmt.Errorf("the credentials could not be renewed: %w", err))
		} else {
			w, _ = s.attempt(ctx)
		}
	}
	return w
}

// RoundTrip is one round of the loop.
func (s *sending) RoundTrip(r *http.Request) (*http.Response, error) {
	w := s.first
	if s.told {
		w = s.round(r.Context())
	}
	s.told = true
	if w.status == 0 {
		return nil, errAttempt
	}
	return &http.Response{StatusCode: w.status, Header: w.header, Body: http.NoBody, Request: r}, nil
}

func (s *sending) mayRenew(w wire) bool {
	return w.status == http.StatusUnauthorized && s.a.cfg.Refresh != nil && !s.renewed && s.safe()
}

// attempt sends once and judges. The request is returned where it was sent.
func (s *sending) attempt(ctx context.Context) (wire, *http.Request) {
	if err := s.allowed(ctx); err != nil {
		s.refuse(outbound.ErrUnavailable, false, err)
		return wire{}, nil
	}
	bounded := limited(ctx, s.retry.AttemptTimeout)
	defer bounded.End()
	r := newRequest(bounded, s.d.Message.Method, s.to, s.d.Message.Header, s.body)
	secret, err := s.a.authorize(s.d.Account, s.d.Credentials, r, s.body)
	if err != nil {
		code := outbound.ErrUnavailable
		switch {
		case errors.Is(err, outbound.ErrInvalid):
			code = outbound.ErrInvalid
		case errors.Is(err, outbound.ErrAuth):
			code = outbound.ErrAuth
		}
		s.refuse(code, code == outbound.ErrUnavailable, err)
		return wire{}, nil
	}
	rt := s.a.transport
	if !s.d.Operation.HasKey() {
		rt, r.Close = s.a.fresh, true
	}
	for _, place := range s.d.Operation.Keys {
		if place.Kind == rs.InHeader {
			r.Header[http.CanonicalHeaderKey(place.Name)] = []string{inHeader(place, s.key)}
		}
	}
	w := s.a.exchange(rt, r, s.limit())
	s.judge(w, r, secret)
	return w, r
}

// allowed asks whether there is time for a whole attempt.
func (s *sending) allowed(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.d.Allow == nil {
		return nil
	}
	return s.d.Allow()
}

func (s *sending) limit() int64 {
	if s.d.MaxBody > 0 {
		return s.d.MaxBody
	}
	return s.a.cfg.MaxBody
}

// refuse notes that an attempt was not made. After another attempt that is no
// news of the command: the earlier verdict stands, and says why there was none.
func (s *sending) refuse(code outbound.Code, again bool, err error) {
	if len(s.verdicts) == 0 {
		s.add(outbound.Verdict{Effect: outbound.EffectNone, Code: code, Again: again, Err: err})
		return
	}
	s.note(err)
	s.last().Again = again
}

// judge makes a verdict of what the wire taught. secret is the credential in r's
// body.
func (s *sending) judge(w wire, r *http.Request, secret string) {
	v := s.a.judge(w, &Exchange{Operation: s.d.Operation, Resend: s.doubt, Status: w.status, Header: w.header, Body: w.body})
	if v.Answer != nil {
		v.Answer = answerOf(v.Answer.Status, w.header, v.Answer.Body, s.key)
	}
	s.a.conceal(&v, r, s.key, secret)
	s.add(v)
}

// judge says what one exchange teaches; the codec sees whole answers only.
func (a *Adapter) judge(w wire, x *Exchange) outbound.Verdict {
	v := outbound.Verdict{Err: w.err}
	switch {
	case w.status == 0 && w.deliveries == 0:
		v.Effect, v.Code, v.Again = outbound.EffectNone, outbound.ErrUnavailable, true
	case w.err != nil:
		v.Again = true
	case w.status < 200 || w.status >= 300 && w.status < 400:
		v.Err = fmt.Errorf("the provider answered a write with status %d, which says nothing of it", w.status)
	default:
		v = a.codec.Judge(x)
		if v.Answer == nil {
			v.Answer = &outbound.Answer{Status: w.status, Body: w.body}
		}
	}
	v.Deliveries = w.deliveries
	if v.RetryAfter == 0 {
		v.RetryAfter = retryAfter(w.header)
	}
	return v
}

func (s *sending) add(v outbound.Verdict) {
	s.doubt = s.doubt || v.Deliveries > 0 && (v.Effect == outbound.EffectUnknown || v.Deliveries > 1)
	s.verdicts = append(s.verdicts, v)
}

func (s *sending) last() *outbound.Verdict { return &s.verdicts[len(s.verdicts)-1] }

// note adds to the last verdict's error.
func (s *sending) note(err error) { s.last().Err = errors.Join(s.last().Err, err) }

// safe reports whether another attempt cannot make a second effect: the provider
// deduplicates, or what was sent provably had none.
func (s *sending) safe() bool {
	v := s.last()
	return s.d.Operation.HasKey() || v.Deliveries == 0 || v.Effect == outbound.EffectNone && v.Deliveries == 1
}

// again decides about another attempt and the pause before it.
func (s *sending) again(ctx context.Context) bool {
	if len(s.verdicts) == 0 {
		return false
	}
	v := s.last()
	if !v.Again || v.Effect == outbound.EffectApplied || !s.safe() || v.RetryAfter > s.retry.MaxRetryAfter || ctx.Err() != nil {
		return false
	}
	s.pause = s.wait(v.RetryAfter)
	end, bounded := ctx.Deadline()
	return !bounded || time.Until(end) > s.pause
}

// wait is the pause before another attempt: exponential or what the provider
// asked for, whichever is longer; jittered, so that callers do not come back
// together.
func (s *sending) wait(asked time.Duration) time.Duration {
	backoff := s.retry.MaxWait
	if shift := s.rounds - 1; shift < 30 {
		backoff = min(s.retry.MinWait<<shift, s.retry.MaxWait)
	}
	backoff = backoff/2 + rand.N(backoff/2+1)
	if asked <= backoff {
		return backoff
	}
	return min(asked+rand.N(s.retry.MinWait/2+1), s.retry.MaxRetryAfter)
}

// outcome returns the verdicts. Where the caller's context ended, the last one
// says so beside what the attempt itself taught.
func (s *sending) outcome(ctx context.Context) []outbound.Verdict {
	if len(s.verdicts) == 0 { // the loop made no attempt
		s.add(outbound.Verdict{Effect: outbound.EffectNone, Code: outbound.ErrUnavailable})
	}
	if s.last().Effect == outbound.EffectApplied {
		return s.verdicts
	}
	if err := ctx.Err(); err != nil && !errors.Is(s.last().Err, err) {
		s.note(err)
	}
	return s.verdicts
}

// retryAfter reads a Retry-After header, in seconds or as a date on the
// provider's own clock.
func retryAfter(h http.Header) time.Duration {
	const most = 365 * 24 * time.Hour
	value := h.Get("Retry-After")
	if value == "" {
		return 0
	}
	if seconds, err := strconv.ParseUint(value, 10, 64); err == nil {
		return time.Duration(min(seconds, uint64(most/time.Second))) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	now := time.Now()
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	return min(max(0, at.Sub(now)), most)
}
