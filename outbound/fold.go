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
	blurred    bool // some answer makes absence no proof: a stored failure that says nothing, or one that speaks of another delivery
	lasting    bool // a refusal that a look-up saw: it stands whoever else delivers, and however long the provider knows the key
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
		verdicts = []Verdict{{Err: errors.New("the adapter reported nothing")}}
	}
	j := judged{state: recordstore.Uncertain, Verdict: verdicts[len(verdicts)-1]}
	open, decided := doubt, false
	for i, v := range verdicts {
		v.check()
		j.deliveries += v.deliveries()
		stored500 := op.Failures == replaysemantics.Stored && v.Answer != nil && v.Answer.Status == 500
		j.blurred = j.blurred || v.Effect == EffectUnknown && (stored500 || v.Look)
		if !decided && (v.Effect == EffectApplied || i == len(verdicts)-1) {
			j.Verdict, decided = v, true
		}
		if !decided {
			open = open || v.Effect == EffectUnknown || v.Deliveries > 1
		}
	}
	v := &j.Verdict
	alone := !open && v.Deliveries == 1 && v.Label == ""
	open = open || v.Deliveries > 1

	// The codec's own evidence that this answer is of an earlier run, by header or
	// by status, is the provider's mark of a replay.
	replayed := v.Evidence.Label() == OriginalReplay || v.Evidence.Label() == LatestStatus
	stays := replayed || op.Failures == replaysemantics.Stored
	switch {
	case v.Effect == EffectApplied:
		j.state = recordstore.Succeeded
	case v.Effect == EffectUnknown:
	case v.Code == ErrRefused && (!open || stays):
		j.state = recordstore.Refused
	case v.Code != ErrRefused && !open:
		j.state = recordstore.NotExecuted
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

// check takes back what a verdict may not say: None without a reason that proves
// it, evidence of another kind than an answer's own, an outcome without an effect.
// A label that lacks its evidence stays: it keeps the core from labelling.
func (v *Verdict) check() {
	if v.Effect == EffectNone {
		switch v.Code {
		case ErrRejected, ErrRefused, ErrAuth, ErrRateLimited, ErrUnavailable, ErrInvalid:
		default:
			v.Effect = EffectUnknown
		}
	}
	switch v.Evidence {
	case replaysemantics.ByReplayHeader, replaysemantics.ByNoReplayHeader, replaysemantics.ByStatusCode,
		replaysemantics.ByLookup, replaysemantics.ByStateGuard:
		v.Label = v.Evidence.Label()
	case replaysemantics.ByFirstDelivery:
		v.Evidence = "" // the core's own to give
	case "":
	default:
		v.Evidence, v.Label = "", LatestStatus
	}
	v.Outcome = v.Outcome.of(v.Effect)
	v.Deliveries = max(0, v.Deliveries)
}

// deliveries counts at least one request for an answer and for what is unknown.
func (v *Verdict) deliveries() int {
	if v.Effect != EffectNone || v.Answer != nil {
		return max(1, v.Deliveries)
	}
	return v.Deliveries
}

// of is the outcome of an effect: none without one, Done if nothing is said, and
// Pending for a word that nobody knows, since applied is not paid.
func (o Outcome) of(e Effect) Outcome {
	switch {
	case e != EffectApplied:
		return ""
	case o == "":
		return Done
	case o == Done || o == Partial:
		return o
	}
	return Pending
}

// found makes a finding the judgement of a claim.
func (j judged) found(f Finding) judged {
	switch {
	case f.Effect == EffectApplied:
		j.state = recordstore.Succeeded
	case f.Effect == EffectNone && f.Code == ErrRefused:
		j.state, j.lasting = recordstore.Refused, true
	default:
		return j
	}
	v := Verdict{
		Effect: f.Effect, Code: f.Code, Evidence: f.Evidence, Outcome: f.Outcome.of(f.Effect),
		ExternalRef: f.ExternalRef, ObjectStatus: f.ObjectStatus, ProviderCode: f.ProviderCode,
		RequestID: f.RequestID, Answer: f.Answer,
	}
	if v.Evidence != replaysemantics.ByStateGuard {
		v.Evidence = replaysemantics.ByLookup
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
func cleanText(s string) string { return clean(s, 200) }

// clean keeps printable text of at most this many bytes.
func clean(s string, most int) string {
	s = strings.ToValidUTF8(s[:min(len(s), 4*most)], "")
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, s)
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "")
	}
	return s
}

// errorCode is how an outcome's code is stored, and providerCode reads the provider's back.
func errorCode(code Code, provider string) string {
	if provider == "" {
		return string(code)
	}
	return string(code) + ":" + provider
}

func providerCode(stored string) string {
	_, provider, _ := strings.Cut(stored, ":")
	return provider
}
