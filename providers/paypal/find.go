package paypal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// search is one look-up. A finding needs the command's mark or key, or the id
// that an earlier answer told; a state counts without them only where it is the
// goal itself: void, cancel, a full capture, a full refund. An amount alone
// finds nothing. Absent is said only where the whole place that the effect would
// be in was seen, and PayPal named the record's account beside it.
type search struct {
	get httpadapter.Get
	*outbound.Lookup
	sent   period    // when what the command made came into being, by a clock statusMargin apart
	listed period    // what its lists cover: the same by a clock listMargin apart, or more
	began  time.Time // when the look-ups that share lists began, by the ledger's clock
}

// Find implements httpadapter.Finder. A look-up that is refused or fails is an
// error: nothing is known then, least of all a failure of the payment.
func (codec) Find(ctx context.Context, get httpadapter.Get, l *outbound.Lookup) (outbound.Finding, error) {
	return together(get, []*outbound.Lookup{l})[0].find(ctx)
}

func (s search) find(ctx context.Context) (outbound.Finding, error) {
	f, err := s.ask(ctx)
	if err != nil {
		return outbound.Finding{}, err
	}
	if f == absent && alreadyDone(s.Code) {
		return outbound.Finding{}, nil // two answers that contradict each other prove nothing
	}
	return f, nil
}

func (s search) ask(ctx context.Context) (outbound.Finding, error) {
	op, id := s.Operation.Name, pathID(s.Operation.Path, s.Message.Target)
	if g, guarded := goalOf(op); guarded {
		return s.state(ctx, id, g)
	}
	if s.ExternalRef != "" {
		return s.byReference(ctx)
	}
	switch op {
	case payoutCreate.Name:
		return s.payout(ctx)
	case orderCreate.Name:
		return s.orderByTransaction(ctx)
	case subscriptionCreate.Name:
		return s.subscription(ctx)
	case paymentTokenCreate.Name:
		return s.paymentToken(ctx)
	case invoiceCreate.Name:
		return s.invoice(ctx)
	}
	if id == "" {
		return outbound.Finding{}, nil
	}
	switch op {
	case orderCapture.Name, orderAuthorize.Name:
		return s.orderState(ctx, id)
	case authorizationCapture.Name:
		return s.authorizationCapture(ctx, id)
	case captureRefund.Name:
		return s.captureRefund(ctx, id)
	}
	return outbound.Finding{}, nil
}

// absent is the proof that there is no effect.
var absent = outbound.Finding{Effect: outbound.EffectNone}

// absentIf is the proof, where the account that PayPal named is the record's.
func absentIf(owned bool, err error) (outbound.Finding, error) {
	if err != nil || !owned {
		return outbound.Finding{}, err
	}
	return absent, nil
}

var errUnreadable = errors.New("paypal: the look-up's answer cannot be read")

// read GETs one object or one page of a list.
func (s search) read(ctx context.Context, path string, query url.Values, into any) (*httpadapter.Exchange, error) {
	x, err := s.get(ctx, path, query)
	if err != nil {
		return nil, fmt.Errorf("paypal: the look-up failed: %w", err)
	}
	if x.Status != http.StatusOK {
		return nil, answered(x.Status)
	}
	if err := decode(x.Body, into); err != nil {
		return nil, errUnreadable
	}
	return x, nil
}

// answered is the status of a look-up that was not answered with what it asked
// for.
type answered int

func (a answered) Error() string { return fmt.Sprintf("paypal: the look-up was answered %d", int(a)) }

// overloaded reports whether PayPal wants to be asked less.
func (a answered) overloaded() bool { return a == http.StatusTooManyRequests || a >= 500 }

// found is a finding of what r says, with body as its answer.
func found(x *httpadapter.Exchange, e rs.Evidence, r result, body []byte) outbound.Finding {
	f := outbound.Finding{
		Effect: outbound.EffectApplied, Evidence: e, Outcome: r.outcome,
		ExternalRef: r.ref, ObjectStatus: r.status,
		RequestID: x.Header.Get("Paypal-Debug-Id"),
		Answer:    jsonAnswer(http.StatusOK, body),
	}
	if r.refused {
		f.Effect, f.Code, f.ProviderCode = outbound.EffectNone, outbound.ErrRefused, r.why
	}
	return f
}

// foundObject is a finding of an object that has the shape of the operation's
// own answer.
func (s search) foundObject(x *httpadapter.Exchange, e rs.Evidence, o *object) (outbound.Finding, error) {
	r, err := readResult(s.Operation.Name, o.raw)
	if err != nil {
		return outbound.Finding{}, err
	}
	return found(x, e, r, o.raw), nil
}

// foundState is a finding of which no object can be shown.
func foundState(x *httpadapter.Exchange) outbound.Finding {
	f := found(x, rs.ByStateGuard, result{outcome: outbound.Done}, nil)
	f.Answer = nil
	return f
}

// missed is a final state that is not the goal.
func missed(x *httpadapter.Exchange, status string) outbound.Finding {
	return found(x, rs.ByStateGuard, result{refused: true, status: status, why: status}, x.Body)
}

func jsonAnswer(status int, body []byte) *outbound.Answer {
	return &outbound.Answer{Status: status, Header: []outbound.Field{{Name: "Content-Type", Value: "application/json"}}, Body: body}
}

// asked decodes the request's body; false if it is not known any more.
func (s search) asked(v any) bool {
	return len(s.Message.Body) > 0 && json.Unmarshal(s.Message.Body, v) == nil
}

// stamped reports whether the request carried our mark, so that what it made
// would be recognised.
func (s search) stamped() bool {
	return s.Mark != "" && strings.Contains(string(s.Message.Body), `"`+s.Mark+`"`)
}

// ownAccount reports whether the credential is that of the record's account. It
// is asked where an answer does not name the account itself; PayPal tells it to
// apps with the scope paypalattributes.
func (s search) ownAccount(ctx context.Context) (bool, error) {
	var who struct {
		PayerID string `json:"payer_id"`
	}
	_, err := s.read(ctx, "/v1/identity/oauth2/userinfo", url.Values{"schema": {"paypalv1.1"}}, &who)
	return err == nil && who.PayerID != "" && who.PayerID == s.Account, err
}

// idForm is what PayPal's ids look like; anything else stays out of a path.
var idForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`)

// pathID is the id in target, a path that fits the row's; "" if it does not.
func pathID(row, target string) string {
	target, _, _ = strings.Cut(target, "?")
	before, after, _ := strings.Cut(row, "{id}")
	id, fits := strings.CutPrefix(target, before)
	if !fits || before == row {
		return ""
	}
	if id, fits = strings.CutSuffix(id, after); !fits || !idForm.MatchString(id) {
		return ""
	}
	return id
}

// linkID is the id that a link has in a collection; "" if it leads elsewhere.
func linkID(href, collection string) string {
	_, id, _ := strings.Cut(href, collection)
	id, _, _ = strings.Cut(id, "?")
	if !idForm.MatchString(id) {
		return ""
	}
	return id
}
