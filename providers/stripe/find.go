package stripe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// Bounds of look-ups.
const (
	clockSkew = 2 * time.Hour // between the ledger's clock and Stripe's: a zone set wrong is an hour
	pageSize  = 100
	maxPages  = 10  // of a list for one look-up; what is longer is not searched to its end
	allPages  = 100 // of a list that answers many
)

// batch is a set of look-ups of one operation and account.
type batch struct {
	get      httpadapter.Get
	owners   *owners
	op       rs.Operation
	searches []*search
	objected error // Stripe limits the rate or fails: nothing more is asked
}

// search is one look-up and what it taught so far. It finds by the id that an
// earlier answer told, by our mark, by the key in an event, or by a state that
// is the operation's own goal. What it cannot prove it does not know.
type search struct {
	*outbound.Lookup
	form    url.Values // Of the frozen message; empty if it is not known any more.
	finding outbound.Finding
	err     error

	rival   bool // Something was seen that may be ours: an object without a mark, another request with the key.
	missing bool // A complete list does not have it.
	created bool // An event with the key says that it was created, and none that it was declined.
}

// Find looks an effect up. A look-up that is refused or fails is an error.
func (c codec) Find(ctx context.Context, get httpadapter.Get, l *outbound.Lookup) (outbound.Finding, error) {
	b := c.lookUp(ctx, get, []*outbound.Lookup{l})
	if s := b.searches[0]; s.open() {
		return outbound.Finding{}, s.err
	}
	return b.searches[0].finding, nil
}

// FindAll looks up many effects of one operation and account, by one list where
// there is one. It fails if nothing was found out and a look-up failed.
func (c codec) FindAll(ctx context.Context, get httpadapter.Get, ls []*outbound.Lookup) ([]outbound.Finding, error) {
	if len(ls) == 0 {
		return nil, nil
	}
	findings := make([]outbound.Finding, len(ls))
	var failed error
	for i, s := range c.lookUp(ctx, get, ls).searches {
		switch {
		case !s.open():
			findings[i] = s.finding
		case failed == nil:
			failed = s.err
		}
	}
	for _, f := range findings {
		if f.Effect != outbound.EffectUnknown {
			return findings, nil
		}
	}
	if failed != nil {
		return nil, failed
	}
	return findings, nil
}

// lookUp asks in the order that costs least: one object where its id is known,
// one list where there are many look-ups, and events last.
func (c codec) lookUp(ctx context.Context, get httpadapter.Get, ls []*outbound.Lookup) *batch {
	b := &batch{get: get, owners: c.owners, op: ls[0].Operation}
	for _, l := range ls {
		s := &search{Lookup: l}
		if form, err := url.ParseQuery(string(l.Message.Body)); err == nil && !isV2(b.op) {
			s.form = form
		}
		b.searches = append(b.searches, s)
	}
	switch {
	case !creates(b.op):
		b.states(ctx)
	case len(ls) == 1:
		b.references(ctx)
		b.lists(ctx)
	default:
		b.lists(ctx)
		b.references(ctx)
	}
	b.events(ctx)
	b.absences()
	return b
}

// creates reports whether the operation makes an object of its own.
func creates(op rs.Operation) bool {
	return strings.HasSuffix(op.Name, ".create") || op.Name == "payout.reverse"
}

// open reports whether nothing is known yet.
func (s *search) open() bool { return s.finding.Effect == outbound.EffectUnknown }

// each does f for the look-ups that are open, and notes its error.
func (b *batch) each(f func(s *search) error) {
	for _, s := range b.searches {
		if !s.open() {
			continue
		}
		if err := f(s); err != nil {
			s.err = err
		}
	}
}

// references reads the objects that earlier answers or events named.
func (b *batch) references(ctx context.Context) {
	b.each(func(s *search) error {
		at := s.list()
		if s.ExternalRef == "" || at == "" {
			return nil
		}
		x, err := b.read(ctx, at+"/"+url.PathEscape(s.ExternalRef), nil)
		if err != nil {
			return err
		}
		var o object
		if err := json.Unmarshal(x.Body, &o); err != nil {
			return errUnreadable
		}
		if isMark(o.mark(b.op)) && !o.carries(b.op, s.Mark) {
			return nil // another command's
		}
		return s.found(x, x.Body, rs.ByLookup)
	})
}

