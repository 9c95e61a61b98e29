package providertest

import (
	"context"
	"errors"
	"net"
	"net/http"

	"github.com/seed-6b5e302b/samekey/outbound"
)

// Answers that prove something, and what they prove after another delivery.
func proofCases() []testCase {
	return []testCase{
		{
			name: "proof/rate_limited", run: proofRateLimited,
			why:  "the provider was busy and did nothing: the same command must be sendable later (C14)",
			mend: "Judge answers 429 with EffectNone and ErrRateLimited, never ErrRefused, which is final; or leaves it unknown where the provider also uses it for a running key",
		},
		{
			name: "proof/unauthorized", run: proofUnauthorized,
			why:  "credentials are repaired and the same command is sent again; a payment that failed for them alone is not over (C21)",
			mend: "Judge answers 401 with EffectNone and ErrAuth; Config.Refresh renews, and the same key and bytes are sent again",
		},
		{
			name: "proof/after_doubt", needs: keyed, run: proofAfterDoubt,
			why:  "the second delivery was turned away, the first had paid: a None proves nothing of another delivery",
			mend: "Send returns the verdicts of all its attempts, in order, and not only the last one",
		},
		{
			name: "proof/unreachable", run: proofUnreachable,
			why:  "a request that found no connection was never written: the call may simply be made again (R9)",
			mend: "Send reports EffectNone with ErrUnavailable and no deliveries where no connection was obtained; package httpadapter does",
		},
		{
			name: "proof/rejected", gift: rejected, run: proofRejected,
			why:  "a validation error is to be corrected, not looked for, and it is not the customer's decline (R9)",
			mend: "Judge answers the provider's validation with EffectNone and ErrRejected",
		},
		{
			name: "refused/final", gift: refused, run: refusedFinal,
			why:  "a decline is the command's outcome: it is not sent again, and the customer's next try is a new command (C06)",
			mend: "Judge answers the provider's decision with EffectNone and ErrRefused, a 2xx that says DECLINED too",
		},
		{
			name: "refused/after_loss", needs: keyed, gift: refused, run: refusedAfterLoss,
			why:  "where failures run again, the decline of a resend says nothing of the first run, which may have paid",
			mend: "Failures of the row is Stored only if the provider gives a stored failure again; the zero value is the cautious one",
		},
	}
}

func proofRateLimited(tr *trial) {
	tr.inject(Fault{Kind: RateLimit})
	p := tr.process(settings{})
	o := p.do(tr.Context())
	tr.notFinal(o, "the provider was too busy", outbound.ErrRateLimited)
	tr.executedLater(p)
}

func proofUnauthorized(tr *trial) {
	tr.inject(Fault{Kind: Unauthorized, Times: -1})
	p := tr.process(settings{})
	o := p.do(tr.Context())
	tr.notFinal(o, "the credentials were refused", outbound.ErrAuth)
	tr.fake.ClearFaults()
	tr.executedLater(p)
}

// notFinal judges a first delivery that was turned away.
func (tr *trial) notFinal(o outcome, says string, want outbound.Code) {
	tr.Helper()
	switch v := o.last(); {
	case v.Effect == outbound.EffectApplied:
		tr.Errorf("%s, and the verdict is that it was applied", says)
	case v.Effect == outbound.EffectNone && v.Code != want:
		tr.Errorf("%s, and the verdict has the code %q; want %q", says, string(v.Code), string(want))
	case v.Effect == outbound.EffectUnknown && tr.row.Window == 0:
		tr.Errorf("%s, and the verdict is unknown: without a key that is known to last nobody can send it again", says)
	}
	tr.truthful(o)
}

// executedLater calls again, once what was in the way is gone.
func (tr *trial) executedLater(p *process) {
	tr.Helper()
	tr.wait(lease + minWait)
	if o := p.do(tr.Context()); o.err != nil {
		tr.Errorf("the same command, called again, ended in %s", o.say())
	}
	tr.wantEffects(1)
}

func proofAfterDoubt(tr *trial) {
	tr.inject(Fault{Kind: DropAfterApply}, Fault{Kind: RateLimit, Times: -1})
	o := tr.process(settings{attempts: 2}).do(tr.Context())
	if len(tr.requests()) < 2 {
		tr.Errorf("the lost delivery was not repeated: %s", o.say())
	}
	if got := len(o.verdicts); got < 2 {
		tr.Errorf("two attempts were made and %d verdicts reported", got)
	}
	tr.truthful(o)
	if outbound.EffectOf(o.err) == outbound.EffectNone {
		tr.Errorf("the first delivery's answer was lost, and the call claims that nothing happened: %s", o.say())
	}
}

var errNoRoute = errors.New("no route to the provider")

func proofUnreachable(tr *trial) {
	nowhere := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, errNoRoute }}
	o := tr.process(settings{transport: nowhere}).do(tr.Context())
	e, ok := errors.AsType[*outbound.Error](o.err)
	if !ok || e.Effect != outbound.EffectNone || e.Sent || !o.is(outbound.ErrUnavailable) {
		tr.Errorf("no connection was obtained, and the call ended in %s; want unavailable, effect none, not sent", o.say())
	}
	tr.wantEffects(0)
}

// decided checks that a call of the sample is one that the provider turns down.
func (tr *trial) decided(o outcome, name string) {
	tr.Helper()
	if tr.effects() > 0 {
		tr.Fatalf("the provider executed the call Sample.%s: take one that it turns down", name)
	}
	if len(tr.requests()) == 0 {
		tr.Fatalf("the call Sample.%s was not sent: take one that only the provider turns down: %s", name, o.say())
	}
}

func proofRejected(tr *trial) {
	o := tr.process(settings{}).make(tr.Context(), tr.sample.Rejected(command, tr.seed))
	tr.decided(o, "Rejected")
	if v := o.last(); v.Effect != outbound.EffectNone || v.Code != outbound.ErrRejected {
		tr.Errorf("the provider's validation refused the request, and the verdict is effect %q with code %q; want none, rejected", v.Effect, string(v.Code))
	}
}

func refusedFinal(tr *trial) {
	p := tr.process(settings{})
	o := p.make(tr.Context(), tr.sample.Refused(command, tr.seed))
	tr.decided(o, "Refused")
	if v := o.last(); v.Effect != outbound.EffectNone || v.Code != outbound.ErrRefused {
		tr.Errorf("the provider decided against the request, and the verdict is effect %q with code %q; want none, refused", v.Effect, string(v.Code))
	}
	sent := len(tr.requests())
	if again := p.make(tr.Context(), tr.sample.Refused(command, tr.seed)); !again.is(outbound.ErrRefused) {
		tr.Errorf("the same command, called again after a refusal, ended in %s", again.say())
	}
	if got := len(tr.requests()); got != sent {
		tr.Errorf("a refused command was sent again")
	}
}

func refusedAfterLoss(tr *trial) {
	tr.inject(Fault{Kind: DropAfterApply})
	o := tr.process(settings{attempts: 2}).make(tr.Context(), tr.sample.Refused(command, tr.seed))
	log := tr.requests()
	if len(log) < 2 {
		tr.Fatalf("the lost refusal was not asked for again: %s", o.say())
	}
	if ranAgain := !log[len(log)-1].Replayed; ranAgain && o.is(outbound.ErrRefused) {
		tr.Errorf("the provider ran the resent request anew and declined it, and the call takes that for the first run's end: %s", o.say())
	}
	tr.truthful(o)
}
