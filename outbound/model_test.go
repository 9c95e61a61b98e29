package outbound

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/replaysemantics"
)

// The model explores the decision table completely: two workers and a reconciler
// against one record, with the real Take, Settled, Renewed, Reported, TakenDue,
// Resolved, fold and conclude, before a provider that applies a delivery now,
// late or never, loses answers, refuses, fails, replays inside its window and
// forgets afterwards. Time is counted in ticks and kept relative to now, so that
// the states are finite without a bound on time, claims or deaths.
//
// Bounded are two attempts in a claim and two deliveries astray at once. Assumed
// is that a delivery arrives before the horizon after its lease is over, that the
// window's margin covers that, that a process which lost its claim reads no answer
// and hands in no refusal any more (lateAnswers, lateRefusals), that people tell
// the truth, and what tick says.

// rules are what one exploration runs under. Times are ticks.
type rules struct {
	failures replaysemantics.Failures
	lease    int8
	attempt  int8 // An attempt is made only if lease and window outlive it.
	window   int8 // How long the provider remembers a key.
	margin   int8 // Taken off the window.
	horizon  int8 // How long after the lease's end a delivery may not arrive any more.
	bad      mutation

	lateAnswers  bool // An answer may be read after the lease was taken over.
	lateRefusals bool // A refusal may be handed in after the lease was taken over.
}

// mutation is a known-bad variant of the table.
type mutation string

const (
	blindResend    mutation = "resend on a dead lease without asking past the window"
	noFence        mutation = "settle without fence"
	noDoubt        mutation = "doubt ignored"
	noneOn429      mutation = "None after a 429 on a takeover"
	finalRefusal   mutation = "refusal final where failures run again"
	noHorizon      mutation = "absent without horizon"
	slidingWindow  mutation = "window counted from the takeover"
	eventOverLease mutation = "webhook settling over a live lease"
)

func goodRules(failures replaysemantics.Failures) rules {
	return rules{failures: failures, lease: 2, attempt: 1, window: 4, margin: 2, horizon: 1, lateAnswers: true, lateRefusals: true}
}

// world is one state of the model.
type world struct {
	ledger  row8
	actors  [3]actor // Two workers and a reconciler.
	astray  [2]int8  // Deliveries that nobody waits for: for how many ticks they may still arrive; none is -1. Longest first.
	effects int8
	key     keyMemory
	keyFor  int8 // For how many ticks the provider remembers the key.
	refused bool // An object of the provider says that it refused: look-ups find it, and its event may come at any time.
}

// row8 is what the model keeps of the record.
type row8 struct {
	state, noted      byte // Indexes of states.
	lookOnly, blurred bool
	holder            int8 // The actor whose claim it is, -1 for one that is gone.
	lease, window     int8 // Ticks from now, 0 for over.
	sent              int8 // SentUntil in ticks from now, not below -horizon.
}

// actor is a worker or the reconciler in the middle of its work.
type actor struct {
	phase      phase
	doubt      bool // What fold is told.
	absent     bool // A proof of absence came before.
	provable   bool // A look-up that finds nothing is a proof.
	resendable bool // The reconciler may resend instead of looking.
	found      byte // What a look-up found: Succeeded, Refused, or nothing.
	noted      byte // The note that its claim found.
	call       int8 // For how many ticks it may still write: a call is no longer than the lease that it was begun with.
	window     int8 // As the actor believes.
	wire       int8 // The delivery it waits for may still arrive for so many ticks; -1 for never.
	learned    [2]answer8
}

type phase byte

const (
	idle    phase = iota
	sending       // Holds a claim that allows to send.
	waiting       // A delivery is on its way.
	looking       // Holds a claim that allows to look only.
	proved        // The look-up proved absence: about to send.
	ready         // Nothing more to do but to conclude.
)

// keyMemory is what the provider remembers under the key.
type keyMemory byte

const (
	unknownKey keyMemory = iota
	keptSuccess
	keptRefusal
	keptFailure // A stored 500.
)

// answer8 is what an actor learned from one attempt.
type answer8 byte

const (
	nothing answer8 = iota
	executed
	replayed
	declined
	declinedReplayed
	limited       // 429
	failed        // A 500 that is stored, the first answer.
	failedReplay  // The stored 500 again.
	lost          // No answer, a 409, a 500 that is not stored: unknown, and worth another attempt.
	unsent        // Never written.
	executedTwice // Executed, and net/http sent the request twice.
	replayedTwice
	declinedTwice
)

var states = []recordstore.State{
	"", recordstore.Sending, recordstore.Succeeded, recordstore.Refused, recordstore.NotExecuted,
	recordstore.Uncertain, recordstore.ManualReview, recordstore.Abandoned, recordstore.Planned,
}

func indexOf(s recordstore.State) byte {
	for i, t := range states {
		if s == t {
			return byte(i)
		}
	}
	panic("unknown state " + s)
}

// visit is a state that was reached, and how.
type visit struct {
	world  world
	parent int32
	step   string
}

