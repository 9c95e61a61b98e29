package chaos

import (
	"errors"
	"testing"

	"github.com/seed-6b5e302b/samekey/outbound"
)

// A witness that believes everything would prove nothing: each lie about a true
// answer is seen.
func TestLiesAreSeen(t *testing.T) {
	t.Parallel()
	s := newScene(t, "sqlite", stripeRefund, stripeRefund)
	var replies []*outbound.Reply
	for _, j := range s.jobs {
		reply, err := s.clients["stripe"].Do(t.Context(), j.call())
		if err != nil {
			t.Fatal(err)
		}
		replies = append(replies, reply)
	}
	w := s.providers["stripe"].witness()
	lies := map[string]func(r *outbound.Reply){
		"":                        func(*outbound.Reply) {},
		"another command's":       func(r *outbound.Reply) { r.ExternalRef = replies[1].ExternalRef },
		"of an unknown request":   func(r *outbound.Reply) { r.RequestID = "req_none" },
		"new, but of the ledger":  func(r *outbound.Reply) { r.Origin = outbound.FromLedger },
		"a replay, but was first": func(r *outbound.Reply) { r.Label = outbound.OriginalReplay },
		"without a label":         func(r *outbound.Reply) { r.Label = "" },
	}
	for name, lie := range lies {
		r := *replies[0]
		lie(&r)
		if err := w.truthful(s.jobs[0], s.clients["stripe"], &r); (err != nil) != (name != "") {
			t.Errorf("an answer %s: %v", name, err)
		}
	}
}

// A result is right only if all of it is.
func TestResultErr(t *testing.T) {
	t.Parallel()
	kept := Result{Commands: 10, Effects: 10, Review: 1, Undecidable: 1}
	if err := kept.Err(); err != nil {
		t.Errorf("%v: %v", kept, err)
	}
	for _, broken := range []func(r *Result){
		func(r *Result) { r.Effects = 11 },
		func(r *Result) { r.Effects, r.Duplicates, r.Lost = 10, 1, 1 },
		func(r *Result) { r.Unresolved = 1 },
		func(r *Result) { r.Review = 2 },
		func(r *Result) { r.Review = 0 },
		func(r *Result) { r.Lies = []error{errors.New("a lie")} },
	} {
		r := kept
		broken(&r)
		if r.Err() == nil {
			t.Errorf("%+v counts as kept", r)
		}
	}
}
