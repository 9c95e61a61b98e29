package outbound

import (
	"errors"
	"strings"
	"unicode"

	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/replaysemantics"
)

// judged is what all attempts of one claim teach together.
type judged struct {
	Verdict    // of the attempt that decides
	state      recordstore.State
	deliveries int  // of all attempts
	blurred    bool // some answer was a stored failure that says nothing
}

// fold applies the rules of proof to the verdicts of one claim.
//
// A delivery is open when it may have executed and its answer is not known:
// doubt (an earlier claim's), an attempt that was answered Unknown, or a hidden
// resend of net/http, which leaves one of several deliveries unanswered. While
// one is open, None proves nothing of the command, and a refusal is final only
// if the provider stores failures or marked this one as a replay.
func fold(op replaysemantics.Operation, doubt bool, verdicts []Verdict) judged {
	if len(verdicts) == 0 {
		verdicts = []Verdict{{Deliveries: 1, Err: errors.New("the adapter reported nothing")}}
	}
	j := judged{state: recordstore.Uncertain}
	open := doubt
	for i, v := range verdicts {
		j.deliveries += v.Deliveries
		j.blurred = j.blurred || op.Failures == replaysemantics.Stored && v.Effect == EffectUnknown && v.Answer != nil && v.Answer.Status == 500
		last := i == len(verdicts)-1
		if v.Effect == EffectApplied || last {
			j.Verdict = v
			break
		}
		open = open || v.Deliveries > 0 && (v.Effect == EffectUnknown || v.Deliveries > 1)
	}
	v := &j.Verdict
	alone := !open && v.Deliveries == 1
	open = open || v.Deliveries > 1

	switch v.Effect {
	case EffectApplied:
		j.state = recordstore.Succeeded
		if v.Outcome == "" {
			v.Outcome = Done
		}
	case EffectNone:
		// The codec's own evidence that this answer is of an earlier run, by header or
		// by status, is the provider's mark of a replay.
		replayed := v.Evidence.Label() == OriginalReplay || v.Evidence.Label() == LatestStatus
		switch {
		case v.Code == ErrRefused && (!open || replayed || op.Failures == replaysemantics.Stored):
			j.state = recordstore.Refused
		case v.Code != ErrRefused && !open:
			j.state = recordstore.NotExecuted
		}
	}
	switch {
	case !j.state.Final():
		v.Evidence = ""
	case v.Evidence == "" && alone:
		v.Evidence = replaysemantics.ByFirstDelivery
	case v.Evidence == "":
		v.Evidence = replaysemantics.ByStatusCode // two labels are possible: the weaker one
	}
	v.Label = v.Evidence.Label()
	v.clean()
	return j
}

// found makes a finding the judgement of a claim.
func (j judged) found(f Finding) judged {
	switch {
	case f.Effect == EffectApplied:
		j.state = recordstore.Succeeded
	case f.Effect == EffectNone && f.Code == ErrRefused:
		j.state = recordstore.Refused
	default:
		return j
	}
	v := Verdict{
		Effect: f.Effect, Code: f.Code, Evidence: f.Evidence, Outcome: f.Outcome,
		ExternalRef: f.ExternalRef, ObjectStatus: f.ObjectStatus, ProviderCode: f.ProviderCode,
		RequestID: f.RequestID, Answer: f.Answer,
	}
	if v.Evidence == "" {
		v.Evidence = replaysemantics.ByLookup
	}
	if v.Outcome == "" && v.Effect == EffectApplied {
		v.Outcome = Done
	}
	v.Label = v.Evidence.Label()
	v.clean()
	j.Verdict = v
	return j
}

// clean bounds what the provider worded, since it is stored in clear and logged.
func (v *Verdict) clean() {
	for _, s := range []*string{&v.ExternalRef, &v.ObjectStatus, &v.ProviderCode, &v.RequestID} {
		*s = cleanText(*s)
	}
}

// cleanText keeps printable text of at most 200 bytes.
func cleanText(s string) string {
	s = strings.ToValidUTF8(s, "")
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, s)
	if len(s) > 200 {
		s = strings.ToValidUTF8(s[:200], "")
	}
	return s
}

// errorCode is how an outcome's code is stored, and readCode reads it back.
func errorCode(code Code, provider string) string {
	if provider == "" {
		return string(code)
	}
	return string(code) + ":" + provider
}

func readCode(stored string) (code Code, provider string) {
	c, provider, _ := strings.Cut(stored, ":")
	return Code(c), provider
}
