package providertest

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
)

// How often and when requests are sent: windows, back-off, hidden resends, the
// end of the caller's patience, and never twice without a key.
func timeCases() []testCase {
	return []testCase{
		{
			name: "window/open", needs: windowed, run: windowOpen,
			why:  "inside the window the resend is the best question there is; a row that believes in less sends people to look by hand (R13)",
			mend: "Window of the row is as long as the provider's page says",
		},
		{
			name: "window/closed", needs: keyed, run: windowClosed,
			why:  "a key that the provider has forgotten executes anew: the second payment of C11 (R13, R22)",
			mend: "Window of the row is no longer than the provider keeps keys; 0 if it publishes nothing",
		},
		{
			name: "retry/after", needs: keyed, run: retryAfter,
			why:  "who comes back before the time that the provider names keeps it down, and is locked out at last (C14)",
			mend: "Retry-After of the answer reaches Verdict.RetryAfter; package httpadapter reads the header, and waits",
		},
		{
			name: "retry/long_after", needs: keyed, run: retryLongAfter,
			why:  "nobody waits an hour inside one call: it ends, and says when to call again",
			mend: "Retry-After of the answer reaches Verdict.RetryAfter; a wait beyond Retry.MaxRetryAfter ends Send",
		},
		{
			name: "retry/bounded", needs: keyed, run: retryBounded,
			why:  "attempts beyond those of the settings, or without a pause, are a storm from many processes",
			mend: "Send makes at most Retry.Attempts attempts, with a pause of at least half of Retry.MinWait before each further one, nothing else resends",
		},
		{
			name: "hidden/counted", run: hiddenCounted,
			why:  "net/http resends a keyed request by itself when a kept connection dies; a delivery that nobody counts turns a guess into a proof (C30)",
			mend: "Verdict.Deliveries counts the connections that httptrace.GotConn reports, and not the answers; package httpadapter does",
		},
		{
			name: "cancel/before_write", run: cancelBeforeWrite,
			why:  "a caller who gave up before anything was written may call again as if nothing were",
			mend: "Send reports EffectNone and no deliveries where no connection was obtained, also when the context ended",
		},
		{
			name: "cancel/after_write", run: cancelAfterWrite,
			why:  "the caller's patience says nothing of the payment, which is made (C23)",
			mend: "Send reports the zero Verdict with its delivery when the context ends after a write, with the context's error in Err",
		},
		{
			name: "cancel/waiting", needs: keyed, run: cancelWaiting,
			why:  "a back-off that outlives its caller holds workers at every shutdown",
			mend: "every wait ends with the context of Send",
		},
		{
			name: "keyless/never_resent", needs: keyless, run: keylessNeverResent,
			why:  "without a key a second request is a second e-mail, or a second payment (R21)",
			mend: "Send makes no further attempt once a delivery may have executed, over a fresh connection each time, so that net/http makes none either; package httpadapter does both for rows without Keys",
		},
	}
}

// window is how long the fake remembers the command's key.
func (tr *trial) window() time.Duration {
	tr.Helper()
	arrived := tr.spy.of(tr.row.Name)
	if len(arrived) == 0 {
		tr.Fatalf("no request of %s arrived at the provider; it saw %s", tr.row.Name, tr.sawInstead())
	}
	return arrived[0].window
}

// lose makes the command's first delivery by a process that dies before it can
// write down what it learned. Its lease is over afterwards.
func (tr *trial) lose(kind Kind) {
	tr.Helper()
	tr.inject(Fault{Kind: kind})
	tr.process(settings{ledger: dying{tr.ledger}}).do(tr.Context())
	tr.wait(2 * lease)
}

func windowOpen(tr *trial) {
	tr.lose(DropAfterApply)
	tr.wait(tr.window() / 2)
	o := tr.process(settings{attempts: 2}).do(tr.Context())
	if got := len(tr.requests()); got < 2 {
		tr.Errorf("half of the provider's window had passed, and the call was not sent again: %s; the row's window is %v, the provider's %v", o.say(), tr.row.Window, tr.window())
	}
}

func windowClosed(tr *trial) {
	tr.lose(DropAfterApply)
	tr.wait(tr.window() + time.Minute)
	o := tr.process(settings{attempts: 2}).do(tr.Context())
	if got := tr.effects(); got != 1 {
		tr.Errorf("the provider forgot the key after %v, and the resend executed again: %d effects; the row's window is %v", tr.window(), got, tr.row.Window)
	}
	tr.truthful(o)
}

func retryAfter(tr *trial) {
	const asked = 11 * time.Second
	tr.inject(Fault{Kind: RateLimit, RetryAfter: asked})
	o := tr.process(settings{attempts: 2}).do(tr.Context())
	log := tr.requests()
	if len(log) != 2 {
		tr.Fatalf("the provider asked for %v of patience, and %d requests of two attempts arrived: %s", asked, len(log), o.say())
	}
	if gap := log[1].At.Sub(log[0].At); gap < asked || gap > asked+2*minWait {
		tr.Errorf("the provider asked for %v of patience, and the next attempt came after %v; want %v to %v", asked, gap, asked, asked+2*minWait)
	}
}

