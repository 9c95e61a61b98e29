package simulation

import (
	"context"
	"errors"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

// shadow lets an SDK send a command once, under a key of its own, as before the
// cut-over; the ledger records it. What it could not record is not sent here: of
// that nothing is promised.
func (s *run) shadow() {
	i, w := s.someWorker()
	c := s.commands[s.luck.IntN(len(s.commands))]
	if w == nil || !c.row.HasKey() || c.shadowed || c.unkept {
		return
	}
	c.shadowed = true
	s.note("worker %d lets the SDK send %s", i, c.call.Operation)
	w.begin(func() {
		w.clients[c.provider].Shadow(w.ctx, c.call, func(ctx context.Context) outbound.Verdict {
			rec, _, err := s.ledger.store.Get(ctx, c.id)
			if err != nil || rec.Derivation != recordstore.Foreign || w.view.gone() {
				return outbound.Verdict{Effect: outbound.EffectNone, Code: outbound.ErrUnavailable, Err: errNotRecorded}
			}
			verdicts := w.adapters[c.provider].Send(ctx, &outbound.Delivery{
				Operation: c.row, Account: s.providers[c.provider].account, Message: c.call.Message, Key: c.sdk,
				Retry: outbound.Retry{Attempts: 1, AttemptTimeout: 5 * time.Second},
			})
			return verdicts[len(verdicts)-1] // the one before it, if any, was a 401
		})
	})
}

var errNotRecorded = errors.New("simulation: the ledger has no record of what the SDK sends")

// erase removes the bodies of a command now.
func (s *run) erase() {
	i := s.luck.IntN(len(s.commands))
	c := s.commands[i]
	err := s.observer.clients[c.provider].Erase(context.Background(), c.call.Command)
	s.note("the bodies of %s are erased: %v", c.call.Operation, err == nil)
	rec := s.ledger.all()[i]
	if err == nil && len(rec.Request)+len(rec.ResponseHeader)+len(rec.ResponseBody) > 0 {
		s.breaks("%s was erased and still holds bodies", c.call.Operation)
	}
	c.erased = c.erased || err == nil
}

// purge removes what retention allows, sometimes at the end of a long silence.
func (s *run) purge() {
	if s.luck.IntN(2) == 0 {
		s.note("evidence ends")
		time.Sleep(evidenceFor + 48*time.Hour)
		s.rest()
	}
	var done recordstore.Purged
	err := s.ledger.step(anybody, func() (err error) {
		done, err = s.ledger.store.Purge(context.Background(), len(s.commands))
		return err
	})
	s.note("purged %+v, %v", done, err == nil)
}
