package outbound

import (
	"github.com/seed-6b5e302b/samekey/replaysemantics"
)

// arrive is what the provider may make of a delivery: the states after it, each
// with the answer that it gives.
func (m *model) arrive(w world, then func(w world, a answer8)) {
	then(w, limited)
	then(w, lost)
	switch w.key {
	case keptSuccess:
		then(w, replayed)
		return
	case keptRefusal:
		then(w, declinedReplayed)
		return
	case keptFailure:
		then(w, failedReplay)
		return
	}
	stored := m.failures == replaysemantics.Stored
	remember := func(w world, k keyMemory) world {
		w.key, w.keyFor = k, m.window
		return w
	}
	applied := w
	applied.effects++
	then(remember(applied, keptSuccess), executed)

	if !stored {
		then(remember(applied, keptSuccess), lost)
		then(w, declined)
		return
	}
	then(remember(applied, keptFailure), failed)
	then(remember(w, keptFailure), failed)
	then(remember(w, keptRefusal), declined)
	object := w
	object.refused = true
	then(remember(object, keptRefusal), declined)
}

// verdict is an answer as a codec judges it.
func (m *model) verdict(a answer8) Verdict {
	stored := m.failures == replaysemantics.Stored
	signal := func(v Verdict, e Evidence) Verdict {
		if stored {
			v.Evidence = e
		}
		return v
	}
	applied := Verdict{Effect: EffectApplied, Deliveries: 1}
	refused := Verdict{Effect: EffectNone, Code: ErrRefused, Deliveries: 1}
	twice := func(v Verdict) Verdict { v.Deliveries = 2; return v }
	switch a {
	case executed:
		return signal(applied, replaysemantics.ByNoReplayHeader)
	case replayed:
		return signal(applied, replaysemantics.ByReplayHeader)
	case executedTwice:
		return twice(m.verdict(executed))
	case replayedTwice:
		return twice(m.verdict(replayed))
	case declined:
		return signal(refused, replaysemantics.ByNoReplayHeader)
	case declinedReplayed:
		return signal(refused, replaysemantics.ByReplayHeader)
	case declinedTwice:
		return twice(m.verdict(declined))
	case limited:
		return Verdict{Effect: EffectNone, Code: ErrRateLimited, Deliveries: 1, Again: true}
	case failed:
		return Verdict{Deliveries: 1, Answer: &Answer{Status: 500}}
	case failedReplay:
		return Verdict{Deliveries: 1, Look: true, Answer: &Answer{Status: 500}}
	case unsent:
		return Verdict{Effect: EffectNone, Code: ErrUnavailable}
	}
	return Verdict{Deliveries: 1, Again: true}
}

// again reports whether another attempt may follow an answer.
func (m *model) again(a answer8) bool { return m.verdict(a).Again }

// twiceOf is an answer to one of two deliveries that net/http made of one.
func twiceOf(a answer8) answer8 {
	switch a {
	case executed:
		return executedTwice
	case replayed:
		return replayedTwice
	case declined:
		return declinedTwice
	}
	return nothing
}

func (a answer8) fresh() bool    { return a == executed || a == executedTwice }
func (a answer8) replayed() bool { return a == replayed || a == replayedTwice }
