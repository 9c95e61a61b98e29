package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

// Event is one point of a record's timeline.
type Event struct {
	At     time.Time `json:"at"`
	What   string    `json:"what"`            // "claim", "answer", "trail" kinds as "lookup", "verdict", and ahead "check", "window_ends" and so on.
	Who    string    `json:"who,omitempty"`   // A person's name, or what part of the software.
	Text   string    `json:"text"`            // One line.
	Ahead  bool      `json:"ahead,omitempty"` // It lies in the future.
	Person bool      `json:"person,omitempty"`
}

// Timeline returns what is known of a record's life, oldest first, and what comes
// next. A record keeps the time of its first and last claims only: those between,
// and what they learned, are in the trail.
func Timeline(rec recordstore.Record, trail []recordstore.Entry, now time.Time) []Event {
	var all []Event
	add := func(at time.Time, what, who, text string, args ...any) {
		if !at.IsZero() {
			all = append(all, Event{At: at, What: what, Who: who, Text: fmt.Sprintf(text, args...), Ahead: at.After(now)})
		}
	}
	first(rec, add)
	for _, e := range trail {
		add(e.At, e.Kind, e.Actor, "%s%s", moved(e), ended(e.Text))
		all[len(all)-1].Person = e.Kind == "verdict" || (e.Kind == "abandon" || e.Kind == "erase") && e.Actor != "reconciler"
	}
	told := slices.ContainsFunc(trail, func(e recordstore.Entry) bool { return e.At.Equal(rec.AnsweredAt) })
	if !told {
		add(rec.AnsweredAt, "answer", "", "%s", answered(rec))
	}
	erased := slices.ContainsFunc(trail, func(e recordstore.Entry) bool { return e.At.Equal(rec.BodyPurgedAt) })
	if !erased {
		add(rec.BodyPurgedAt, "purge", "", "the recorded bodies were removed")
	}
	next(rec, now, add)
	slices.SortStableFunc(all, func(a, b Event) int { return a.At.Compare(b.At) })
	return all
}

type adder func(at time.Time, what, who, text string, args ...any)

// first is how the record began and how it was claimed last.
func first(rec recordstore.Record, add adder) {
	if rec.ClaimedAt.IsZero() || !rec.ClaimedAt.Equal(rec.CreatedAt) {
		text := "written to the ledger before the first byte was sent"
		if rec.FromPlan || rec.State == recordstore.Planned || rec.ClaimedAt.IsZero() {
			text = "planned: written together with a change of the application"
		}
		add(rec.CreatedAt, "written", "", "%s", text)
	}
	switch {
	case rec.Fence <= 1:
		add(rec.ClaimedAt, "claim", short(rec.Holder), "written and claimed: the holder may send until %s", Clock(rec.LeaseEndsAt))
	default:
		add(rec.ClaimedAt, "claim", short(rec.Holder), "claim no. %d took it from %s", rec.Fence, cmp.Or(string(rec.TakenFrom), "new"))
	}
}

// next is what is still to come, or would have been.
func next(rec recordstore.Record, now time.Time, add adder) {
	ahead := func(at time.Time, what, text string) {
		if at.After(now) {
			add(at, what, "", "%s", text)
		}
	}
	switch rec.State {
	case recordstore.Sending, recordstore.Uncertain:
		if rec.State == recordstore.Sending {
			add(rec.LeaseEndsAt, "lease_ends", "", "the lease ends: others may then ask the provider")
		}
		add(rec.WindowEndsAt, "window_ends", "", "the provider forgets the key: from then on it is looked up, not sent again")
		ahead(rec.DueAt, "check", fmt.Sprintf("check no. %d of the reconciler", rec.Checks+1))
	case recordstore.Planned, recordstore.NotExecuted:
		ahead(rec.DueAt, "check", "the reconciler sends it")
	case recordstore.Succeeded, recordstore.Refused:
		if rec.BodyPurgedAt.IsZero() {
			ahead(rec.ReplayUntil, "answer_kept", "until then the recorded answer is kept")
		}
	}
	add(rec.NotAfter, "not_after", "", "never sent after this")
	if rec.State.Final() || rec.State == recordstore.Abandoned {
		ahead(rec.EvidenceUntil, "evidence_kept", "until then the record is kept")
	}
}

// moved tells the states of an entry.
func moved(e recordstore.Entry) string {
	if e.From == e.To {
		return "still " + string(e.To)
	}
	return string(e.From) + " → " + string(e.To)
}

func ended(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

// answered is what was recorded of an answer.
func answered(rec recordstore.Record) string {
	parts := []string{string(rec.State)}
	if rec.ResponseStatus > 0 {
		parts = append(parts, fmt.Sprintf("HTTP %d", rec.ResponseStatus))
	}
	if rec.ErrorCode != string(rec.State) {
		parts = appendNamed(parts, "", rec.ErrorCode)
	}
	if rec.State == recordstore.Uncertain && rec.ResponseStatus == 0 {
		parts = append(parts, "no answer is recorded: it was lost, came too late or proved nothing, and the service's log of that time says which")
	}
	parts = appendNamed(parts, "object ", rec.ExternalRef)
	parts = appendNamed(parts, "status ", rec.ObjectStatus)
	parts = appendNamed(parts, "provider's request ", rec.RequestID)
	parts = appendNamed(parts, "", Evidence(rec.Evidence))
	return strings.Join(parts, ", ")
}

func appendNamed(parts []string, name, value string) []string {
	if value == "" {
		return parts
	}
	return append(parts, name+value)
}

// Evidence says in words what an answer rests on, "" for nothing.
func Evidence(kind string) string {
	words := map[string]string{
		"replay_header":    "marked as a replay by the provider",
		"own_record":       "from the ledger's own copy",
		"no_replay_header": "executed now, by the provider's own mark",
		"first_delivery":   "the only request that can have executed it",
		"status_code":      "by the answer's status",
		"lookup":           "read from the provider afterwards",
		"webhook":          "reported by the provider itself",
		"state_guard":      "the object's state shows it",
		"operator":         "a person's verdict",
	}
	return cmp.Or(words[kind], kind)
}

func short(holder string) string {
	if holder == "" {
		return ""
	}
	return "holder " + holder[:min(8, len(holder))]
}
