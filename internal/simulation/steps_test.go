package simulation

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
	fakepaypal "github.com/seed-6b5e302b/samekey/internal/fakeprovider/paypal"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/paypal"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

// step is one choice of the schedule. Everything that it set going has come to
// rest when it returns: it waits for the clock, or for the schedule.
func (s *run) step() {
	switch n := s.luck.IntN(100); {
	case n < 2:
		s.plan()
	case n < 4:
		s.shadow()
	case n < 30:
		s.startCall()
	case n < 45:
		s.startSweep()
	case n < 60:
		s.wake()
	case n < 64:
		s.crash()
	case n < 82:
		s.letTimePass()
	case n < 91:
		s.webhook()
	case n < 93:
		s.person()
	case n < 94:
		s.erase()
	case n < 95:
		s.purge()
	default:
		s.pay()
	}
	s.rest()
	s.check()
}

// someWorker is a worker without work; nil if there is none.
func (s *run) someWorker() (int, *worker) {
	for _, i := range s.luck.Perm(len(s.workers)) {
		if s.workers[i].idle() {
			return i, s.workers[i]
		}
	}
	return 0, nil
}

// plan writes a command down before anybody sends it.
func (s *run) plan() {
	i, w := s.someWorker()
	c := s.commands[s.luck.IntN(len(s.commands))]
	if w == nil {
		return
	}
	call := c.call
	if call.Command.NotAfter.IsZero() {
		call.Command.NotAfter = outbound.Forever
	}
	s.note("worker %d plans %s", i, call.Operation)
	w.begin(func() { _ = w.clients[c.provider].Plan(w.ctx, w.view, call) }) // a plan that failed is no plan
}

// answer is what a call returned.
type answer struct {
	command *command
	begun   time.Time
	reply   *outbound.Reply
	err     error
}

func (s *run) startCall() {
	i, w := s.someWorker()
	c := s.commands[s.luck.IntN(len(s.commands))]
	if w == nil {
		return
	}
	ctx := w.ctx
	if s.keysOnly && c.row.HasKey() && !c.shadowed && s.luck.IntN(4) == 0 {
		ctx = context.WithValue(ctx, withoutLedger{}, true)
		c.unkept = true
	}
	s.note("worker %d calls %s, without the ledger %v", i, c.call.Operation, ctx != w.ctx)
	w.begin(func() {
		begun := time.Now()
		reply, err := w.clients[c.provider].Do(ctx, c.call)
		if w.view.gone() {
			return
		}
		s.mu.Lock()
		s.told = append(s.told, answer{c, begun, reply, err})
		s.mu.Unlock()
		s.note("worker %d: %s: %s", i, c.call.Operation, words(reply, err))
	})
}

func words(r *outbound.Reply, err error) string {
	if e, ok := errors.AsType[*outbound.Error](err); ok {
		return string(e.Code) + ", effect " + e.Effect.String()
	}
	return string(r.Label) + " by " + string(r.Evidence) + " from " + string(r.Origin)
}

func (s *run) startSweep() {
	i, w := s.someWorker()
	if w == nil {
		return
	}
	s.note("worker %d sweeps", i)
	w.begin(func() {
		swept, err := w.reconciler.Sweep(w.ctx)
		s.note("worker %d swept: %+v, %v", i, swept, err != nil)
	})
}

// crash ends a process, and starts another in its place.
func (s *run) crash() {
	i := s.luck.IntN(len(s.workers))
	old := s.workers[i]
	s.note("worker %d dies", i)
	old.kill()
	s.retired = append(s.retired, old)
	s.workers[i] = s.newWorker(s.t, rand.New(rand.NewPCG(s.seed, s.luck.Uint64())))
}

// letTimePass moves the clock by a moment, or past a lease, the horizon or a
// provider's window.
func (s *run) letTimePass() {
	spans := []time.Duration{
		time.Second, 4 * time.Second, 11 * time.Second, 31 * time.Second, 31 * time.Second, 2 * time.Minute, 2 * time.Minute, 6 * time.Minute, 6 * time.Minute, 6 * time.Minute,
		16 * time.Minute, 16 * time.Minute, time.Hour, 5*time.Hour + 30*time.Minute, 7 * time.Hour, 23*time.Hour + 30*time.Minute, 25 * time.Hour, 46 * 24 * time.Hour,
	}
	d := spans[s.luck.IntN(len(spans))] + rand64(s.luck, time.Second)
	s.note("%v pass", d)
	time.Sleep(d)
}