func retryLongAfter(tr *trial) {
	tr.inject(Fault{Kind: RateLimit, RetryAfter: time.Hour, Times: -1})
	begun := time.Now()
	o := tr.process(settings{attempts: 4}).do(tr.Context())
	if got, took := len(tr.requests()), time.Since(begun); got != 1 || took > minWait {
		tr.Errorf("the provider asked for an hour of patience, and %d requests arrived within %v; want the call to end", got, took)
	}
	if e, ok := errors.AsType[*outbound.Error](o.err); !ok || e.RetryAfter < time.Hour {
		tr.Errorf("the call does not say when to call again: %s", o.say())
	}
}

func retryBounded(tr *trial) {
	const attempts = 3
	tr.inject(Fault{Kind: RateLimit, Times: -1})
	tr.process(settings{attempts: attempts}).do(tr.Context())
	log := tr.requests()
	if len(log) > attempts {
		tr.Errorf("%d requests of %d attempts arrived", len(log), attempts)
	}
	for i := 1; i < len(log); i++ {
		if gap := log[i].At.Sub(log[i-1].At); gap < minWait/2 {
			tr.Errorf("attempt %d came %v after the one before, want a pause of %v at least", i+1, gap, minWait/2)
		}
	}
}

// hiddenCounted lets a kept connection die under the request.
func hiddenCounted(tr *trial) {
	p := tr.process(settings{attempts: 2})
	tr.warm(p)
	tr.inject(Fault{Kind: ResetReused})
	before := len(tr.requests())
	o := p.do(tr.Context())
	if arrived, counted := len(tr.requests())-before, o.deliveries(); counted < arrived {
		tr.Errorf("%d requests arrived, and the adapter counts %d", arrived, counted)
	}
	tr.truthful(o)
}

// warm makes a request over the connection that the command will use: one of
// another command that the provider turns away.
func (tr *trial) warm(p *process) {
	tr.Helper()
	tr.inject(Fault{Kind: RateLimit, Times: -1})
	p.make(tr.Context(), tr.sample.Call(outbound.Command{ID: "kit-warm"}, tr.seed))
	tr.fake.ClearFaults()
}

func cancelBeforeWrite(tr *trial) {
	ctx, cancel := context.WithCancel(tr.Context())
	stuck := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		cancel()
		<-tr.Context().Done() // net/http dials on when its request has gone
		return nil, errNoRoute
	}}
	o := tr.process(settings{transport: stuck}).do(ctx)
	if e, ok := errors.AsType[*outbound.Error](o.err); !ok || e.Effect != outbound.EffectNone || e.Sent {
		tr.Errorf("the caller gave up before a connection was there, and the call ended in %s; want effect none, not sent", o.say())
	}
	tr.wantEffects(0)
}

func cancelAfterWrite(tr *trial) {
	tr.inject(Fault{Kind: Hang, Applied: true})
	p := tr.process(settings{attempts: 2})
	ctx, cancel := context.WithCancel(tr.Context())
	done := make(chan outcome, 1)
	go func() { done <- p.do(ctx) }()
	tr.fake.AwaitHeld(1) // its effect is there, and only its answer is not
	cancel()
	o := <-done
	tr.wantEffects(1)
	if outbound.EffectOf(o.err) != outbound.EffectUnknown || !errors.Is(o.err, context.Canceled) {
		tr.Errorf("the caller gave up after the request was written, and the call ended in %s; want effect unknown, and context.Canceled in the chain", o.say())
	}
}

func cancelWaiting(tr *trial) {
	tr.inject(Fault{Kind: RateLimit, RetryAfter: 15 * time.Second, Times: -1})
	p := tr.process(settings{attempts: 3})
	ctx, cancel := context.WithTimeout(tr.Context(), 5*time.Second)
	defer cancel()
	begun := time.Now()
	o := p.do(ctx)
	if took := time.Since(begun); took > 6*time.Second {
		tr.Errorf("the caller's context ended after 5 s of a wait, and the call after %v: %s", took, o.say())
	}
	tr.truthful(o)
}

func keylessNeverResent(tr *trial) {
	for _, fault := range []Fault{
		{Kind: DropAfterApply}, {Kind: Status500, Applied: true}, {Kind: Status503, Applied: true},
		{Kind: HTML502, Applied: true}, {Kind: Truncate}, {Kind: ResetReused},
	} {
		t := newTrial(tr.TB, tr.kit, tr.sample)
		p := t.process(settings{attempts: 4})
		t.warm(p)
		t.inject(fault)
		before := len(t.requests())
		o := p.do(t.Context())
		if got := len(t.requests()) - before; got != 1 {
			tr.Errorf("after the fault %s one call made %d requests", fault.Kind, got)
		}
		t.wait(lease + minWait)
		if o.err != nil && outbound.EffectOf(o.err) == outbound.EffectUnknown {
			p.do(t.Context())
		}
		if got := t.effects(); got > 1 {
			tr.Errorf("after the fault %s two calls of one command had %d effects", fault.Kind, got)
		}
	}
}
