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
	s.note("%s: %s -> %s", after.Operation, stateOf(before), stateOf(after))
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

// check holds ledger and answers against what the fakes know.
func (s *run) check() {
	for i, rec := range s.ledger.all() {
		c := s.commands[i]
		n := s.effects(c)
		switch {
		case n > 1:
			s.breaks("%s has %d effects", c.call.Operation, n)
		case rec.State == recordstore.Succeeded && n != 1:
			s.breaks("the ledger says that %s succeeded, and there is no effect", c.call.Operation)
		case (rec.State == recordstore.Refused || rec.State == recordstore.NotExecuted) && n != 0:
			s.breaks("the ledger says %s of %s, and the effect is there", rec.State, c.call.Operation)
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

func (s *run) checkAnswer(a answer) {
	n, op := s.effects(a.command), a.command.call.Operation
	if e, ok := errors.AsType[*outbound.Error](a.err); ok {
		// A process may sleep between its settlement and its answer, which is then of
		// that time.
		none := n == 0 || !s.noneAt[a.command.id].Before(a.begun)
		if e.Effect == outbound.EffectNone && !none || e.Effect == outbound.EffectApplied && n == 0 {
			s.breaks("%s ended in %s with effect %s, and it has %d effects", op, e.Code, e.Effect, n)
		}
		return
	}
	if n != 1 {
		s.breaks("%s was answered with %s, and it has %d effects", op, a.reply.Label, n)
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
		if r.RequestID == a.reply.RequestID && r.KeyHash == a.command.keyHash {
			return !r.Replayed && r.Status/100 == 2, true
		}
	}
	return false, false
}

// checkEnd wants nothing left uncertain but what the fakes made undecidable.
func (s *run) checkEnd() {
	for i, rec := range s.ledger.all() {
		c := s.commands[i]
		if unsettled(rec) {
			s.breaks("%s is left %s after everything was drained", c.call.Operation, stateOf(rec))
		}
		if rec.State == recordstore.ManualReview && s.effects(c) == 1 && !s.undecidable(c) {
			s.breaks("%s went to a person, and a look-up could have found it", c.call.Operation)
		}
	}
}

// undecidable reports whether an answer was a stored 500, of which nobody can tell
// what it left behind.
func (s *run) undecidable(c *command) bool {
	for _, r := range s.providers[c.provider].fake.Requests(c.call.Operation) {
		if r.KeyHash == c.keyHash && r.Fault == fakeprovider.Status500 {
			return true
		}
	}
	return false
}
