package outbound

import (
	"context"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/replaysemantics"
)

// model is the decision table under one set of rules.
type model struct {
	rules
	client *Client
	order  *order
	op     replaysemantics.Operation
	now    time.Time
	names  [3]string

	alike map[class]actor // The first actor of each class: those who conclude alike are one.
	drops map[world]bool  // What dropped found out.
}

func newModel(t *testing.T, r rules) *model {
	t.Helper()
	m := &model{rules: r, alike: map[class]actor{}, drops: map[world]bool{}, now: time.Date(2026, time.November, 30, 12, 0, 0, 0, time.UTC), names: [3]string{"first", "second", "reconciler"}}
	m.op = replaysemantics.Operation{Name: "pay.once", Failures: r.failures, Horizon: time.Duration(r.horizon) * tick}
	tel, err := newTelemetry(Telemetry{}, "model", nil)
	if err != nil {
		t.Fatal(err)
	}
	m.client = &Client{core: &core{tel: tel, profile: Profile{Provider: "model"}}}
	if err := m.client.opts.complete(); err != nil {
		t.Fatal(err)
	}
	m.order = &order{row: row{Operation: m.op}}
	return m
}

// steps calls then with every state that can follow w. wrong is what the step
// itself breaks.
func (m *model) steps(w world, then func(step string, w world, wrong string)) {
	then("time passes", m.tick(w), "")
	for i := range w.actors {
		m.act(w, i, then)
	}
	for i, left := range w.astray {
		if left >= 0 {
			rest := w
			rest.astray[i] = -1
			m.arrive(rest, func(w world, _ answer8) { then("a delivery astray arrives", w, "") })
		}
	}
	m.outside(w, then)
}

// tick lets time pass. A delivery that is astray when the provider forgets a
// failure is not applied any more: the memory would have to end in the very
// minutes between two deliveries.
func (m *model) tick(w world) world {
	down := func(n *int8, floor int8) { *n = max(*n-1, floor) }
	down(&w.ledger.lease, 0)
	down(&w.ledger.window, 0)
	down(&w.ledger.sent, -m.horizon)
	for i := range w.actors {
		down(&w.actors[i].call, 0)
		down(&w.actors[i].window, 0)
		down(&w.actors[i].wire, -1)
	}
	for i := range w.astray {
		down(&w.astray[i], -1)
	}
	down(&w.keyFor, 0)
	if w.keyFor == 0 && (w.key == keptRefusal || w.key == keptFailure) {
		for i := range w.actors {
			w.actors[i].wire = -1
		}
		w.astray = [2]int8{-1, -1}
	}
	return w
}

// outside are webhooks and people. People tell the truth.
func (m *model) outside(w world, then func(string, world, string)) {
	if w.ledger.state == 0 {
		return
	}
	rec := m.record(w)
	report := func(step string, fact recordstore.State) {
		l := m.ledgerOf(w)
		after, err := l.Report(context.Background(), rec.ID, recordstore.Result{State: fact})
		if err != nil {
			panic(err)
		}
		then(step, m.put(w, after), l.wrong)
	}
	if w.effects > 0 {
		report("a webhook reports the effect", recordstore.Succeeded)
	}
	if w.refused {
		report("a webhook reports the refusal", recordstore.Refused)
	}
	verdict := func(state recordstore.State) {
		v := recordstore.Verdict{ID: rec.ID, Version: rec.Version, Result: recordstore.Result{State: state}}
		if after, err := recordstore.Resolved(rec, v, m.now); err == nil {
			then("a person says "+string(state), m.put(w, after), "")
		}
	}
	switch {
	case w.effects > 0:
		verdict(recordstore.Succeeded)
	case m.untrueNone(w) == "":
		verdict(recordstore.Refused)
		if !w.refused {
			verdict(recordstore.NotExecuted)
		}
	}
}

// act are the next steps of one actor.
func (m *model) act(w world, i int, then func(string, world, string)) {
	a := &w.actors[i]
	switch a.phase {
	case idle:
		if i == 2 {
			m.takeDue(w, then)
		} else {
			m.claim(w, i, then)
		}
		return
	case sending:
		m.write(w, i, then)
		m.renew(w, i, then)
		if a.learned[0] != nothing {
			m.conclude(w, i, then)
			m.lookAfter(w, i, then)
		}
	case waiting:
		m.await(w, i, then)
		m.renew(w, i, then)
	case looking:
		m.look(w, i, then)
	case proved:
		m.follow(w, i, then)
	case ready:
		m.conclude(w, i, then)
	}
	m.die(w, i, then)
}

