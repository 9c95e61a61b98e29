// Package explain says in plain words what a record of a ledger means to the person
// who looks at it: what happened, whether it is safe to press the button again, and
// what to do. It knows records only, and neither stores nor screens.
package explain

import (
	"fmt"
	"strings"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

// Words are the answers to the three questions of 3 a.m., each of one sentence or
// few.
type Words struct {
	Happened string `json:"what_happened"`
	Safe     string `json:"safe_to_press_the_button"`
	Do       string `json:"what_to_do"`
	Person   bool   `json:"needs_a_person"` // Nothing moves before somebody decides.
}

// Words that several states have in common. What is never safe stands wherever
// somebody might be tempted.
const (
	neverNew = " Never under a new command ID: that could pay a second time."
	looksUp  = "the provider is asked first, and nothing is sent unless it is proved that nothing happened"
)

// Known is what an explanation rests on beside the record.
type Known struct {
	Trail    []recordstore.Entry // Of the record, oldest first.
	Now      time.Time           // The ledger's.
	Restored time.Time           // When the ledger was restored from a backup; zero: never.
	Horizon  time.Duration       // The operation's own; 0: 15 minutes.
}

// Record explains rec as it stands.
func Record(rec recordstore.Record, k Known) Words {
	now, restored := k.Now, k.Restored
	barred := !rec.NotAfter.IsZero() && !now.Before(rec.NotAfter)
	unsent := rec.State == recordstore.Planned || rec.State == recordstore.NotExecuted
	if unsent && recordstore.MayBeBehind(rec, restored) {
		return broughtBack(rec, restored)
	}
	switch rec.State {
	case recordstore.Planned:
		return planned(rec, now, barred)
	case recordstore.Sending:
		return sending(rec, now)
	case recordstore.Succeeded:
		return succeeded(rec, k)
	case recordstore.Refused:
		return refused(rec, k)
	case recordstore.NotExecuted:
		return notExecuted(rec, k, barred)
	case recordstore.Uncertain:
		return uncertain(rec, now, barred)
	case recordstore.ManualReview:
		return review(rec, k)
	case recordstore.Abandoned:
		return abandoned(rec, k)
	}
	return Words{
		Happened: fmt.Sprintf("The record is in state %q, which this build does not know.", rec.State),
		Safe:     "Unknown to this build.",
		Do:       "Look at it with a newer build of samekey.",
		Person:   true,
	}
}

// broughtBack explains a record that says that nothing was sent, or accepted, and may
// not know what happened after the backup was made.
func broughtBack(rec recordstore.Record, restored time.Time) Words {
	return Words{
		Happened: fmt.Sprintf("The ledger was restored from a backup, and what was written before %s may be lost. This record says %s, but it may have been executed since.",
			Clock(restored), strings.ReplaceAll(string(rec.State), "_", " ")),
		Safe: "Yes, with the same command ID only: " + looksUp + "." + neverNew,
		Do:   "Press the button again with the same command, or look at the provider's dashboard first.",
	}
}

func planned(rec recordstore.Record, now time.Time, barred bool) Words {
	w := Words{
		Happened: "It was written together with a change in your database, " + Ago(now.Sub(rec.CreatedAt)) + ", and was never sent.",
		Safe:     "Yes: the same command sends it, once.",
		Do:       "Nothing, if it is fresh: a reconciler sends it. If it has waited for minutes, no reconciler is running: start one, or `samekey reconcile --once`.",
	}
	if barred {
		w.Safe = "Yes, and it does nothing: its time limit has passed, so that it is not sent any more."
		w.Do = "Nothing. If it is still wanted, that is a new intent, with a new command ID."
	}
	return w
}

func sending(rec recordstore.Record, now time.Time) Words {
	if left := rec.LeaseEndsAt.Sub(now); left > 0 {
		w := Words{
			Happened: fmt.Sprintf("A process took it %s and may be sending it right now.", Ago(now.Sub(rec.ClaimedAt))),
			Safe:     "Yes, but it changes nothing yet: until the lease ends the same command is only told that it is in flight." + neverNew,
			Do:       fmt.Sprintf("Wait %s until the lease ends, then look again.", Span(left)),
		}
		if rec.Noted != "" {
			w.Happened += fmt.Sprintf(" Meanwhile a fact was handed in: it is %s.", rec.Noted)
		}
		return w
	}
	return Words{
		Happened: fmt.Sprintf("The process that was sending it %s died or hangs: its lease ended %s. The provider may have received the request.",
			Ago(now.Sub(rec.ClaimedAt)), Ago(now.Sub(rec.LeaseEndsAt))),
		Safe: "Yes, with the same command ID only: inside the provider's window the same key is sent again, which cannot pay twice, and after it " + looksUp + "." + neverNew,
		Do:   "Nothing, if a reconciler runs: it finds out by itself. Otherwise press the button again with the same command, or `samekey reconcile --once`.",
	}
}

func succeeded(rec recordstore.Record, k Known) Words {
	w := Words{
		Happened: "The provider executed it, " + times(rec) + ".",
		Safe:     "Yes: the recorded answer is given again, and nothing is sent.",
		Do:       "Nothing.",
	}
	if rec.ExternalRef != "" {
		w.Happened = "The provider executed it: " + rec.ExternalRef + ", " + times(rec) + "."
	}
	if rec.Evidence == "operator" {
		w.Happened = decided(rec, k, "it was executed")
	}
	switch rec.Outcome {
	case "pending":
		w.Happened += " Its outcome is still pending: applied is not paid."
		w.Do = "Wait for the provider. How it stands now is shown by Client.Refresh, or at the provider's dashboard."
	case "partial":
		w.Happened += " It was executed in part only."
		w.Do = "See at the provider's dashboard which part, and make the rest under a new command ID."
	}
	if !rec.BodyPurgedAt.IsZero() {
		w.Safe = "Yes: nothing is sent. The recorded answer is gone, so that the provider is asked how it stands."
	}
	return w
}

// times says how often a request may have reached the provider.
func times(rec recordstore.Record) string {
	if rec.Deliveries <= 1 {
		return "once"
	}
	return fmt.Sprintf("once, though up to %d requests with the same key reached it", rec.Deliveries)
}

func refused(rec recordstore.Record, k Known) Words {
	w := Words{
		Happened: "The provider decided against it" + because(rec) + ". No money moved.",
		Safe:     "Yes: the recorded refusal is given again, and nothing is sent.",
		Do:       "Nothing. The customer's next try, as with another card, is a new command.",
	}
	if rec.Evidence == "operator" {
		w.Happened = decided(rec, k, "it had no effect, and ended it")
		w.Do = newIntent(rec, k)
	}
	return w
}

func notExecuted(rec recordstore.Record, k Known, barred bool) Words {
	w := Words{
		Happened: "It is proved that the provider accepted nothing" + because(rec) + ". No money moved.",
		Safe:     "Yes: the same command sends it again, once.",
		Do:       "Mend the cause (credentials, a precondition, the rate), then press the button again with the same command. What must be sent with other content is a new command.",
	}
	_, byPerson := verdictOf(rec, k.Trail)
	if byPerson {
		w.Happened = decided(rec, k, "it had no effect, and may be sent again")
		w.Safe = "As safe as that decision is right: the same command sends it again. If an earlier request was executed after all, a provider that still knows the key does not execute it twice; one that has forgotten it may."
		w.Do = "Press the button again with the same command."
	}
	switch {
	case barred:
		w.Safe = "Yes, and it does nothing: its time limit has passed, so that it is not sent any more."
		w.Do = newIntent(rec, k)
	case !rec.DueAt.IsZero() && byPerson:
		w.Do = "Nothing. It began as a plan: the reconciler sends it again, " + when(rec.DueAt, k.Now) + "."
	case !rec.DueAt.IsZero():
		w.Do = "Mend the cause (credentials, a precondition, the rate). It began as a plan: the reconciler sends it again, " + when(rec.DueAt, k.Now) + "."
	}
	return w
}

func abandoned(rec recordstore.Record, k Known) Words {
	w := Words{
		Happened: "Sending was forbidden, by a person or by the command's own time limit. The provider had accepted nothing.",
		Safe:     "Yes, and it does nothing: the command is refused as abandoned, and nothing is sent.",
		Do:       newIntent(rec, k),
	}
	if _, byPerson := verdictOf(rec, k.Trail); byPerson {
		w.Happened = "Sending was forbidden, by a person or by the command's own time limit. " + decided(rec, k, "it had had no effect")
	}
	return w
}

func uncertain(rec recordstore.Record, now time.Time, barred bool) Words {
	w := Words{
		Happened: fmt.Sprintf("It was sent %s and the answer was lost or says nothing%s: it may have been executed. It is not failed.",
			Ago(now.Sub(rec.ClaimedAt)), because(rec)),
	}
	switch {
	case barred, rec.LookOnly, rec.Derivation == recordstore.Foreign, !now.Before(rec.WindowEndsAt):
		w.Safe = "Yes, with the same command ID only: " + looksUp + "." + neverNew
		if barred {
			w.Safe = "Yes, with the same command ID only: it is looked up, and never sent any more." + neverNew
		}
	default:
		w.Safe = fmt.Sprintf("Yes, with the same command ID only: until %s the provider knows the key and cannot execute it twice.%s",
			Clock(rec.WindowEndsAt), neverNew)
	}
	switch {
	case rec.DueAt.IsZero():
		w.Do = "Press the button again with the same command: no check is planned for it."
	case now.Sub(rec.DueAt) > 5*time.Minute:
		w.Do = fmt.Sprintf("Its check was due %s: no reconciler is running. Start one, or `samekey reconcile --once`.", Ago(now.Sub(rec.DueAt)))
	default:
		w.Do = fmt.Sprintf("Nothing: check no. %d finds out, %s. Do not tell the customer that it failed.", rec.Checks+1, when(rec.DueAt, now))
	}
	return w
}

func review(rec recordstore.Record, k Known) Words {
	where := "by amount, time and the mark on the object"
	if rec.ExternalRef != "" {
		where = "at " + rec.ExternalRef
	}
	happened, contradicted := contradiction(k.Trail)
	if !contradicted {
		happened = "It may have been executed, and neither sending again nor asking the provider can tell" + because(rec) + "."
	}
	return Words{
		Happened: happened,
		Safe:     "It does nothing: the command is refused until somebody decides, and nothing is sent." + neverNew,
		Do:       "Look at the provider's dashboard " + where + ", then resolve the record: applied, if it is there; none, if it is not and cannot come any more.",
		Person:   true,
	}
}

// because gives the recorded code, ours without its prefix.
func because(rec recordstore.Record) string {
	code := rec.ErrorCode
	ours, theirs, both := strings.Cut(code, ":")
	switch {
	case code == "" || !both && (ours == "uncertain" || ours == "manual_review" || ours == "refused"):
		return ""
	case both:
		return " (" + theirs + ")"
	}
	return " (" + code + ")"
}
