package outbound

import (
	"testing"

	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/replaysemantics"
)

// The rules of proof, refusal and label of docs/design.md, section 3 (R9, R11, R12).
func TestFold(t *testing.T) {
	applied := Verdict{Effect: EffectApplied, Deliveries: 1}
	signalled := Verdict{Effect: EffectApplied, Deliveries: 1, Evidence: replaysemantics.ByNoReplayHeader}
	replayed := Verdict{Effect: EffectApplied, Deliveries: 1, Evidence: replaysemantics.ByReplayHeader}
	unknown := Verdict{Deliveries: 1, Again: true}
	limited := Verdict{Effect: EffectNone, Code: ErrRateLimited, Deliveries: 1, Again: true}
	rejected := Verdict{Effect: EffectNone, Code: ErrRejected, Deliveries: 1}
	declined := Verdict{Effect: EffectNone, Code: ErrRefused, Deliveries: 1}
	replayedDecline := Verdict{Effect: EffectNone, Code: ErrRefused, Deliveries: 1, Evidence: replaysemantics.ByReplayHeader}
	unreached := Verdict{Effect: EffectNone, Code: ErrUnavailable}
	twice := func(v Verdict) Verdict { v.Deliveries = 2; return v }

	runAgain := replaysemantics.Operation{}
	stored := replaysemantics.Operation{Failures: replaysemantics.Stored}
	for _, tt := range []struct {
		why      string
		op       replaysemantics.Operation
		doubt    bool
		verdicts []Verdict
		state    recordstore.State
		evidence Evidence
	}{
		{"a single answered delivery is a new execution", runAgain, false, []Verdict{applied}, recordstore.Succeeded, replaysemantics.ByFirstDelivery},
		{"deliveries proven None do not cloud the next one", runAgain, false, []Verdict{limited, applied}, recordstore.Succeeded, replaysemantics.ByFirstDelivery},
		{"after an unanswered delivery two labels are possible: the weaker one", runAgain, false, []Verdict{unknown, applied}, recordstore.Succeeded, replaysemantics.ByStatusCode},
		{"under doubt two labels are possible", runAgain, true, []Verdict{applied}, recordstore.Succeeded, replaysemantics.ByStatusCode},
		{"a hidden resend may have made the answered one a replay", runAgain, false, []Verdict{twice(applied)}, recordstore.Succeeded, replaysemantics.ByStatusCode},
		{"a provider's signal decides, doubt or not", stored, true, []Verdict{unknown, replayed}, recordstore.Succeeded, replaysemantics.ByReplayHeader},
		{"no replay header on a resend: it executed now", stored, false, []Verdict{unknown, signalled}, recordstore.Succeeded, replaysemantics.ByNoReplayHeader},

		{"None of every delivery", runAgain, false, []Verdict{limited, rejected}, recordstore.NotExecuted, ""},
		{"no connection was ever obtained", runAgain, false, []Verdict{unreached}, recordstore.NotExecuted, ""},
		{"no connection, but an earlier claim's delivery is open", runAgain, true, []Verdict{unreached}, recordstore.Uncertain, ""},
		{"a 429 on a takeover says nothing of the earlier delivery", stored, true, []Verdict{limited}, recordstore.Uncertain, ""},
		{"a 401 after an unanswered delivery proves nothing", stored, false, []Verdict{unknown, rejected}, recordstore.Uncertain, ""},
		{"None after a hidden resend leaves one delivery unanswered", stored, false, []Verdict{twice(rejected)}, recordstore.Uncertain, ""},
		{"None after an earlier attempt's hidden resend", stored, false, []Verdict{twice(limited), rejected}, recordstore.Uncertain, ""},
		{"in flight on a first delivery is unknown", stored, false, []Verdict{unknown}, recordstore.Uncertain, ""},
		{"an adapter that reports nothing", stored, false, nil, recordstore.Uncertain, ""},

		{"a decline", runAgain, false, []Verdict{declined}, recordstore.Refused, replaysemantics.ByFirstDelivery},
		{"a decline under doubt where failures run again is not final", runAgain, true, []Verdict{declined}, recordstore.Uncertain, ""},
		{"a decline after an unanswered delivery where failures run again", runAgain, false, []Verdict{unknown, declined}, recordstore.Uncertain, ""},
		{"a decline under doubt where failures are stored", stored, true, []Verdict{declined}, recordstore.Refused, replaysemantics.ByStatusCode},
		{"a decline whose status marks an earlier run", runAgain, true, []Verdict{{Effect: EffectNone, Code: ErrRefused, Deliveries: 1, Evidence: replaysemantics.ByStatusCode}}, recordstore.Refused, replaysemantics.ByStatusCode},
		{"a decline that is marked as a replay", runAgain, true, []Verdict{replayedDecline}, recordstore.Refused, replaysemantics.ByReplayHeader},

		{"None without a code is no proof", runAgain, false, []Verdict{{Effect: EffectNone, Deliveries: 1}}, recordstore.Uncertain, ""},
		{"None beside a code that says unknown is no proof", runAgain, false, []Verdict{{Effect: EffectNone, Code: ErrInFlight, Deliveries: 1}}, recordstore.Uncertain, ""},
		{"the zero verdict is unknown, whatever it counts", stored, false, []Verdict{{}, rejected}, recordstore.Uncertain, ""},
		{"an effect without a delivery is none that was counted", runAgain, false, []Verdict{{Effect: EffectApplied}}, recordstore.Succeeded, replaysemantics.ByStatusCode},
		{"a label without evidence is no signal, and may be right", runAgain, false, []Verdict{{Effect: EffectApplied, Deliveries: 1, Label: OriginalReplay}}, recordstore.Succeeded, replaysemantics.ByStatusCode},
		{"evidence of another kind than an answer's", runAgain, true, []Verdict{{Effect: EffectApplied, Deliveries: 1, Evidence: replaysemantics.ByFirstDelivery}}, recordstore.Succeeded, replaysemantics.ByStatusCode},
		{"evidence that nobody knows", runAgain, true, []Verdict{{Effect: EffectApplied, Deliveries: 1, Evidence: "hearsay"}}, recordstore.Succeeded, replaysemantics.ByStatusCode},
	} {
		t.Run(tt.why, func(t *testing.T) {
			j := fold(tt.op, tt.doubt, tt.verdicts)
			if j.state != tt.state || j.Evidence != tt.evidence || j.Label != tt.evidence.Label() {
				t.Errorf("state %q, evidence %q, label %q; want %q, %q, %q",
					j.state, j.Evidence, j.Label, tt.state, tt.evidence, tt.evidence.Label())
			}
		})
	}
}

