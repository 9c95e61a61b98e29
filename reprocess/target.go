package reprocess

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	"github.com/seed-6b5e302b/samekey/replaysemantics"
)

// Target is one line of the targets' file: an event, and the call that its consumer
// owes to it.
type Target struct {
	Event      string    `json:"event"`                // The event's own id.
	OccurredAt time.Time `json:"occurred_at,omitzero"` // As the consumer passes it; left out where it passes none.
	Scope      string    `json:"scope,omitempty"`      // As the consumer passes it.
	Step       string    `json:"step,omitempty"`       // Where one event has several effects of one operation.
	NotAfter   time.Time `json:"not_after,omitzero"`   // Never sent after it.
	Account    string    `json:"account,omitempty"`    // Defaults to the one of the credentials.
	Operation  string    `json:"operation"`            // As "refund.create".
	IDs        []string  `json:"ids,omitempty"`        // Fill the {…} of the operation's path, in order.

	// Exactly one is given: Form for providers that take forms, JSON for the others.
	// {} stands for a request without fields.
	Form Form            `json:"form,omitempty"`
	JSON json.RawMessage `json:"json,omitempty"`

	line int
}

// Form is the fields of a form; a field's value is a string, or a list of them.
type Form url.Values

// UnmarshalJSON reads an object of strings and lists of strings.
func (f *Form) UnmarshalJSON(b []byte) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(b, &fields); err != nil || fields == nil {
		return errors.New("\"form\" is an object of strings")
	}
	*f = make(Form, len(fields))
	for name, raw := range fields {
		var one string
		var many []string
		if json.Unmarshal(raw, &one) == nil && string(raw) != "null" {
			many = []string{one}
		} else if json.Unmarshal(raw, &many) != nil || many == nil {
			return fmt.Errorf("\"form\": %q is neither a string nor a list of strings: write numbers in quotes", name)
		}
		(*f)[name] = many
	}
	return nil
}

func (t *Target) check() error {
	switch {
	case strings.TrimSpace(t.Event) == "":
		return errors.New("\"event\" is missing: the event's own id")
	case t.Operation == "":
		return errors.New("\"operation\" is missing, as \"refund.create\"")
	case (t.Form == nil) == (t.JSON == nil):
		return errors.New("give the call's parameters as \"form\" or as \"json\", one of them; {} for none")
	case t.JSON != nil && t.JSON[0] != '{' && t.JSON[0] != '[':
		return errors.New("\"json\" is neither an object nor an array; {} for a request without fields")
	}
	return nil
}

// fits refuses a body of the other kind than the operation's, as far as its row says
// which that is.
func (t *Target) fits(op replaysemantics.Operation) error {
	kinds := make(map[replaysemantics.PlaceKind]bool)
	for _, p := range slices.Concat(op.Marks, op.Volatile, op.Unordered, op.Sensitive, op.Codes) {
		kinds[p.Kind] = true
	}
	form, other := kinds[replaysemantics.InForm], kinds[replaysemantics.InJSON]
	switch {
	case t.JSON != nil && form && !other:
		return fmt.Errorf("%s takes a form: give \"form\", not \"json\"", op.Name)
	case t.JSON == nil && other && !form:
		return fmt.Errorf("%s takes JSON: give \"json\", not \"form\"", op.Name)
	}
	return nil
}

// command is the target's at an effect version.
func (t *Target) command(consumer string, version int) (outbound.Command, error) {
	cmd, err := outbound.EventCommand(keyderive.Event{
		Consumer: consumer, ID: t.Event, Version: version, OccurredAt: t.OccurredAt,
	}, t.Scope)
	if err == nil && t.Step != "" {
		cmd = cmd.Step(t.Step)
	}
	cmd.NotAfter = t.NotAfter
	return cmd, err
}

// identity tells one effect of a batch from another. account stands for the one that
// is left out.
func (t *Target) identity(m *Manifest, account string) ([sha256.Size]byte, error) {
	if t.Account != "" {
		account = t.Account
	}
	cmd, err := t.command(m.Consumer, m.EffectVersion)
	return sha256.Sum256([]byte(strings.Join([]string{cmd.ID, t.Scope, account, t.Operation}, "\x00"))), err
}

// call is what the consumer would send for a target at an effect version.
func (b *Batch) call(t *Target, version int, rows []replaysemantics.Operation) (outbound.Call, error) {
	op, known := replaysemantics.Find(rows, t.Operation)
	if !known {
		return outbound.Call{}, fmt.Errorf("provider %s has no operation %q", b.Manifest.Provider, t.Operation)
	}
	cmd, err := t.command(b.Manifest.Consumer, version)
	if err != nil {
		return outbound.Call{}, err
	}
	call := httpadapter.FormCall(op, cmd, t.IDs, url.Values(t.Form))
	if t.JSON != nil {
		call = httpadapter.JSONCall(op, cmd, t.IDs, t.JSON)
	}
	call.Account = t.Account
	return call, nil
}
