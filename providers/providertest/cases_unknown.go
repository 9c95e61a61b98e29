package providertest

import (
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
)

// answer is a fault that leaves one delivery without an answer that proves
// anything.
type answer struct {
	name  string
	needs needs
	fault Fault
	body  bool // it spoils a body, which some answers do not have
	says  string
	why   string
	mend  string
}

func answersThatProveNothing() []answer {
	const httpadapterDoes = "package httpadapter sees to it before a codec is asked; an adapter of another kind reports the zero Verdict with the delivery"
	return []answer{
		{name: "lost", fault: Fault{Kind: DropAfterApply}, says: "the connection broke before an answer",
			why: "only the answer was lost: the payment is made (R9)", mend: httpadapterDoes},
		{name: "no_answer", fault: Fault{Kind: Hang, Applied: true}, says: "no answer came in time",
			why: "a timeout says nothing of the payment (C28)", mend: httpadapterDoes},
		{name: "500", fault: Fault{Kind: Status500, Applied: true}, says: "the provider answered with its internal error",
			why: "what failed may have been the answer and not the payment", mend: "Judge leaves Effect at its zero value"},
		{name: "502", fault: Fault{Kind: HTML502, Applied: true}, says: "a proxy answered with 502 and a page",
			why: "the request may have passed the proxy", mend: "Judge leaves Effect at its zero value for what it cannot read"},
		{name: "503", fault: Fault{Kind: Status503, Applied: true}, says: "the provider answered that it is not available",
			why: "part of it was available, and may have paid", mend: "Judge leaves Effect at its zero value"},
		{name: "424", fault: Fault{Kind: Status424, Applied: true}, says: "the provider answered with a failed dependency",
			why: "the dependency may have paid", mend: "Judge leaves Effect at its zero value"},
		{name: "truncated", fault: Fault{Kind: Truncate}, body: true, says: "half of the answer's body arrived",
			why: "half an answer can be read as another one", mend: httpadapterDoes},
		{name: "oversized", fault: Fault{Kind: Oversized, Size: 2 * maxBody}, body: true, says: "the answer is larger than anybody reads",
			why: "an answer of any size must not fill the memory, and what was not read proves nothing", mend: httpadapterDoes},
		{name: "empty", fault: Fault{Kind: Empty}, body: true, says: "the answer came without its body",
			why:  "an answer without its body was read as \"not paid\", and a customer paid three times (C18)",
			mend: "Judge leaves Effect at its zero value for a body that it cannot read, whatever the status is"},
		{name: "in_flight", needs: keyed, fault: Fault{Kind: InFlight}, says: "the provider answered that the key is being worked on",
			why:  "the other delivery is one of this command and may pay; on a first delivery too, since another process may have sent it (C01, C27)",
			mend: "Judge leaves Effect at its zero value; Again says that asking once more is worth it"},
	}
}

// Answers that prove nothing: no None, no Applied.
func unknownCases() (list []testCase) {
	for _, a := range answersThatProveNothing() {
		list = append(list, testCase{
			name: "unknown/" + a.name, needs: a.needs, why: a.why, mend: a.mend,
			run: func(tr *trial) { tr.provesNothing(a) },
		})
	}
	return append(list,
		testCase{
			name: "unknown/redirect", run: unknownRedirect,
			why:  "a redirect says nothing of the payment, following it sends body and credentials elsewhere or turns the POST into a GET",
			mend: "redirects are not followed: http.ErrUseLastResponse in CheckRedirect, or a RoundTripper without a client; 3xx on a write is unknown",
		},
		testCase{
			name: "unknown/stored_500", needs: stored, run: unknownStored500,
			why:  "a provider that stores failures replays its internal error for ever, whatever became of the payment",
			mend: "Judge leaves Effect at its zero value for a replayed 500 too, and sets Look: a resend teaches nothing more",
		},
		testCase{
			name: "unknown/late", needs: keyed, run: unknownLate,
			why:  "the first delivery is still at work when the second is answered with a conflict: that answer proves nothing, and the next one tells (C01, C03)",
			mend: "Judge leaves Effect at its zero value for the in-flight conflict, with Again, on a resend as well",
		},
	)
}

// provesNothing makes one delivery that is answered like a.
func (tr *trial) provesNothing(a answer) {
	tr.Helper()
	if a.body && !tr.hasBody() {
		return
	}
	tr.inject(a.fault)
	o := tr.process(settings{}).do(tr.Context())
	tr.unknown(o, a.says)
}

// unknown judges a call whose only delivery was answered with what says nothing.
func (tr *trial) unknown(o outcome, says string) {
	tr.Helper()
	if len(tr.requests()) == 0 {
		tr.Fatalf("no request of %s arrived at the provider; it saw %s", tr.row.Name, tr.sawInstead())
	}
	if v := o.last(); v.Effect != outbound.EffectUnknown {
		tr.Errorf("%s, and the verdict is effect %q with code %q; want unknown", says, v.Effect, string(v.Code))
	}
	if o.deliveries() == 0 {
		tr.Errorf("%s, and the adapter reports that nothing was written", says)
	}
	tr.truthful(o)
}

// hasBody reports whether the answer to the sample's call has a body.
func (tr *trial) hasBody() bool {
	tr.Helper()
	o := newTrial(tr.TB, tr.kit, tr.sample).process(settings{}).do(tr.Context())
	if o.err != nil {
		tr.Fatalf("the sample's call does not succeed: %s", o.say())
	}
	return len(o.reply.Body) > 0
}

func unknownRedirect(tr *trial) {
	tr.inject(Fault{Kind: Redirect, Applied: true, Location: "/elsewhere"})
	o := tr.process(settings{}).do(tr.Context())
	tr.unknown(o, "the provider answered a write with 302")
	for _, r := range tr.spy.all() {
		if r.Path == "/elsewhere" {
			tr.Errorf("the redirect was followed: %s %s", r.Method, r.Path)
		}
	}
}

func unknownStored500(tr *trial) {
	tr.inject(Fault{Kind: Status500, Applied: true, Stored: true})
	p := tr.process(settings{})
	p.do(tr.Context())
	log := tr.requests()
	tr.wait(lease + minWait)
	o := p.do(tr.Context())
	if again := tr.requests(); len(again) > len(log) && again[len(again)-1].Status != 500 {
		return // this key remembers no internal errors, and the resend has told more
	}
	for _, v := range o.verdicts {
		if v.Effect == outbound.EffectNone {
			tr.Errorf("the provider gave its stored internal error again, and the verdict is effect %q with code %q; want unknown", v.Effect, string(v.Code))
		}
	}
	tr.truthful(o)
}

func unknownLate(tr *trial) {
	tr.inject(Fault{Kind: LateApply, Running: true, Delay: 2 * time.Second})
	o := tr.process(settings{attempts: 8}).do(tr.Context())
	for i, v := range o.verdicts {
		if i > 0 && v.Effect == outbound.EffectNone { // the first was lost: that is another case
			tr.Errorf("attempt %d, while the first delivery was at work, is taken for a proof that nothing happened (code %q)", i+1, string(v.Code))
		}
	}
	tr.fake.AwaitEffects(tr.row.Name, 1)
	tr.truthful(o)
	if o.err != nil {
		tr.Errorf("the key was free after two seconds, and the call ended in %s", o.say())
	}
}