// list is the path of the list that a created object stands in; "" where it
// needs an id that is not known any more.
func (s *search) list() string {
	if s.Operation.Name == "payout.reverse" {
		return "/v1/payouts"
	}
	if !strings.Contains(s.Operation.Path, "{id}") {
		return s.Operation.Path
	}
	path, _, _ := strings.Cut(s.Message.Target, "?")
	return path
}

// targetID is the id of the object that the operation works on; "" if it is not
// known any more. It is escaped, as it stands in the path.
func (s *search) targetID() string {
	before, after, ok := strings.Cut(s.Operation.Path, "{id}")
	path, _, _ := strings.Cut(s.Message.Target, "?")
	path, isBelow := strings.CutPrefix(path, before)
	id, isAction := strings.CutSuffix(path, after)
	if !ok || !isBelow || !isAction || strings.Contains(id, "/") {
		return ""
	}
	return id
}

var errUnreadable = errors.New("stripe: the look-up's answer cannot be read")

// read GETs an object or a list.
func (b *batch) read(ctx context.Context, at string, query url.Values) (*httpadapter.Exchange, error) {
	if b.objected != nil {
		return nil, b.objected
	}
	x, err := b.get(ctx, at, query)
	switch {
	case err != nil:
		err = fmt.Errorf("stripe: %w", err)
		if ctx.Err() != nil {
			b.objected = err
		}
		return nil, err
	case x.Status == http.StatusOK:
		return x, nil
	}
	err = answeredError(x.Status)
	if x.Status == http.StatusTooManyRequests || x.Status >= http.StatusInternalServerError {
		b.objected = err
	}
	return nil, err
}

// answeredError is the status of a look-up that was not answered with 200.
type answeredError int

func (e answeredError) Error() string {
	return fmt.Sprintf("stripe: the look-up was answered %d", int(e))
}

// found makes the object in body the finding. An id that Stripe answered for is
// the object's own. A new intent that was declined since was created all the
// same, unless the request that created it confirmed it too; where the request is
// not known any more, only an event can tell.
func (s *search) found(x *httpadapter.Exchange, body []byte, evidence rs.Evidence) error {
	var a answer
	if err := json.Unmarshal(body, &a); err != nil || !a.identified() {
		return errUnreadable
	}
	v := judgeObject(s.Operation.Name, &a)
	if creates(s.Operation) && a.unpaid() {
		switch {
		case s.form.Get("confirm") == "true":
			v = declined(&a)
		case s.Message.Target == "" && !s.created:
			s.rival = true
			return nil
		}
	}
	s.conclude(v, evidence, x.Header.Get(headerRequestID), body)
	return nil
}

// conclude makes a verdict on the object in body the finding.
func (s *search) conclude(v outbound.Verdict, evidence rs.Evidence, requestID string, body []byte) {
	s.finding = outbound.Finding{
		Effect: v.Effect, Code: v.Code, Evidence: evidence, Outcome: v.Outcome,
		ExternalRef: v.ExternalRef, ObjectStatus: v.ObjectStatus, ProviderCode: v.ProviderCode,
		RequestID: requestID, Answer: answerOf(body),
	}
}

// absent makes the proof that there is no effect the finding.
func (s *search) absent() {
	s.finding = outbound.Finding{Effect: outbound.EffectNone, Evidence: rs.ByLookup}
}

func answerOf(body []byte) *outbound.Answer {
	return &outbound.Answer{
		Status: http.StatusOK,
		Header: []outbound.Field{{Name: "Content-Type", Value: "application/json"}},
		Body:   body,
	}
}

// window is when the effects of searches can have been created, by Stripe's
// clock. A bound that is not known is the zero time.
func window(searches []*search) (from, until time.Time) {
	var lateness time.Duration // how long after the last possible delivery it may be applied
	for i, s := range searches {
		lateness = max(lateness, s.Horizon)
		if i == 0 || s.FirstSentAt.Before(from) {
			from = s.FirstSentAt
		}
		if i == 0 || !until.IsZero() && (s.SentUntil.IsZero() || s.SentUntil.After(until)) {
			until = s.SentUntil
		}
	}
	if !from.IsZero() {
		from = from.Add(-clockSkew)
	}
	if !until.IsZero() {
		until = until.Add(lateness + clockSkew)
	}
	return from, until
}