// pay lets the payer of an order choose another way to pay.
func (s *run) pay() {
	for _, c := range s.commands {
		if c.order != "" {
			s.note("the payer chooses another way to pay")
			_, _ = s.providers[c.provider].fake.Seed(fakepaypal.Approval{ID: c.order}) // an order that is past that stays as it is
		}
	}
}

// webhook delivers an event: soon, late, once more, or forged in the name of
// another account.
func (s *run) webhook() {
	name := []string{"stripe", "paypal"}[s.luck.IntN(2)]
	events := s.providers[name].fake.Events()
	if len(events) == 0 {
		return
	}
	e := events[len(events)-1]
	if s.luck.IntN(2) == 0 {
		e = events[s.luck.IntN(len(events))]
	}
	o, ok, err := observation(name, e)
	if err != nil || !ok {
		return
	}
	forged := s.luck.IntN(4) == 0
	if forged {
		o.Account = "acct_somebody_else"
	}
	s.note("webhook %s %s, forged %v", name, e.Type, forged)
	before := s.ledger.all()
	if err := s.observer.clients[name].Observe(context.Background(), o); err != nil {
		s.breaks("a webhook was not taken: %v", err)
	}
	for i, after := range s.ledger.all() {
		if forged && after.Version != before[i].Version {
			s.breaks("a webhook of another account changed %s", s.commands[i].call.Operation)
		}
	}
}

// observation is an event as the provider would deliver it, read by its adapter.
func observation(name string, e fakeprovider.Event) (outbound.Observation, bool, error) {
	var body any
	if name == "stripe" {
		body = map[string]any{
			"id": e.ID, "object": "event", "type": e.Type, "created": e.At.Unix(), "livemode": false,
			"data": map[string]any{"object": e.Object}, "request": map[string]any{"id": e.RequestID, "idempotency_key": e.Key},
		}
	} else {
		body = map[string]any{
			"id": e.ID, "event_type": e.Type, "create_time": e.At.Format(time.RFC3339), "resource": e.Object,
			"links": []any{map[string]any{"href": "https://api.sandbox.paypal.com/v1/notifications/webhooks-events/" + e.ID}},
		}
	}
	text, err := json.Marshal(body)
	if err != nil {
		return outbound.Observation{}, false, err
	}
	if name == "stripe" {
		return stripe.Event(text)
	}
	return paypal.Event(text)
}

// person settles what waits for one, by what the provider shows once nothing is
// on its way any more; or forbids to send.
func (s *run) person() {
	i := s.luck.IntN(len(s.commands))
	c, rec := s.commands[i], s.ledger.all()[i]
	client := s.observer.clients[c.provider]
	if s.luck.IntN(4) == 0 {
		s.note("a person abandons %s", c.call.Operation)
		_ = client.Abandon(context.Background(), outbound.Abandonment{Command: c.call.Command, Operation: c.call.Operation, Reason: "not wanted", Operator: "ada"})
		return
	}
	live := rec.State == recordstore.Sending && time.Now().Before(rec.LeaseEndsAt)
	if rec.State != recordstore.ManualReview && rec.State != recordstore.Uncertain || live || !s.quiet() {
		return
	}
	r := outbound.Resolution{Command: c.call.Command, Operation: c.call.Operation, Version: rec.Version, Reason: "seen at the provider", Operator: "ada"}
	if r.Effect = outbound.EffectApplied; len(s.effects(c)) == 0 {
		r.Effect, r.SendAgain = outbound.EffectNone, s.luck.IntN(2) == 0
	}
	err := client.Resolve(context.Background(), r)
	s.note("a person says %v of %s, send again %v: %v", r.Effect, c.call.Operation, r.SendAgain, err == nil)
}