// explore visits every state that can be reached, and returns how many there
// are, or the shortest way to the first one that breaks a rule.
func explore(m *model) (count int, broken string) {
	start := world{astray: [2]int8{-1, -1}}
	start.ledger.holder = -1
	for i := range start.actors {
		start.actors[i].wire = -1
	}
	seen := map[world]struct{}{start: {}}
	visits := []visit{{world: start, parent: -1}}
	for at := 0; at < len(visits) && broken == ""; at++ {
		m.steps(visits[at].world, func(step string, w world, wrong string) {
			if broken != "" {
				return
			}
			m.settleDown(&w)
			if wrong == "" {
				wrong = m.wrong(w)
			}
			if wrong != "" {
				broken = wrong + "\n" + wayTo(visits, int32(at)) + step + " -> " + w.String()
				return
			}
			if _, known := seen[w]; !known {
				seen[w] = struct{}{}
				visits = append(visits, visit{w, int32(at), step})
			}
		})
	}
	return len(visits), broken
}

func wayTo(visits []visit, at int32) string {
	if at < 0 {
		return ""
	}
	return wayTo(visits, visits[at].parent) + fmt.Sprintf("%s -> %s\n", visits[at].step, visits[at].world)
}

func (w world) String() string {
	var b strings.Builder
	l := w.ledger
	fmt.Fprintf(&b, "%s", states[l.state])
	if l.noted != 0 {
		fmt.Fprintf(&b, " noted %s", states[l.noted])
	}
	fmt.Fprintf(&b, " holder %d lease %d window %d sent %d", l.holder, l.lease, l.window, l.sent)
	if l.lookOnly || l.blurred {
		fmt.Fprintf(&b, " lookOnly %v blurred %v", l.lookOnly, l.blurred)
	}
	for i, a := range w.actors {
		if a.phase != idle {
			fmt.Fprintf(&b, " | %d %+v", i, a)
		}
	}
	fmt.Fprintf(&b, " | effects %d key %d for %d astray %v", w.effects, w.key, w.keyFor, w.astray)
	return b.String()
}

// wrong says which invariant a state breaks; "" if none.
func (m *model) wrong(w world) string {
	state := states[w.ledger.state]
	switch {
	case w.effects > 1:
		return "a command has two effects"
	case state == recordstore.Succeeded && w.effects != 1:
		return "the ledger says succeeded and there is no effect"
	case state == recordstore.Refused || state == recordstore.NotExecuted:
		if why := m.untrueNone(w); why != "" {
			return fmt.Sprintf("the ledger says %s: %s", state, why)
		}
	}
	return ""
}

// untrueNone says why None may not be told; "" if it is true and stays true as
// long as nobody sends anew.
func (m *model) untrueNone(w world) string {
	if w.effects > 0 {
		return "the effect is applied"
	}
	late := func(left int8) bool { return left >= 0 && w.key == unknownKey }
	for _, left := range w.astray {
		if late(left) {
			return "a delivery astray can still be applied"
		}
	}
	for _, a := range w.actors {
		if a.phase == waiting && late(a.wire) {
			return "a delivery on its way can still be applied"
		}
	}
	return ""
}

// The decision table holds whatever two workers, a reconciler, webhooks, people
// and a provider do (R8, R9, R10, R17, R18).
func TestModel(t *testing.T) {
	for _, failures := range []replaysemantics.Failures{replaysemantics.Stored, replaysemantics.RunAgain} {
		count, broken := explore(newModel(t, goodRules(failures)))
		if broken != "" {
			t.Errorf("failures %q, after %d states: %s", failures, count, broken)
		}
		t.Logf("failures %q: %d states", failures, count)
	}
}

// Each known-bad variant of the table is caught.
func TestModelCatches(t *testing.T) {
	for _, v := range []struct {
		bad      mutation
		failures replaysemantics.Failures
	}{
		{blindResend, replaysemantics.Stored},
		{noFence, replaysemantics.RunAgain},
		{noDoubt, replaysemantics.Stored},
		{noneOn429, replaysemantics.Stored},
		{finalRefusal, replaysemantics.RunAgain},
		{noHorizon, replaysemantics.Stored},
		{slidingWindow, replaysemantics.RunAgain},
		{eventOverLease, replaysemantics.Stored},
	} {
		r := goodRules(v.failures)
		r.bad = v.bad
		count, broken := explore(newModel(t, r))
		if broken == "" {
			t.Errorf("%s: not caught in %d states", v.bad, count)
		}
		first, _, _ := strings.Cut(broken, "\n")
		t.Logf("%s: %s, found among %d states", v.bad, first, count)
	}
}

// The margin must cover how late a delivery may arrive: a shorter one lets a
// resend from inside the window arrive behind it.
func TestModelMargin(t *testing.T) {
	r := goodRules(replaysemantics.RunAgain)
	r.window, r.margin = r.window-1, r.margin-1
	if count, broken := explore(newModel(t, r)); !strings.HasPrefix(broken, "a command has two effects") {
		t.Errorf("a margin of %d ticks was not caught in %d states: %s", r.margin, count, broken)
	}
}
