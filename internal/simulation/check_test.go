package simulation

import (
	"errors"
	"time"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

// watch holds every change of a record against the table of moves.
func (s *run) watch(before, after recordstore.Record, by string) {
	if after.ID == (recordstore.ID{}) {
		s.deleted(before)
		return
	}
	s.note("%s: %s -> %s", after.Operation, stateOf(before), stateOf(after))
	if s.gone[after.ID] {
		s.breaks("%s was forgotten, and is written anew", after.Operation)
	}
	if before.State != after.State && !recordstore.LegalMove(before.State, after.State) {
		s.breaks("%s moved from %q to %q", after.Operation, before.State, after.State)
	}
	if after.State == recordstore.NotExecuted {
		s.mu.Lock()
		s.noneAt[after.ID] = time.Now()
		s.mu.Unlock()
	}
	live := before.State == recordstore.Sending && time.Now().Before(before.LeaseEndsAt)
	switch {
	case live && by == outsiders && after.State != recordstore.Sending:
		s.breaks("%s was settled by an outsider while its holder's lease is alive", after.Operation)
	case by != anybody && by != outsiders && by != before.Holder:
		s.breaks("%s was settled by a holder who had lost it", after.Operation)
	}
}

// deleted holds a deletion against what retention allows.
func (s *run) deleted(rec recordstore.Record) {
	s.note("%s: %s -> deleted", rec.Operation, rec.State)
	s.gone[rec.ID] = true
	if unsettled(rec) || rec.State == recordstore.ManualReview || rec.ID.Day == 0 || time.Now().Before(rec.EvidenceUntil) {
		s.breaks("%s of day %d was deleted as %s, with evidence until %v", rec.Operation, rec.ID.Day, rec.State, rec.EvidenceUntil)
	}
}

// check holds ledger and answers against what the fakes know.
func (s *run) check() {
	for i, rec := range s.ledger.all() {
		c := s.commands[i]
		n := len(s.effects(c))
		switch {
		case n > 1 && !s.allowedTwice(c):
			s.breaks("%s has %d effects", c.call.Operation, n)
		case rec.State == recordstore.Succeeded && n == 0:
			s.breaks("the ledger says that %s succeeded, and there is no effect", c.call.Operation)
		case (rec.State == recordstore.Refused || rec.State == recordstore.NotExecuted) && n != 0 && !c.unkept:
			s.breaks("the ledger says %s of %s, and the effect is there", rec.State, c.call.Operation)
		case rec.Derivation == recordstore.Foreign && !c.unkept && s.ours(c) > 0:
			s.breaks("%s was sent by its SDK, and by us under another key", c.call.Operation)
		}
	}
	s.mu.Lock()
	told := s.told
	s.told = nil
	s.mu.Unlock()
	for _, a := range told {
		s.checkAnswer(a)
	}
}

// allowedTwice reports whether more than one effect is what was promised: what is
// sent without the ledger has its provider's window for protection, and no more.
func (s *run) allowedTwice(c *command) bool {
	all := s.effects(c)
	for i := range all[1:] {
		if all[i+1].At.Sub(all[i].At) < c.row.Window-lateness {
			return false
		}
	}
	return c.unkept && c.row.Window > 0
}

// ours is how many requests of a command carried the ledger's key.
func (s *run) ours(c *command) (n int) {
	for _, r := range s.providers[c.provider].fake.Requests(c.call.Operation) {
		if c.row.HasKey() && r.KeyHash == hashOf(c.key) {
			n++
		}
	}
	return n
}

func (s *run) checkAnswer(a answer) {
	n, op := len(s.effects(a.command)), a.command.call.Operation
	if e, ok := errors.AsType[*outbound.Error](a.err); ok {
		// A process may sleep between its settlement and its answer, which is then of
		// that time.
		none := n == 0 || a.command.unkept || !s.noneAt[a.command.id].Before(a.begun)
		if e.Effect == outbound.EffectNone && !none || e.Effect == outbound.EffectApplied && n == 0 {
			s.breaks("%s ended in %s with effect %s, and it has %d effects", op, e.Code, e.Effect, n)
		}
		return
	}
	if n == 0 {
		s.breaks("%s was answered with %s, and it has no effect", op, a.reply.Label)
		return
	}
	if a.reply.Origin == outbound.FromLedger {
		if a.reply.Label == outbound.NewExecution {
			s.breaks("%s: a copy of the ledger is labelled a new execution", op)
		}
		return
	}
	executed, known := s.executed(a)
	switch {
	case a.reply.Label == "":
		s.breaks("%s was answered by the provider without a label", op)
	case a.reply.Label == outbound.NewExecution && !(known && executed):
		s.breaks("%s is labelled a new execution by %s, and the answer's request did not execute", op, a.reply.Evidence)
	case a.reply.Label == outbound.OriginalReplay && !(known && !executed):
		s.breaks("%s is labelled a replay by %s, and the answer's request executed", op, a.reply.Evidence)
	}
}

// executed reports whether the answer is that of the very request that executed.
func (s *run) executed(a answer) (executed, known bool) {
	for _, r := range s.providers[a.command.provider].fake.Requests(a.command.call.Operation) {
		if r.RequestID == a.reply.RequestID && a.command.owns(r.Operation, r.KeyHash) {
			return !r.Replayed && r.Status/100 == 2, true
		}
	}
	return false, false
}

// checkEnd wants nothing left uncertain but what the fakes, or the schedule, made
// undecidable.
func (s *run) checkEnd() {
	for i, rec := range s.ledger.all() {
		c := s.commands[i]
		if s.inTheAir(c) {
			s.breaks("%s is left %s after everything was drained", c.call.Operation, stateOf(rec))
		}
		if rec.State == recordstore.ManualReview && len(s.effects(c)) == 1 && !s.undecidable(c) {
			s.breaks("%s went to a person, and a look-up could have found it", c.call.Operation)
		}
	}
}

// undecidable reports whether no look-up must find the command: it has neither key
// nor mark, or was sent when the ledger knew of nothing, its request was erased, or
// an answer was a stored 500, of which nobody can tell what it left behind.
func (s *run) undecidable(c *command) bool {
	if !c.row.HasKey() || c.shadowed || c.unkept || c.erased {
		return true
	}
	for _, r := range s.providers[c.provider].fake.Requests(c.call.Operation) {
		if c.owns(r.Operation, r.KeyHash) && r.Fault == fakeprovider.Status500 {
			return true
		}
	}
	return false
}
