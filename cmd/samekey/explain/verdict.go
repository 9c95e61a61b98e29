package explain

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

// usualHorizon is outbound.Options.Horizon's default.
const usualHorizon = 15 * time.Minute

// Quiet returns when no request of rec can be applied any more: the end of the last
// lease, and the operation's own horizon (0: 15 minutes) after it. Zero: none was
// ever written.
func Quiet(rec recordstore.Record, horizon time.Duration) time.Time {
	if rec.SentUntil.IsZero() {
		return time.Time{}
	}
	return rec.SentUntil.Add(cmp.Or(horizon, usualHorizon))
}

// TooEarly says until when to wait, and why, before somebody decides that rec had no
// effect; "" where nothing can come any more.
func TooEarly(rec recordstore.Record, horizon time.Duration, now time.Time) string {
	quiet := Quiet(rec, horizon)
	if !now.Before(quiet) {
		return ""
	}
	return fmt.Sprintf("wait until %s (%s): the last request may have been written until %s, and may be executed up to %s after that",
		Clock(quiet), when(quiet, now), Clock(rec.SentUntil), Span(quiet.Sub(rec.SentUntil)))
}

// newIntent is what to do about a command that is ended.
func newIntent(rec recordstore.Record, k Known) string {
	_, byPerson := verdictOf(rec, k.Trail)
	if quiet := Quiet(rec, k.Horizon); (byPerson || rec.Evidence == "operator") && k.Now.Before(quiet) {
		return "Make no new command before " + Clock(quiet) + ": until then a request may still be executed. Look at the provider's dashboard again after it."
	}
	return "Nothing. If it is wanted after all, that is a new intent, with a new command ID."
}

// verdictOf returns the person's verdict that rec rests on.
func verdictOf(rec recordstore.Record, trail []recordstore.Entry) (recordstore.Entry, bool) {
	for _, e := range slices.Backward(trail) {
		if e.Kind == "verdict" {
			stands := e.To == rec.State || rec.State == recordstore.Abandoned && e.To == recordstore.NotExecuted
			return e, stands && !e.At.Before(rec.ClaimedAt)
		}
	}
	return recordstore.Entry{}, false
}

// decided says who decided what rec rests on, which is no proof.
func decided(rec recordstore.Record, k Known, what string) string {
	who, on := "A person", rec.AnsweredAt
	if v, found := verdictOf(rec, k.Trail); found {
		who, on = cmp.Or(v.Actor, who), v.At
	}
	text := who + " decided"
	if !on.IsZero() {
		text += " on " + Clock(on)
	}
	return text + " that " + what + ". That is a person's word, not the provider's: the trail says why."
}

// contradiction tells of the verdict, or of the provider's own answer, that a later
// fact spoke against, where that is why a person is needed.
func contradiction(trail []recordstore.Entry) (string, bool) {
	i := len(trail) - 1
	for i >= 0 && trail[i].From == trail[i].To { // what only notes
		i--
	}
	if i < 0 || trail[i].To != recordstore.ManualReview {
		return "", false
	}
	fact := trail[i]
	held, known := map[recordstore.State]string{
		recordstore.Refused: "it had no effect (none)", recordstore.NotExecuted: "it had no effect (send-again)",
		recordstore.Abandoned: "it is not sent any more", recordstore.Succeeded: "it was executed (applied)",
	}[fact.From]
	if !known {
		return "", false
	}
	first := "The ledger held that " + held
	for _, e := range slices.Backward(trail[:i]) {
		if e.To == fact.From && e.From != e.To {
			if e.Kind == "verdict" {
				first = fmt.Sprintf("%s decided on %s that %s", cmp.Or(e.Actor, "A person"), Clock(e.At), held)
			}
			break
		}
	}
	against := "that it was executed"
	if fact.From == recordstore.Succeeded {
		against = "otherwise"
	}
	return fmt.Sprintf("%s, and on %s the %s said %s (%s%s). The two contradict each other.",
		first, Clock(fact.At), cmp.Or(fact.Actor, "ledger"), against, fact.Kind, ended(fact.Text)), true
}
