package outbound

import (
	"slices"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

// class is what makes a difference in how an actor concludes.
type class struct {
	state                         recordstore.State
	lasting, found, look, blurred bool
	evidence                      Evidence
	fresh, replayed, inWindow     bool
	note                          byte
}

// settleDown forgets what makes no difference any more, so that states that
// behave alike are one.
func (m *model) settleDown(w *world) {
	l := &w.ledger
	l.lease, l.window, l.sent = max(l.lease, 0), max(l.window, 0), max(l.sent, -m.horizon)
	switch states[l.state] {
	case recordstore.Sending:
	case recordstore.Uncertain:
		l.lease = 0
	default:
		l.lease, l.window, l.sent, l.lookOnly, l.blurred = 0, 0, 0, false, false
	}
	if w.keyFor <= 0 {
		w.key, w.keyFor = unknownKey, 0
	}
	for i := range w.actors {
		m.settleActor(w, i)
	}
	if l.holder >= 0 && w.actors[l.holder].phase == idle {
		l.holder = -1
	}
	if w.actors[0].before(w.actors[1]) { // the two workers are alike
		w.actors[0], w.actors[1] = w.actors[1], w.actors[0]
		if l.holder == 0 || l.holder == 1 {
			l.holder = 1 - l.holder
		}
	}
	if w.astray[0] < w.astray[1] {
		w.astray[0], w.astray[1] = w.astray[1], w.astray[0]
	}
}

// settleActor takes the steps of an actor that can only do one thing, or whose
// doing makes no difference to anybody.
func (m *model) settleActor(w *world, i int) {
	a := &w.actors[i]
	stale := w.ledger.holder != int8(i)
	switch {
	case a.phase == idle:
		*a = actor{wire: -1}
		return
	case a.phase == waiting && a.wire < 0:
		a.learn(lost)
	case a.phase == sending && a.learned[0] == nothing && !m.mayWrite(*a):
		a.learn(unsent)
	case (a.phase == looking || a.phase == proved) && stale:
		a.phase = ready // it cannot send any more, and what it finds a webhook tells as well
	}
	if a.phase == ready || a.phase == sending && a.learned[0] != nothing && !m.mayWrite(*a) {
		if stale && !m.lateRefusals && m.judge(*a).state == recordstore.Refused && a.found == 0 {
			*a = actor{wire: -1}
			return
		}
		*a = m.likeOthers(*a)
		if stale && m.dropped(*w, i) {
			*a = actor{wire: -1}
		}
	}
}

// dropped reports whether what an actor has to say changes nothing, or no more
// than the webhook that may come at any time. Of the others only their deliveries
// count.
func (m *model) dropped(w world, i int) bool {
	for k := range w.actors {
		if k != i {
			w.actors[k] = actor{phase: min(w.actors[k].phase, waiting), wire: min(w.actors[k].wire, 0)}
		}
	}
	known, seen := m.drops[w]
	if !seen {
		known = m.drop(w, i)
		m.drops[w] = known
	}
	return known
}

func (m *model) drop(w world, i int) (same bool) {
	rest := w
	rest.actors[i] = actor{wire: -1}
	m.finish(w, i, "", m.judge(w.actors[i]), false, func(_ string, after world, wrong string) {
		same = wrong == "" && after == rest
		if wrong == "" && !same && w.effects > 0 {
			m.outside(rest, func(_ string, event world, _ string) { same = same || event == after })
		}
	})
	return same
}

// learn notes an answer.
func (a *actor) learn(l answer8) {
	a.phase, a.wire = sending, -1
	if a.learned[0] == nothing {
		a.learned[0] = l
	} else {
		a.learned[1] = l
	}
}

// likeOthers is the first actor that was met of those who conclude as a does.
func (m *model) likeOthers(a actor) actor {
	j := m.judge(a)
	c := class{
		state: j.state, lasting: j.lasting, found: a.found != 0, look: j.Look, blurred: j.blurred, evidence: j.Evidence,
		fresh: a.last().fresh(), replayed: a.last().replayed(), note: a.noted,
	}
	if j.state == recordstore.Refused {
		c.inWindow = a.window > 0
	} else {
		a.window = 0
	}
	first, known := m.alike[c]
	if !known {
		first, first.call, first.wire = a, 0, -1
		m.alike[c] = first
	}
	first.window = a.window
	return first
}

// last is the latest answer.
func (a actor) last() answer8 {
	if a.learned[1] != nothing {
		return a.learned[1]
	}
	return a.learned[0]
}

// before is any order of actors.
func (a actor) before(b actor) bool {
	bit := func(v bool) int8 {
		if v {
			return 1
		}
		return 0
	}
	fields := func(x actor) [12]int8 {
		return [12]int8{int8(x.phase), bit(x.doubt), bit(x.absent), bit(x.provable), bit(x.resendable), int8(x.found),
			int8(x.noted), x.call, x.window, x.wire, int8(x.learned[0]), int8(x.learned[1])}
	}
	x, y := fields(a), fields(b)
	return slices.Compare(x[:], y[:]) < 0
}
