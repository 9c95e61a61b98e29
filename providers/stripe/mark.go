package stripe

import (
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-6b5e302b/samekey/keyderive"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// object is what a search reads of one.
type object struct {
	ID             string            `json:"id"`
	Status         string            `json:"status"`
	Closed         bool              `json:"closed"`
	AmountReceived int64             `json:"amount_received"`
	Metadata       map[string]string `json:"metadata"`
}

// markField is the metadata entry that holds the operation's mark; "" if it has
// none.
func markField(op rs.Operation) string {
	if len(op.Marks) == 0 {
		return ""
	}
	name := strings.TrimPrefix(op.Marks[0].Name, "/metadata/")
	return strings.TrimSuffix(strings.TrimPrefix(name, "metadata["), "]")
}

// mark is what stands in the place of the operation's mark.
func (o object) mark(op rs.Operation) string { return o.Metadata[markField(op)] }

// carries reports whether the operation's mark is on o.
func (o object) carries(op rs.Operation, mark string) bool {
	return mark != "" && len(op.Marks) > 0 && o.mark(op) == mark
}

// isMark tells a ledger's mark from text of the caller's own.
func isMark(s string) bool {
	_, _, err := keyderive.ParseMark(s)
	return err == nil
}

// sentMark reports whether the message carries the mark that is searched for: a
// caller may have filled its place.
func (s *search) sentMark() bool {
	return s.Mark != "" && len(s.Operation.Marks) > 0 && s.form.Get(s.Operation.Marks[0].Name) == s.Mark
}

// mayBe reports whether an object without a mark may be the one searched for. It
// is not if it differs in a member that the request fixed for good.
func (s *search) mayBe(raw json.RawMessage, fixed []string) bool {
	if len(fixed) == 0 {
		return true
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return true
	}
	differs := func(name, want string) bool {
		member, listed := members[name]
		return want != "" && listed && !same(member, want)
	}
	if s.Operation.Name == "payout.reverse" {
		original, err := url.PathUnescape(s.targetID())
		return err != nil || !differs("original_payout", original)
	}
	return !slices.ContainsFunc(fixed, func(name string) bool { return differs(name, s.form.Get(name)) })
}

// same reports whether a member of an object can be what a form gave: a number, a
// text, or of an expanded object the id.
func same(member json.RawMessage, want string) bool {
	var number int64
	if json.Unmarshal(member, &number) == nil && string(member) != "null" {
		n, err := strconv.ParseInt(want, 10, 64)
		return err != nil || n == number
	}
	var id ID
	return json.Unmarshal(member, &id) != nil || strings.EqualFold(string(id), want)
}
