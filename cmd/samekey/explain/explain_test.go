package explain_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/cmd/samekey/explain"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

var (
	now = time.Date(2026, 11, 30, 3, 10, 0, 0, time.UTC)
	all = []recordstore.State{
		recordstore.Planned, recordstore.Sending, recordstore.Succeeded, recordstore.Refused,
		recordstore.NotExecuted, recordstore.Uncertain, recordstore.ManualReview, recordstore.Abandoned,
	}
)

// record is one that was claimed ten minutes ago.
func record(state recordstore.State, change func(*recordstore.Record)) recordstore.Record {
	rec := recordstore.Record{
		State: state, Provider: "stripe", Operation: "refund.create", CommandID: "r1", Fence: 1, Version: 2, Deliveries: 1,
		CreatedAt: now.Add(-10 * time.Minute), ClaimedAt: now.Add(-10 * time.Minute), LeaseEndsAt: now.Add(-8 * time.Minute),
		WindowEndsAt: now.Add(23 * time.Hour), Derivation: "1",
	}
	if change != nil {
		change(&rec)
	}
	return rec
}

// C28: what somebody who may press the button again is told in each state.
func TestRecord(t *testing.T) {
	for name, tt := range map[string]struct {
		state  recordstore.State
		change func(*recordstore.Record)
		words  []string
		person bool
	}{
		"planned":     {recordstore.Planned, nil, []string{"10 min ago", "was never sent", "sends it, once"}, false},
		"planned out": {recordstore.Planned, func(r *recordstore.Record) { r.NotAfter = now }, []string{"time limit has passed", "not sent any more", "new intent"}, false},
		"live":        {recordstore.Sending, func(r *recordstore.Record) { r.LeaseEndsAt = now.Add(time.Minute) }, []string{"may be sending it right now", "in flight", "Wait 1 min"}, false},
		"noted": {recordstore.Sending, func(r *recordstore.Record) {
			r.LeaseEndsAt, r.Noted = now.Add(time.Minute), recordstore.Succeeded
		}, []string{"a fact was handed in: it is succeeded"}, false},
		"dead":      {recordstore.Sending, nil, []string{"died or hangs", "8 min ago", "may have received the request", "cannot pay twice"}, false},
		"succeeded": {recordstore.Succeeded, func(r *recordstore.Record) { r.ExternalRef = "re_1" }, []string{"executed it: re_1, once.", "given again, and nothing is sent"}, false},
		"repeated":  {recordstore.Succeeded, func(r *recordstore.Record) { r.Deliveries = 3 }, []string{"once, though up to 3 requests"}, false},
		"pending":   {recordstore.Succeeded, func(r *recordstore.Record) { r.Outcome = "pending" }, []string{"applied is not paid"}, false},
		"partial":   {recordstore.Succeeded, func(r *recordstore.Record) { r.Outcome = "partial" }, []string{"in part only"}, false},
		"purged":    {recordstore.Succeeded, func(r *recordstore.Record) { r.BodyPurgedAt = now }, []string{"asked how it stands"}, false},
		"decided":   {recordstore.Succeeded, func(r *recordstore.Record) { r.Evidence = "operator" }, []string{"A person decided that it was executed", "a person's word"}, false},
		"refused":   {recordstore.Refused, func(r *recordstore.Record) { r.ErrorCode = "refused:card_declined" }, []string{"against it (card_declined). No money moved", "is a new command"}, false},
		"ended":     {recordstore.Refused, func(r *recordstore.Record) { r.Evidence = "operator" }, []string{"A person decided that it had no effect", "is a new intent"}, false},
		"401":       {recordstore.NotExecuted, func(r *recordstore.Record) { r.ErrorCode = "auth" }, []string{"accepted nothing (auth)", "sends it again, once", "Mend the cause"}, false},
		"turned away": {recordstore.NotExecuted, func(r *recordstore.Record) {
			r.FromPlan, r.DueAt = true, now.Add(time.Minute)
		}, []string{"the reconciler sends it again, in 1 min"}, false},
		"uncertain":   {recordstore.Uncertain, func(r *recordstore.Record) { r.DueAt = now.Add(time.Minute) }, []string{"It is not failed", "until 2026-12-01 02:10:00 UTC", "check no. 1 finds out, in 1 min"}, false},
		"closed":      {recordstore.Uncertain, func(r *recordstore.Record) { r.WindowEndsAt = now }, []string{"the provider is asked first", "no check is planned"}, false},
		"look only":   {recordstore.Uncertain, func(r *recordstore.Record) { r.LookOnly = true }, []string{"the provider is asked first"}, false},
		"barred":      {recordstore.Uncertain, func(r *recordstore.Record) { r.NotAfter = now }, []string{"never sent any more"}, false},
		"overdue":     {recordstore.Uncertain, func(r *recordstore.Record) { r.DueAt = now.Add(-time.Hour) }, []string{"due 1 h ago: no reconciler is running"}, false},
		"review":      {recordstore.ManualReview, func(r *recordstore.Record) { r.ExternalRef = "re_1" }, []string{"nothing is sent", "at re_1", "resolve the record"}, true},
		"abandoned":   {recordstore.Abandoned, nil, []string{"Sending was forbidden", "nothing is sent"}, false},
		"of tomorrow": {"frozen", nil, []string{`"frozen"`, "newer build"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := explain.Record(record(tt.state, tt.change), explain.Known{Now: now})
			text := w.Happened + " " + w.Safe + " " + w.Do
			for _, want := range tt.words {
				if !strings.Contains(text, want) {
					t.Errorf("this does not say %q: %s", want, text)
				}
			}
			if w.Person != tt.person {
				t.Errorf("needs a person: %v", w.Person)
			}
		})
	}
}