func (m *model) claim(w world, i int, then func(string, world, string)) {
	c := recordstore.Claim{
		ID: recordstore.ID{Day: 1}, Provider: "model", Account: "a/test", Derivation: "v1", Derivations: []string{"v1"}, Fingerprints: [][]byte{{1}},
		Holder: m.names[i], Lease: time.Duration(m.lease) * tick, Window: time.Duration(m.window-m.margin) * tick,
	}
	var found *recordstore.Record
	if w.ledger.state != 0 {
		rec := m.record(w)
		found = &rec
	}
	next, d := recordstore.Take(c, found, 0, m.now)
	if d != recordstore.Send && d != recordstore.Lookup {
		return
	}
	takeover := found != nil && found.State != recordstore.NotExecuted
	if m.bad == slidingWindow && takeover {
		next.WindowEndsAt = m.at(m.window - m.margin)
	}
	a := m.claimed(next)
	switch {
	case next.Noted != "":
		a.phase = ready
	case d == recordstore.Send:
		a.phase = sending
	case m.bad == blindResend && !next.LookOnly:
		next.SentUntil = next.LeaseEndsAt
		a.phase, a.window = sending, m.window
	default:
		a.phase = looking
	}
	w = m.put(w, next)
	w.actors[i] = a
	then("a worker claims", w, moved(found, next))
}

// claimed is an actor that has just taken rec.
func (m *model) claimed(rec recordstore.Record) actor {
	provable := rec
	if m.bad == noHorizon {
		provable.SentUntil = m.at(-m.horizon)
	}
	return actor{
		doubt: rec.Doubt, noted: indexOf(rec.Noted), call: m.lease, window: m.ticks(rec.WindowEndsAt), wire: -1,
		provable: m.client.absent(m.order, provable, Finding{Effect: EffectNone}, m.now),
	}
}

func moved(from *recordstore.Record, to recordstore.Record) string {
	state := recordstore.State("")
	if from != nil {
		state = from.State
	}
	if state != to.State && !recordstore.LegalMove(state, to.State) {
		return "illegal move from " + string(state) + " to " + string(to.State)
	}
	return ""
}

// takeDue is the reconciler's claim. When a record is due makes no difference to
// safety: it may be at any time.
func (m *model) takeDue(w world, then func(string, world, string)) {
	if w.ledger.state == 0 {
		return
	}
	rec := m.record(w)
	rec.DueAt = m.now
	q := recordstore.DueQuery{
		Provider: "model", Mode: "test", Derivations: []string{"v1"}, Fingerprints: []byte{1}, Holder: m.names[2],
		Lease: time.Duration(m.lease) * tick, Limit: 1,
	}
	next, ok := recordstore.TakenDue(rec, q, m.now)
	if !ok {
		return
	}
	a := m.claimed(next)
	a.phase = looking
	if next.Noted != "" {
		a.phase = ready
	}
	a.resendable = a.window > m.attempt && !next.LookOnly
	w = m.put(w, next)
	w.actors[2] = a
	then("the reconciler takes the record", w, moved(&rec, next))
}

// write sends, where lease and window outlive the attempt.
func (m *model) write(w world, i int, then func(string, world, string)) {
	a := &w.actors[i]
	if a.learned[0] == nothing {
		none := w
		none.actors[i].phase, none.actors[i].learned[0] = ready, unsent
		then("an attempt is not made", none, "")
	}
	if m.mayWrite(*a) {
		a.phase, a.wire = waiting, max(a.call, w.ledger.sent)+m.horizon-1
		then("a request is written", w, "")
	}
}

// mayWrite is the check right before an attempt.
func (m *model) mayWrite(a actor) bool {
	worth := a.learned[0] == nothing || a.learned[1] == nothing && m.again(a.learned[0])
	return worth && a.call >= m.attempt && (a.absent || a.window >= m.attempt)
}

// await is what becomes of the delivery that an actor waits for.
func (m *model) await(w world, i int, then func(string, world, string)) {
	learn := func(step string, w world, l answer8) {
		w.actors[i].learn(l)
		then(step, w, "")
	}
	learn("the delivery is dropped", w, lost)
	left := w.actors[i].wire
	if left < 0 {
		return
	}
	awake := w.actors[i].call > 0 || w.ledger.holder == int8(i)
	m.arrive(w, func(w world, l answer8) {
		if awake || m.lateAnswers {
			learn("the delivery arrives and is answered", w, l)
		}
		learn("the delivery arrives and its answer is lost", w, lost)
	})
	if w.astray[1] >= 0 {
		return
	}
	w.astray[1] = left
	learn("the delivery goes astray", w, lost)
	m.arrive(w, func(w world, l answer8) {
		if l = twiceOf(l); l != nothing && (awake || m.lateAnswers) {
			learn("net/http sends twice, one delivery goes astray and the other is answered", w, l)
		}
	})
}

