package outbound_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

// found is a look-up that finds the effect.
func found(*outbound.Lookup) (outbound.Finding, error) {
	return outbound.Finding{Effect: outbound.EffectApplied, ExternalRef: "re_1", Answer: paid.Answer}, nil
}

func statusOf(t *testing.T, c *outbound.Client, id, operation string) *outbound.Status {
	t.Helper()
	s, err := c.Status(t.Context(), outbound.Command{ID: id}, operation)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// lose makes a command uncertain.
func lose(t *testing.T, c *outbound.Client, id, operation string) {
	t.Helper()
	_, err := c.Do(t.Context(), pay(id, operation))
	wantError(t, err, outbound.ErrUncertain, outbound.EffectUnknown, true)
}

func reconciler(t *testing.T, opts *outbound.ReconcilerOptions, clients ...*outbound.Client) *outbound.Reconciler {
	t.Helper()
	if opts == nil {
		opts = &outbound.ReconcilerOptions{}
	}
	opts.Rate = 1e6 // no waiting for the provider's sake
	r, err := outbound.NewReconciler(opts, clients...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func sweepOnce(t *testing.T, r *outbound.Reconciler) outbound.Swept {
	t.Helper()
	s, err := r.Sweep(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// R8, R22: in the first minutes the frozen bytes are resent, from the record
// alone, in a process that never saw the call.
func TestReconcilerResendsFrozenBytes(t *testing.T) {
	ledger := newLedger()
	lose(t, client(t, &scripted{answer: always(lost)}, ledger, nil), "c1", "pay.stored")
	a := &scripted{answer: always(paid)}
	other := client(t, a, ledger, nil)
	r := reconciler(t, nil, other)
	if s := sweepOnce(t, r); s != (outbound.Swept{}) {
		t.Errorf("before the first rung: %+v", s)
	}
	ledger.advance(2 * time.Minute)
	if s := sweepOnce(t, r); s.Resent != 1 || s.Settled != 1 {
		t.Errorf("swept %+v, want one resent and settled", s)
	}
	sent := a.deliveries()
	if len(sent) != 1 || string(sent[0].Message.Body) != "amount=100" || !sent[0].Resend {
		t.Errorf("sent %+v", sent)
	}
	if s := statusOf(t, other, "c1", "pay.stored"); s.State != recordstore.Succeeded {
		t.Errorf("state %s", s.State)
	}
}

// R20, C22: a sender that died is found and asked about, neither run again
// blindly nor stuck for ever.
func TestReconcilerFindsDeadSenders(t *testing.T) { synctest.Test(t, findsDeadSenders) }

func findsDeadSenders(t *testing.T) {
	ledger := newLedger()
	a := &scripted{}
	dead := client(t, a, &deaf{ledger}, &outbound.Options{SettleTimeout: time.Millisecond})
	a.answer = always(paid)
	if _, err := dead.Do(t.Context(), pay("c1", "pay.stored")); err != nil {
		t.Fatal(err)
	}
	b := &scripted{answer: always(lost), find: found}
	alive := client(t, b, ledger, nil)
	ledger.advance(20 * time.Minute)
	r := reconciler(t, nil, alive)
	if s := sweepOnce(t, r); s.Found != 1 || s.LookedUp != 1 || s.Settled != 1 || s.Resent != 0 {
		t.Errorf("swept %+v, want one dead sender found and looked up", s)
	}
	reply, err := alive.Do(t.Context(), pay("c1", "pay.stored"))
	wantReply(t, reply, err, outbound.LatestStatus, outbound.FromLedger)
}

// deaf is a ledger that a dying process cannot settle to.
type deaf struct{ *ledgerAt }

func (deaf) Settle(context.Context, recordstore.Settlement) (recordstore.Record, error) {
	return recordstore.Record{}, errCut
}

// C23, C24, R21: a clock never decides, a failing look-up is unknown, and after
// the ladder a person decides.
func TestLadderEndsInReview(t *testing.T) {
	ledger := newLedger()
	a := &scripted{answer: always(lost), find: func(*outbound.Lookup) (outbound.Finding, error) {
		return outbound.Finding{}, errors.New("403")
	}}
	c := client(t, a, ledger, nil)
	lose(t, c, "c1", "pay.stored")
	ladder := []time.Duration{time.Minute, 5 * time.Minute, time.Hour, 24 * time.Hour}
	r := reconciler(t, &outbound.ReconcilerOptions{Ladder: ladder}, c)
	for i := range 10 {
		state := statusOf(t, c, "c1", "pay.stored").State
		if state == recordstore.ManualReview {
			if i < len(ladder) {
				t.Errorf("in review after %d checks, want %d", i, len(ladder))
			}
			break
		}
		if state != recordstore.Uncertain {
			t.Fatalf("state %s after %d checks", state, i)
		}
		ledger.advance(27 * time.Hour)
		sweepOnce(t, r)
	}
	_, err := c.Do(t.Context(), pay("c1", "pay.stored"))
	wantError(t, err, outbound.ErrManualReview, outbound.EffectUnknown, false)
	if n := len(a.deliveries()); n != 1 {
		t.Errorf("%d deliveries, want 1: the window was closed at every check", n)
	}
}

// Absent is a proof only past the horizon, and never after a stored 500.
func TestAbsenceIsProvedOrNot(t *testing.T) {
	stored500 := outbound.Verdict{Deliveries: 1, Answer: &outbound.Answer{Status: 500}}
	for name, tt := range map[string]struct {
		first outbound.Verdict
		after time.Duration
		sent  int
	}{
		"inside the horizon": {lost, 14 * time.Minute, 1},
		"past the horizon":   {lost, 25 * time.Hour, 2},
		"after a stored 500": {stored500, 25 * time.Hour, 1},
	} {
		t.Run(name, func(t *testing.T) {
			ledger := newLedger()
			a := &scripted{answer: inTurn(tt.first, paid), find: absent}
			c := client(t, a, ledger, nil)
			lose(t, c, "c1", "pay.stored")
			ledger.advance(tt.after)
			sweepOnce(t, reconciler(t, &outbound.ReconcilerOptions{ResendFor: time.Nanosecond}, c))
			// Inside the window an unknown look-up is followed by a resend.
			want := tt.sent
			if tt.after < 24*time.Hour {
				want++
			}
			if n := len(a.deliveries()); n != want {
				t.Errorf("%d deliveries, want %d", n, want)
			}
		})
	}
}

// R21: an operation without a key is never sent again by itself, absent or not.
func TestKeylessGoesToReview(t *testing.T) {
	ledger := newLedger()
	a := &scripted{answer: always(lost)}
	c := client(t, a, ledger, nil)
	lose(t, c, "m1", "mail.send")
	ledger.advance(time.Hour)
	if s := sweepOnce(t, reconciler(t, nil, c)); s.ToReview != 1 || len(a.deliveries()) != 1 {
		t.Errorf("swept %+v with %d deliveries, want one in review and no second delivery", s, len(a.deliveries()))
	}
}

// A codec that panics ends in review, and its value is shown nowhere.
func TestPanickingCodecEndsInReview(t *testing.T) {
	ledger := newLedger()
	a := &scripted{answer: always(lost)}
	c := client(t, a, ledger, nil)
	lose(t, c, "c1", "pay.stored")
	ledger.advance(time.Hour)
	a.find = func(*outbound.Lookup) (outbound.Finding, error) { panic("card 4242424242424242") }
	if s := sweepOnce(t, reconciler(t, nil, c)); s.ToReview != 1 {
		t.Errorf("swept %+v, want one in review", s)
	}
	trail, err := c.Trail(t.Context(), outbound.Command{ID: "c1"}, "pay.stored")
	if err != nil || len(trail) == 0 {
		t.Fatalf("trail %v, %v", trail, err)
	}
	for _, e := range trail {
		if strings.Contains(e.Text, "4242") {
			t.Errorf("the trail shows the panic's value: %q", e.Text)
		}
	}
}

// Resolve: the version seen, a verdict, a reason, a name; late truth brings the
// record back.
func TestVerdictsAndLateTruth(t *testing.T) {
	ledger := newLedger()
	a := &scripted{answer: always(lost)}
	c := client(t, a, ledger, nil)
	lose(t, c, "m1", "mail.send")
	cmd := outbound.Command{ID: "m1"}
	_, err := c.Do(t.Context(), pay("m1", "mail.send"))
	wantError(t, err, outbound.ErrManualReview, outbound.EffectUnknown, false)
	seen := statusOf(t, c, "m1", "mail.send").Version
	good := outbound.Resolution{Command: cmd, Operation: "mail.send", Version: seen, Effect: outbound.EffectNone, Reason: "not in the outbox of the provider", Operator: "ada"}
	for why, change := range map[string]func(*outbound.Resolution){
		"no reason":       func(r *outbound.Resolution) { r.Reason = " " },
		"two lines":       func(r *outbound.Resolution) { r.Reason = "a\nb" },
		"no name":         func(r *outbound.Resolution) { r.Operator = "" },
		"no verdict":      func(r *outbound.Resolution) { r.Effect = outbound.EffectUnknown },
		"applied again":   func(r *outbound.Resolution) { r.Effect, r.SendAgain = outbound.EffectApplied, true },
		"no such row":     func(r *outbound.Resolution) { r.Operation = "no.such" },
		"an old version":  func(r *outbound.Resolution) { r.Version-- },
		"unknown command": func(r *outbound.Resolution) { r.Command.ID = "m2" },
	} {
		bad := good
		change(&bad)
		if err := c.Resolve(t.Context(), bad); !errors.Is(err, outbound.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", why, err)
		}
	}
	if err := c.Resolve(t.Context(), good); err != nil {
		t.Fatal(err)
	}
	_, err = c.Do(t.Context(), pay("m1", "mail.send"))
	wantError(t, err, outbound.ErrRefused, outbound.EffectNone, false)
	trail, err := c.Trail(t.Context(), cmd, "mail.send")
	if err != nil || !slices.ContainsFunc(trail, func(e recordstore.Entry) bool {
		return e.Kind == "verdict" && e.Actor == "ada" && e.Text == good.Reason
	}) {
		t.Errorf("the trail %+v, %v lacks the verdict", trail, err)
	}
	id := keyID(t, c, cmd, "mail.send")
	if _, err := ledger.Report(t.Context(), id, recordstore.Result{State: recordstore.Succeeded, Evidence: "webhook"}); err != nil {
		t.Fatal(err)
	}
	if s := statusOf(t, c, "m1", "mail.send"); s.State != recordstore.ManualReview {
		t.Errorf("late truth against the verdict left the record %s", s.State)
	}
}

// Abandoning what may have been applied forbids sending and keeps looking.
func TestAbandonedIsOnlyLookedUp(t *testing.T) {
	ledger := newLedger()
	a := &scripted{answer: always(lost), find: found}
	c := client(t, a, ledger, nil)
	lose(t, c, "c1", "pay.stored")
	err := c.Abandon(t.Context(), outbound.Abandonment{Command: outbound.Command{ID: "c1"}, Operation: "pay.stored", Reason: "the customer left", Operator: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	ledger.advance(2 * time.Minute)
	if s := sweepOnce(t, reconciler(t, nil, c)); s.LookedUp != 1 || s.Settled != 1 || len(a.deliveries()) != 1 {
		t.Errorf("swept %+v with %d deliveries", s, len(a.deliveries()))
	}
}

// Plan: nothing is sent before the reconciler or Do comes; NotAfter ends it.
func TestPlans(t *testing.T) {
	ledger := newLedger()
	a := &scripted{answer: always(paid)}
	c := client(t, a, ledger, nil)
	if err := c.Plan(t.Context(), ledger, pay("p1", "pay.stored")); !errors.Is(err, outbound.ErrInvalid) || !strings.Contains(err.Error(), "NotAfter") {
		t.Errorf("a plan without NotAfter: %v", err)
	}
	plan := func(id string, notAfter time.Time) {
		t.Helper()
		call := pay(id, "pay.stored")
		call.Command.NotAfter = notAfter
		for range 2 { // planning again changes nothing
			if err := c.Plan(t.Context(), ledger, call); err != nil {
				t.Fatal(err)
			}
		}
	}
	plan("p1", outbound.Forever)
	plan("p2", ledger.clock().Add(time.Minute))
	plan("p3", ledger.clock().Add(24*time.Hour))
	if s := statusOf(t, c, "p1", "pay.stored"); s.State != recordstore.Planned || s.Effect != outbound.EffectNone || len(a.deliveries()) != 0 {
		t.Errorf("planned: %+v after %d deliveries", s, len(a.deliveries()))
	}
	other := pay("p1", "pay.stored")
	other.Command.NotAfter, other.Message.Body = outbound.Forever, []byte("amount=2")
	if err := c.Plan(t.Context(), ledger, other); !errors.Is(err, outbound.ErrFingerprintConflict) {
		t.Errorf("another request under a planned command: %v", err)
	}
	r, err := c.Do(t.Context(), pay("p3", "pay.stored"))
	wantReply(t, r, err, outbound.NewExecution, outbound.FromProvider)
	ledger.advance(time.Hour)
	if s := sweepOnce(t, reconciler(t, nil, c)); s.Sent != 1 || s.Settled != 2 {
		t.Errorf("swept %+v, want p1 sent and p2 ended", s)
	}
	if s := statusOf(t, c, "p2", "pay.stored"); s.State != recordstore.Abandoned || s.Effect != outbound.EffectNone {
		t.Errorf("a plan past its NotAfter is %+v", s)
	}
	if n := len(a.deliveries()); n != 2 {
		t.Errorf("%d deliveries, want 2", n)
	}
}

// R18, R19: erased bodies are gone, the evidence stays, a replay is a look-up.
func TestErase(t *testing.T) {
	ledger := newLedger()
	a := &scripted{answer: always(paid), find: found}
	c := client(t, a, ledger, nil)
	if _, err := c.Do(t.Context(), pay("c1", "pay.stored")); err != nil {
		t.Fatal(err)
	}
	if err := c.Erase(t.Context(), outbound.Command{ID: "c1"}); err != nil {
		t.Fatal(err)
	}
	if err := c.Erase(t.Context(), outbound.Command{ID: "unheard"}); !errors.Is(err, recordstore.ErrNotFound) {
		t.Errorf("erasing what is not there: %v", err)
	}
	rec, _, err := ledger.Get(t.Context(), keyID(t, c, outbound.Command{ID: "c1"}, "pay.stored"))
	if err != nil || rec.ResponseBody != nil || rec.Request != nil || rec.ExternalRef != "re_1" || rec.BodyPurgedAt.IsZero() {
		t.Errorf("record %+v, %v", rec, err)
	}
	r, err := c.Do(t.Context(), pay("c1", "pay.stored"))
	wantReply(t, r, err, outbound.LatestStatus, outbound.FromProvider)
}

// keyID finds a record through what the client makes of the command.
func keyID(t *testing.T, c *outbound.Client, cmd outbound.Command, operation string) recordstore.ID {
	t.Helper()
	seen := &keeping{Store: newLedger()}
	probe := client(t, &scripted{answer: always(paid)}, seen, nil)
	call := pay(cmd.ID, operation)
	call.Command = cmd
	if _, err := probe.Do(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	return seen.id
}