// Whoever might be tempted to try under a new command is told not to, in every state
// in which the first one may have been executed.
func TestNeverANewCommandWhileItIsOpen(t *testing.T) {
	for _, state := range all {
		w := explain.Record(record(state, nil), explain.Known{Now: now})
		open := state == recordstore.Sending || state == recordstore.Uncertain || state == recordstore.ManualReview
		if said := strings.Contains(w.Safe, "Never under a new command ID"); said != open {
			t.Errorf("%s: told not to make a new command: %v", state, said)
		}
	}
}

// What a restore brought back as never sent may have been sent since.
func TestRecordBehindARestore(t *testing.T) {
	for _, state := range all {
		w := explain.Record(record(state, nil), explain.Known{Now: now, Restored: now.Add(-time.Minute)})
		unsent := state == recordstore.Planned || state == recordstore.NotExecuted
		if said := strings.Contains(w.Happened, "may have been executed since"); said != unsent {
			t.Errorf("%s: told that it may have been executed since: %v", state, said)
		}
	}
}

// The timeline has claim, answer, trail and what comes next, in the order of their
// times, and says who decided.
func TestTimeline(t *testing.T) {
	at := func(minute int) time.Time { return now.Add(time.Duration(minute-10) * time.Minute) }
	rec := record(recordstore.Uncertain, func(r *recordstore.Record) {
		r.Fence, r.CreatedAt, r.ClaimedAt, r.TakenFrom = 3, at(0), at(5), recordstore.Uncertain
		r.AnsweredAt, r.DueAt, r.Checks, r.NotAfter = at(6), at(20), 2, at(60)
	})
	trail := []recordstore.Entry{
		{At: at(2), From: recordstore.Uncertain, To: recordstore.Uncertain, Kind: "lookup", Actor: "reconciler", Text: "status 500"},
		{At: at(6), From: recordstore.Sending, To: recordstore.Uncertain, Kind: "takeover", Actor: "call"},
		{At: at(7), From: recordstore.Uncertain, To: recordstore.ManualReview, Kind: "verdict", Actor: "ada", Text: "seen"},
	}
	var got []string
	events := explain.Timeline(rec, trail, now)
	for _, e := range events {
		got = append(got, e.What)
	}
	want := []string{"written", "lookup", "claim", "takeover", "verdict", "check", "not_after", "window_ends"}
	if !slices.Equal(got, want) {
		t.Fatalf("the timeline is %v, want %v", got, want)
	}
	for i, text := range map[int]string{1: "still uncertain: status 500", 2: "claim no. 3 took it from uncertain", 4: "uncertain → manual_review: seen", 5: "check no. 3"} {
		if !strings.Contains(events[i].Text, text) {
			t.Errorf("event %d says %q, want %q", i, events[i].Text, text)
		}
	}
	if !events[4].Person || events[4].Who != "ada" || events[3].Person || events[4].Ahead || !events[5].Ahead {
		t.Errorf("who decided, and what lies ahead: %+v", events[3:6])
	}
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "less than a second", 1400 * time.Millisecond: "1 s", 90 * time.Second: "1 min 30 s", time.Hour: "1 h",
		25*time.Hour + 59*time.Minute: "1 d 1 h", 400 * 24 * time.Hour: "400 d",
	} {
		if got := explain.Span(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
	if explain.Ago(0) != "just now" || explain.Ago(time.Minute) != "1 min ago" {
		t.Errorf("%q, %q", explain.Ago(0), explain.Ago(time.Minute))
	}
}