// What an adapter miscounts or words in its own way does not get out.
func TestFoldBounds(t *testing.T) {
	applied := Verdict{Effect: EffectApplied, Deliveries: 1}
	for _, tt := range []struct {
		why        string
		verdicts   []Verdict
		deliveries int
		outcome    Outcome
	}{
		{"nothing reported", nil, 1, ""},
		{"the zero verdict may have reached the wire", []Verdict{{}}, 1, ""},
		{"an effect was delivered", []Verdict{{Effect: EffectApplied, Deliveries: -3}}, 1, Done},
		{"a negative count", []Verdict{{Effect: EffectNone, Code: ErrUnavailable, Deliveries: -3}, applied}, 1, Done},
		{"deliveries after the effect", []Verdict{applied, {Deliveries: 2}}, 3, Done},
		{"an outcome that nobody knows is not paid", []Verdict{{Effect: EffectApplied, Deliveries: 1, Outcome: "great"}}, 1, Pending},
		{"a refusal has no outcome", []Verdict{{Effect: EffectNone, Code: ErrRefused, Deliveries: 1, Outcome: Done}}, 1, ""},
	} {
		j := fold(replaysemantics.Operation{}, false, tt.verdicts)
		if j.deliveries != tt.deliveries || j.Outcome != tt.outcome {
			t.Errorf("%s: %d deliveries, outcome %q; want %d, %q", tt.why, j.deliveries, j.Outcome, tt.deliveries, tt.outcome)
		}
	}
}

// A finding rests on a look-up or on the object's state, whatever a finder says.
func TestFindingsAreNeverNewExecutions(t *testing.T) {
	for given, want := range map[Evidence]Evidence{
		"": replaysemantics.ByLookup, replaysemantics.ByStateGuard: replaysemantics.ByStateGuard,
		replaysemantics.ByFirstDelivery: replaysemantics.ByLookup, "hearsay": replaysemantics.ByLookup,
	} {
		j := judged{state: recordstore.Uncertain}.found(Finding{Effect: EffectApplied, Evidence: given})
		if j.Evidence != want || j.Label != LatestStatus || j.Outcome != Done {
			t.Errorf("%q became %q, %q", given, j.Evidence, j.Label)
		}
	}
}

func TestProvidersTextIsBounded(t *testing.T) {
	long := make([]byte, 1000)
	for i := range long {
		long[i] = 'x'
	}
	for in, want := range map[string]string{
		"card_declined":          "card_declined",
		"a\x00b\nc\x1bd":         "abcd",
		"bad \xff utf8":          "bad  utf8",
		string(long):             string(long[:200]),
		string(long[:199]) + "é": string(long[:199]),
	} {
		if got := cleanText(in); got != want {
			t.Errorf("cleanText(%.20q…) = %.20q…, want %.20q…", in, got, want)
		}
	}
}
