package outbound

import (
	"context"
	"slices"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

const tick = time.Second

func (m *model) at(ticks int8) time.Time { return m.now.Add(time.Duration(ticks) * tick) }

func (m *model) ticks(t time.Time) int8 { return int8(t.Sub(m.now) / tick) }

// record is the row as recordstore knows it.
func (m *model) record(w world) recordstore.Record {
	l := w.ledger
	rec := recordstore.Record{
		ID: recordstore.ID{Day: 1}, Provider: "model", Account: "a/test", Derivation: "v1", Fingerprint: []byte{1},
		State: states[l.state], Noted: states[l.noted], LookOnly: l.lookOnly, Blurred: l.blurred, Fence: 1,
		LeaseEndsAt: m.at(l.lease), WindowEndsAt: m.at(l.window), SentUntil: m.at(l.sent), CreatedAt: m.now,
	}
	if l.holder >= 0 {
		rec.Holder = m.names[l.holder]
	}
	return rec
}

// put is w with rec in its ledger.
func (m *model) put(w world, rec recordstore.Record) world {
	w.ledger = row8{
		state: indexOf(rec.State), noted: indexOf(rec.Noted), lookOnly: rec.LookOnly, blurred: rec.Blurred,
		holder: int8(slices.Index(m.names[:], rec.Holder)), lease: m.ticks(rec.LeaseEndsAt), window: m.ticks(rec.WindowEndsAt), sent: m.ticks(rec.SentUntil),
	}
	return w
}

// finish hands a judgement in, as conclude does, and checks what is told.
func (m *model) finish(w world, i int, step string, j judged, last bool, then func(string, world, string)) {
	a := w.actors[i]
	l := m.ledgerOf(w)
	m.client.ledger = l
	o := *m.order
	if i == 2 {
		o.check = &check{kind: "lookup", last: last}
	}
	rec := l.rec
	rec.Holder, rec.Noted = m.names[i], states[a.noted]
	reply, failure := m.client.conclude(context.Background(), &o, rec, j)
	w = m.put(w, l.rec)
	w.actors[i] = actor{wire: -1}
	wrong := l.wrong
	if wrong == "" {
		wrong = m.told(w, a, reply, failure)
	}
	then(step, w, wrong)
}

// told checks what a caller is told against the truth.
func (m *model) told(w world, a actor, r *Reply, e *Error) string {
	if e != nil {
		if e.Effect == EffectNone {
			if why := m.untrueNone(w); why != "" {
				return "a caller is told " + string(e.Code) + " with effect none: " + why
			}
		}
		return ""
	}
	last := a.last()
	switch {
	case w.effects != 1:
		return "a caller is told of an effect that is not there"
	case r.Origin == FromProvider && r.Label == NewExecution && !last.fresh():
		return "a replay is labelled a new execution"
	case r.Origin == FromProvider && r.Label == OriginalReplay && !last.replayed():
		return "an execution is labelled a replay"
	}
	return ""
}

// modelLedger is the record of one state as a Store, for conclude.
type modelLedger struct {
	recordstore.Store // Nothing else is called.

	rec   recordstore.Record
	now   time.Time
	bad   mutation
	wrong string
}

func (m *model) ledgerOf(w world) *modelLedger {
	return &modelLedger{rec: m.record(w), now: m.now, bad: m.bad}
}

func (l *modelLedger) Settle(_ context.Context, s recordstore.Settlement) (recordstore.Record, error) {
	if l.bad == noFence {
		s.Holder, s.Fence, s.Noted = l.rec.Holder, l.rec.Fence, l.rec.Noted
	}
	next, err := recordstore.Settled(l.rec, s, l.now)
	l.write(next)
	return next, err
}

func (l *modelLedger) Report(_ context.Context, _ recordstore.ID, r recordstore.Result) (recordstore.Record, error) {
	before := l.rec
	if l.bad == eventOverLease {
		before.LeaseEndsAt = l.now
	}
	next := recordstore.Reported(before, r, l.now)
	if l.rec.State == recordstore.Sending && l.now.Before(l.rec.LeaseEndsAt) && next.State != recordstore.Sending {
		l.wrong = "the record was settled by another while its holder's lease is alive"
	}
	l.write(next)
	return next, nil
}

func (l *modelLedger) Get(context.Context, recordstore.ID) (recordstore.Record, time.Time, error) {
	return l.rec, l.now, nil
}

func (l *modelLedger) write(next recordstore.Record) {
	if wrong := moved(&l.rec, next); wrong != "" {
		l.wrong = wrong
	}
	l.rec = next
}
