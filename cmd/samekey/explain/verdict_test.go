package explain_test

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/cmd/samekey/explain"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

func says(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("this does not say %q: %s", w, text)
		}
	}
}

func entry(kind, actor string, from, to recordstore.State, ago time.Duration) recordstore.Entry {
	return recordstore.Entry{At: now.Add(-ago), Kind: kind, Actor: actor, From: from, To: to, Text: "why"}
}

// A verdict is told as a person's word, never as a proof; a later claim ends that.
func TestVerdictIsNoProof(t *testing.T) {
	k := explain.Known{Now: now, Trail: []recordstore.Entry{
		entry("verdict", "bob", recordstore.Uncertain, recordstore.NotExecuted, time.Minute),
	}}
	again := record(recordstore.NotExecuted, nil)
	w := explain.Record(again, k)
	says(t, w.Happened, "bob decided on "+explain.Clock(now.Add(-time.Minute)), "not the provider's")
	if strings.Contains(w.Happened, "proved") {
		t.Errorf("a guess is called a proof: %s", w.Happened)
	}
	says(t, explain.Record(record(recordstore.Abandoned, nil), k).Happened, "bob decided")
	again.ClaimedAt = now
	says(t, explain.Record(again, k).Happened, "It is proved")
}

// A new command for an ended one is only advised when nothing can come any more.
func TestNoNewIntentBeforeTheHorizon(t *testing.T) {
	ended := record(recordstore.Refused, func(r *recordstore.Record) { r.Evidence, r.SentUntil = "operator", now.Add(-10*time.Minute) })
	for _, tt := range []struct {
		horizon, later time.Duration
		early          bool
	}{{0, 0, true}, {0, 5 * time.Minute, false}, {time.Hour, 5 * time.Minute, true}, {time.Hour, 50 * time.Minute, false}} {
		at := now.Add(tt.later)
		do := explain.Record(ended, explain.Known{Now: at, Horizon: tt.horizon}).Do
		if allowed := strings.Contains(do, "new intent"); allowed == tt.early {
			t.Errorf("horizon %v, %v later: %s", tt.horizon, tt.later, do)
		}
		if said := explain.TooEarly(ended, tt.horizon, at); (said != "") != tt.early {
			t.Errorf("horizon %v, %v later: %q", tt.horizon, tt.later, said)
		}
	}
	if said := explain.TooEarly(record(recordstore.Abandoned, nil), 0, now); said != "" {
		t.Errorf("what was never sent waits: %s", said)
	}
}

// Who said what, where two words stand against each other.
func TestReviewTellsTheContradiction(t *testing.T) {
	review := record(recordstore.ManualReview, nil)
	for name, tt := range map[string]struct {
		trail []recordstore.Entry
		words []string
	}{
		"none and applied": {[]recordstore.Entry{
			entry("verdict", "bob", recordstore.Uncertain, recordstore.Refused, time.Hour),
			entry("webhook", "provider", recordstore.Refused, recordstore.ManualReview, time.Minute),
			entry("erase", "ada", recordstore.ManualReview, recordstore.ManualReview, time.Second),
		}, []string{"bob decided on " + explain.Clock(now.Add(-time.Hour)) + " that it had no effect (none)", "the provider said that it was executed (webhook: why)"}},
		"applied and refused": {[]recordstore.Entry{
			entry("verdict", "bob", recordstore.Uncertain, recordstore.Succeeded, time.Hour),
			entry("webhook", "provider", recordstore.Succeeded, recordstore.ManualReview, time.Minute),
		}, []string{"that it was executed (applied)", "the provider said otherwise"}},
		"refused and applied": {[]recordstore.Entry{
			entry("webhook", "provider", recordstore.Refused, recordstore.ManualReview, time.Minute),
		}, []string{"The ledger held that it had no effect"}},
		"nobody knows": {[]recordstore.Entry{
			entry("lookup", "reconciler", recordstore.Sending, recordstore.ManualReview, time.Minute),
		}, []string{"neither sending again nor asking"}},
	} {
		t.Run(name, func(t *testing.T) {
			says(t, explain.Record(review, explain.Known{Now: now, Trail: tt.trail}).Happened, tt.words...)
		})
	}
}

// The answer of an uncertain record says that there is none.
func TestTimelineOfALostAnswer(t *testing.T) {
	lost := record(recordstore.Uncertain, func(r *recordstore.Record) { r.ErrorCode, r.AnsweredAt = "uncertain", now })
	for _, e := range explain.Timeline(lost, nil, now) {
		if e.What == "answer" {
			says(t, e.Text, "uncertain, no answer is recorded")
			return
		}
	}
	t.Error("the timeline has no answer")
}