func (m *model) renew(w world, i int, then func(string, world, string)) {
	if w.actors[i].call == 0 {
		return
	}
	next, err := recordstore.Renewed(m.record(w), m.names[i], 1, time.Duration(m.lease)*tick, m.now)
	if err != nil {
		return
	}
	then("the lease is renewed", m.put(w, next), "")
}

// lookAfter is the look-up that follows an answer which teaches nothing more.
func (m *model) lookAfter(w world, i int, then func(string, world, string)) {
	a := &w.actors[i]
	j := m.judge(*a)
	if j.state == recordstore.Uncertain && j.Look && w.truth() != 0 {
		a.phase, a.found = ready, w.truth()
		then("a look-up finds "+string(states[a.found]), w, "")
	}
}

// truth is what a look-up finds; 0 for nothing.
func (w world) truth() byte {
	switch {
	case w.effects > 0:
		return indexOf(recordstore.Succeeded)
	case w.refused:
		return indexOf(recordstore.Refused)
	}
	return 0
}

func (m *model) look(w world, i int, then func(string, world, string)) {
	a := &w.actors[i]
	switch {
	case w.truth() != 0:
		found := w
		found.actors[i].phase, found.actors[i].found = ready, w.truth()
		then("a look-up finds "+string(states[w.truth()]), found, "")
	case a.provable:
		absent := w
		absent.actors[i].phase = proved
		then("a look-up finds nothing", absent, "")
	}
	if a.resendable {
		m.mark(w, i, "the reconciler resends", actor{doubt: true}, then)
	}
	blind := w
	blind.actors[i].phase = ready
	then("a look-up cannot tell", blind, "")
}

// follow is what may follow a proof of absence.
func (m *model) follow(w world, i int, then func(string, world, string)) {
	m.mark(w, i, "a send follows the proof of absence", actor{absent: true}, then)
	if i == 2 {
		j := judged{state: recordstore.NotExecuted, Verdict: Verdict{Effect: EffectNone, Code: ErrExpired}}
		m.finish(w, i, "the reconciler concludes the proof of absence", j, false, then)
	}
}

// mark renews a lease that was taken to look up only, before it sends.
func (m *model) mark(w world, i int, step string, to actor, then func(string, world, string)) {
	next, err := recordstore.Renewed(m.record(w), m.names[i], 1, time.Duration(m.lease)*tick, m.now)
	if err != nil {
		w.actors[i].phase = ready
		then("the lease is over before a send", w, "")
		return
	}
	w = m.put(w, next)
	to.phase, to.call, to.window, to.wire = sending, m.lease, w.actors[i].window, -1
	w.actors[i] = to
	then(step, w, "")
}

// die is the end of a process: its delivery is dropped or goes astray.
func (m *model) die(w world, i int, then func(string, world, string)) {
	left := w.actors[i].wire
	w.actors[i] = actor{wire: -1}
	then("an actor dies", w, "")
	if left >= 0 && w.astray[1] < 0 {
		w.astray[1] = left
		then("an actor dies, its delivery goes astray", w, "")
	}
}

// judge folds what an actor learned.
func (m *model) judge(a actor) judged {
	if a.learned[0] == nothing {
		return judged{state: recordstore.Uncertain}.found(finding(a.found))
	}
	op, doubt := m.op, a.doubt
	var verdicts []Verdict
	for _, l := range a.learned {
		if l != nothing {
			verdicts = append(verdicts, m.verdict(l))
		}
	}
	switch {
	case m.bad == noDoubt, m.bad == noneOn429 && a.learned == [2]answer8{limited}:
		doubt = false
	case m.bad == finalRefusal:
		op.Failures = replaysemantics.Stored
	}
	return fold(op, doubt, verdicts).found(finding(a.found))
}

// finding is what a look-up found.
func finding(found byte) Finding {
	switch states[found] {
	case recordstore.Succeeded:
		return Finding{Effect: EffectApplied}
	case recordstore.Refused:
		return Finding{Effect: EffectNone, Code: ErrRefused}
	}
	return Finding{}
}

func (m *model) conclude(w world, i int, then func(string, world, string)) {
	j := m.judge(w.actors[i])
	m.finish(w, i, "an actor concludes", j, false, then)
	if i == 2 && j.state == recordstore.Uncertain {
		m.finish(w, i, "the reconciler gives up", j, true, then)
	}
}
