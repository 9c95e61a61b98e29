package providertest

import (
	"github.com/seed-6b5e302b/samekey/outbound"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// What answers are called, against what the fake knows of them; and keys that
// two ledgers share.
func labelCases() []testCase {
	return []testCase{
		{
			name: "label/first", run: labelFirst,
			why:  "the one answer to the only delivery is the execution; called a replay it hides that something has just happened (R11)",
			mend: "Judge sets Evidence only by a signal that the provider gives on replays and never else; an echo of the key is none. Without a signal leave Label and Evidence alone: the core labels",
		},
		{
			name: "label/replay", needs: keyed, run: labelReplay,
			why:  "an answer from the key is no execution: who counts it as one books the payment twice (R11, R12)",
			mend: "Judge reads the provider's own signal; Resend of the row says what the same key gives: Original, the stored first answer, or Latest, the present state",
		},
		{
			name: "label/executed_later", needs: keyed, run: labelExecutedLater,
			why:  "the first delivery never arrived, the second executed: called an original replayed, nobody would look for what it did",
			mend: "that a request is a resend is no evidence of a replay; only the provider's signal is",
		},
		{
			name: "mismatch/local", gift: other, run: mismatchLocal,
			why:  "one command with two meanings is a mistake that must be found before the wire (R5, R7, C07)",
			mend: "Canonical counts everything that changes what the provider does; Volatile of the row lists what does not",
		},
		{
			name: "mismatch/provider", needs: keyed, gift: other, run: mismatchProvider,
			why:  "under this key something was executed already, by another ledger's record: the provider's complaint is no proof of anything (R5)",
			mend: "Judge leaves Effect at its zero value for the provider's mismatch, and sets Look: a resend teaches nothing more",
		},
	}
}

// wantLabel compares a reply's label with what the fake knows of the request
// that was answered.
func (tr *trial) wantLabel(o outcome) {
	tr.Helper()
	log := tr.requests()
	if o.err != nil || len(log) == 0 {
		tr.Errorf("the call ended in %s, want a reply", o.say())
		return
	}
	switch replayed, label := log[len(log)-1].Replayed, o.reply.Label; {
	case replayed && label == outbound.NewExecution:
		tr.Errorf("the provider answered from the key, and the reply is %s", o.say())
	case replayed && label == outbound.OriginalReplay && tr.row.Resend != rs.Original:
		tr.Errorf("the row says that a resend gives %q, which is never the original, and the reply is %s", tr.row.Resend, o.say())
	case !replayed && label == outbound.OriginalReplay:
		tr.Errorf("the provider executed this very request, and the reply is %s", o.say())
	case label == "":
		tr.Errorf("the reply has no label")
	}
}

func labelFirst(tr *trial) {
	o := tr.process(settings{}).do(tr.Context())
	tr.wantEffects(1)
	tr.wantLabel(o)
	if o.err == nil && o.reply.Label != outbound.NewExecution {
		tr.Errorf("the only delivery was executed, and the reply is %s; want %s", o.say(), outbound.NewExecution)
	}
}

func labelReplay(tr *trial) {
	tr.inject(Fault{Kind: DropAfterApply})
	o := tr.process(settings{attempts: 2}).do(tr.Context())
	tr.wantEffects(1)
	tr.wantLabel(o)
}

func labelExecutedLater(tr *trial) {
	tr.inject(Fault{Kind: DropBeforeApply})
	o := tr.process(settings{attempts: 2}).do(tr.Context())
	tr.wantEffects(1)
	tr.wantLabel(o)
}

func mismatchLocal(tr *trial) {
	p := tr.process(settings{})
	p.do(tr.Context())
	sent := len(tr.requests())
	o := p.make(tr.Context(), tr.sample.Other(command, tr.seed))
	if !o.is(outbound.ErrFingerprintConflict) {
		tr.Errorf("the same command with another request ended in %s; want a fingerprint conflict", o.say())
	}
	if got := len(tr.requests()); got != sent {
		tr.Errorf("the other request was sent")
	}
}

// mismatchProvider: two ledgers make the same key of one command, and the second
// one asks for something else.
func mismatchProvider(tr *trial) {
	tr.process(settings{ledger: newLedger()}).do(tr.Context())
	tr.wantEffects(1)
	o := tr.process(settings{}).make(tr.Context(), tr.sample.Other(command, tr.seed))
	if v := o.last(); v.Effect == outbound.EffectNone {
		tr.Errorf("the provider knows the key with another request, which it executed, and the verdict is effect %q with code %q; want unknown", v.Effect, string(v.Code))
	}
	tr.truthful(o)
}
