package carriers

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/seed-6b5e302b/samekey/outbound"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// A frozen message is the request of one carrier, with the carrier's name and,
// where another may take it over, the parameters that it was made of.
const (
	carrierField    = "Samekey-Carrier"
	parametersField = "Samekey-Parameters"
)

// Freeze fixes the request of the preferred carrier. It is the record's memory of
// the way that the first delivery goes.
func (a *Adapter) Freeze(op rs.Operation, m outbound.Message, mark string) (outbound.Frozen, error) {
	plain, err := a.meaning.Freeze(op, m, "")
	if err != nil {
		return outbound.Frozen{}, err
	}
	c, row, known := a.preferred(op.Name)
	if !known {
		return outbound.Frozen{}, fmt.Errorf("%s: no carrier has the operation", op.Name)
	}
	frozen, err := c.freeze(row, plain.Message.Body, mark)
	if err != nil {
		return outbound.Frozen{}, err
	}
	frozen.Sensitive = frozen.Sensitive || plain.Sensitive
	own := []outbound.Field{{Name: carrierField, Value: c.Name}}
	if a.shared() {
		own = append(own, outbound.Field{Name: parametersField, Value: string(plain.Message.Body)})
	}
	frozen.Message.Header = append(own, frozen.Message.Header...)
	return frozen, nil
}

// freeze makes the carrier's request of parameters and fixes it.
func (c Carrier) freeze(row rs.Operation, parameters []byte, mark string) (outbound.Frozen, error) {
	m, err := c.Encode(row, slices.Clone(parameters))
	if err != nil {
		return outbound.Frozen{}, fmt.Errorf("%s: carrier %s: %w", row.Name, c.Name, err)
	}
	return c.Adapter.Freeze(row, m, mark)
}

// Canonical writes what an operation's parameters mean, and nothing of the carrier:
// JSON by RFC 8785. The versions of the carrier that was alone before are written by
// its adapter.
func (a *Adapter) Canonical(w io.Writer, version int, op rs.Operation, m outbound.Message, sensitive bool) error {
	if version == canonicalVersion {
		return a.meaning.Canonical(w, 1, op, m, sensitive)
	}
	before, known := a.carrier(a.cfg.Before)
	row, has := a.rows[before.Name][op.Name]
	if a.cfg.Before == "" || !known {
		return fmt.Errorf("%s: canonical version %d is not known to this build", op.Name, version)
	}
	if !has { // no record of the operation is as old
		return a.meaning.Canonical(w, 1, op, m, sensitive)
	}
	wire, err := before.Encode(row, slices.Clone(m.Body))
	if err != nil {
		return fmt.Errorf("%s: carrier %s: %w", op.Name, before.Name, err)
	}
	return before.Adapter.Canonical(w, version, row, wire, sensitive)
}

// recorded is a frozen message, taken apart.
type recorded struct {
	carrier    string
	parameters string // "" where no other carrier may take over
	message    outbound.Message
}

func (a *Adapter) takeApart(m outbound.Message) recorded {
	r := recorded{carrier: a.cfg.Before, message: m}
	r.message.Header = make([]outbound.Field, 0, len(m.Header))
	for _, f := range m.Header {
		switch f.Name {
		case carrierField:
			r.carrier = f.Value
		case parametersField:
			r.parameters = f.Value
		default:
			r.message.Header = append(r.message.Header, f)
		}
	}
	return r
}

// Send delivers by the carrier that the message names. Where all carriers share
// their keys it delivers by the preferred one, with a request made anew of the same
// parameters if that is another. A message of a carrier that is not there and shares
// no keys is not sent.
func (a *Adapter) Send(ctx context.Context, d *outbound.Delivery) []outbound.Verdict {
	unsent := func(code outbound.Code, err error) []outbound.Verdict {
		return []outbound.Verdict{{Effect: outbound.EffectNone, Code: code, Err: err}}
	}
	own := *d
	r := a.takeApart(d.Message)
	c, known := a.carrier(r.carrier)
	row, has := a.rows[c.Name][d.Operation.Name]
	own.Message = r.message
	if p, of, some := a.preferred(d.Operation.Name); a.shared() && r.parameters != "" && some && p.Name != c.Name {
		frozen, err := p.freeze(of, []byte(r.parameters), d.Key.Mark())
		if err != nil {
			return unsent(outbound.ErrInvalid, err)
		}
		c, row, has, known, own.Message = p, of, true, true, frozen.Message
	}
	if !known || !has || r.carrier == "" {
		return unsent(outbound.ErrUnavailable, fmt.Errorf("the command was fixed for carrier %q, which is not there, and another may not take it over: carriers are not known to share keys", r.carrier))
	}
	own.Operation = row
	verdicts := c.Adapter.Send(ctx, &own)
	for i := range verdicts {
		verdicts[i].Answer = c.result(row, verdicts[i])
	}
	return verdicts
}

// result is the answer to an effect in the operation's own shape, whatever carrier
// brought it: JSON in one form. One that cannot be read is none; the effect stands.
func (c Carrier) result(row rs.Operation, v outbound.Verdict) *outbound.Answer {
	if v.Answer == nil || v.Effect != outbound.EffectApplied {
		return v.Answer
	}
	body, err := v.Answer.Body, error(nil)
	if c.Decode != nil {
		body, err = c.Decode(row, v.Answer)
	}
	if err == nil {
		body, err = oneForm(body)
	}
	if err != nil {
		return nil
	}
	return &outbound.Answer{
		Status: http.StatusOK, Body: body,
		Header: []outbound.Field{{Name: "Content-Type", Value: "application/json"}},
	}
}

// oneForm writes JSON with sorted names and no blanks, numbers as they came.
func oneForm(body []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var tree any
	if err := d.Decode(&tree); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("more than one JSON value")
	}
	return json.Marshal(tree)
}

// Find looks an effect up by the carrier of its message, or by the first that can:
// objects are the same by whatever way they are read.
func (a *Adapter) Find(ctx context.Context, l *outbound.Lookup) (outbound.Finding, error) {
	r := a.takeApart(l.Message)
	own := slices.Clone(a.cfg.Carriers)
	slices.SortStableFunc(own, func(x, y Carrier) int { return cmp.Compare(rank(x, r), rank(y, r)) })
	for _, c := range own {
		finder, able := c.Adapter.(outbound.Finder)
		row, has := a.rows[c.Name][l.Operation.Name]
		if !able || !has || row.Lookup == "" {
			continue
		}
		ask := *l
		ask.Operation, ask.Message = row, outbound.Message{}
		if c.Name == r.carrier {
			ask.Message = r.message
		}
		f, err := finder.Find(ctx, &ask)
		if f.Answer != nil && f.Effect == outbound.EffectApplied {
			f.Answer = c.result(row, outbound.Verdict{Effect: f.Effect, Answer: f.Answer})
		}
		return f, err
	}
	return outbound.Finding{}, errors.New("no carrier can look the operation up")
}

func rank(c Carrier, r recorded) int {
	if c.Name == r.carrier {
		return 0
	}
	return 1
}
