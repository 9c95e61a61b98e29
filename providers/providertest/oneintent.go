package providertest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Try is what differs between the tries of one intent in production. A function
// given to OneIntent passes it on as its job queue or web server would, and makes
// nothing of it that the provider sees.
type Try struct {
	Attempt int    // Of the job, 1 for the first.
	Run     string // Names the run of the job or workflow, the request or the trace.
}

// OneIntent fails the test where one intent becomes more than one: where its command
// ID is made inside the call, of a random, of the clock, of the attempt or of the
// run, instead of being read from the row that was stored before. The judges are
// fake's count and its request log: effects is how many effects the intent has in
// all, 1 for a refund; and no operation may be sent under more keys than that. So a
// fresh ID is found too where the object allows one effect only, as a capture.
//
// try works on one intent, always the same row. It is called six times: four times
// while every answer to a write is lost, with another thing that differs each time;
// then twice while nothing goes wrong, where it has to succeed. What it reports while
// answers are lost does not count. A client's own retries cost time then:
// outbound.Retry with Attempts 1 makes the test quick.
//
// IDs of the clock are found where it has moved between two tries. In a bubble of
// testing/synctest, with a fake that is InMemory, an hour passes between them, the
// first of them over midnight UTC; outside only an ID of less than milliseconds is
// sure to be found. Faults of fake that were armed before are forgotten. Nothing
// else may speak to fake meanwhile.
func OneIntent(tb testing.TB, fake *Fake, effects int, try func(Try) error) {
	tb.Helper()
	if effects < 1 {
		tb.Fatalf("providertest: OneIntent: an intent with %d effects proves nothing: say how many effects it has in all", effects)
	}
	w := &witness{fake: fake, effects: fake.Effects(""), requests: len(fake.Requests("")), clock: fake.limit == memoryLimit && inBubble()}
	if w.clock {
		w.wait(tb, untilBeforeMidnight(time.Now()))
	}
	for i, step := range intentSteps {
		if i > 0 && w.clock {
			w.wait(tb, time.Hour)
		}
		fake.ClearFaults()
		if step.lost {
			fake.Inject(Fault{Kind: DropAfterApply, Times: maxLost})
		}
		err := try(step.try)
		fake.ClearFaults()
		w.look()
		if had := fake.Effects("") - w.effects; had > effects {
			tb.Fatalf("providertest: OneIntent: one intent had %d effects, want %d: %s. %s", had, effects, w.sent(), intentSteps[w.blame()].blame)
		}
		if w.mostKeys() > effects {
			tb.Fatalf("providertest: OneIntent: one intent of %d effects became more commands: %s. %s", effects, w.sent(), intentSteps[w.blame()].blame)
		}
		if !step.lost && err != nil {
			tb.Fatalf("providertest: OneIntent: nothing went wrong at try %d, and it ended in an error: "+
				"a try of what was done already has to find that out and succeed: %v", i+1, err)
		}
	}
	if had := fake.Effects("") - w.effects; had != effects {
		tb.Fatalf("providertest: OneIntent: the intent had %d effects, want %d: let each try do the whole of it", had, effects)
	}
}

// maxLost is more answers than one try loses.
const maxLost = 1_000

const (
	storeID = " Make the command ID once, store it with your own row before the first call, and read it from there at every try: docs/command-ids.md."
	inside  = "Nothing but the time differed between the tries: the ID is made inside the call, as by NewCommandID, a new UUID or time.Now." + storeID
)

// intentSteps are the tries, each with what it means if a second key appears there.
var intentSteps = []struct {
	try   Try
	lost  bool
	blame string
}{
	{Try{1, "run-a"}, true, "All came within one try: a loop inside it makes an ID at each turn." + storeID},
	{Try{1, "run-a"}, true, inside},
	{Try{2, "run-a"}, true, "The attempt differed between the tries: its number is a part of the ID." + storeID},
	{Try{2, "run-b"}, true, "The run differed between the tries: the run's, job's or request's own ID is a part of the ID." + storeID},
	{Try{2, "run-b"}, false, inside},
	{Try{3, "run-c"}, false, "Attempt and run differed, and the try before had succeeded: one of them, the time or a random is a part of an ID." + storeID},
}

// witness knows what an intent sent.
type witness struct {
	fake     *Fake
	effects  int // Before the first try.
	requests int // That were looked at.
	clock    bool
	tries    []map[sentKey]bool
}

// sentKey is a key that arrived with a write.
type sentKey struct {
	operation string
	hash      [32]byte
}

// look notes what the last try sent.
func (w *witness) look() {
	sent := make(map[sentKey]bool)
	all := w.fake.Requests("")
	for _, r := range all[min(w.requests, len(all)):] {
		if r.KeyHash != ([32]byte{}) {
			sent[sentKey{r.Operation, r.KeyHash}] = true
		}
	}
	w.requests = len(all)
	w.tries = append(w.tries, sent)
}

// blame returns the first try under loss that brought a key though a try before had
// sent the same operation; without such a one the last. The first try without loss
// goes further than those before it, so that new keys are no sign there.
func (w *witness) blame() int {
	keys, operations := make(map[sentKey]bool), make(map[string]bool)
	for i, sent := range w.tries {
		for k := range sent {
			if i > 0 && intentSteps[i].lost && operations[k.operation] && !keys[k] {
				return i
			}
		}
		for k := range sent {
			keys[k], operations[k.operation] = true, true
		}
	}
	return len(w.tries) - 1
}

// keys counts the keys that each operation was sent under.
func (w *witness) keys() map[string]int {
	all := make(map[sentKey]bool)
	for _, sent := range w.tries {
		maps.Copy(all, sent)
	}
	counts := make(map[string]int)
	for k := range all {
		counts[k.operation]++
	}
	return counts
}

// mostKeys is the count of the operation with the most keys.
func (w *witness) mostKeys() (most int) {
	for _, n := range w.keys() {
		most = max(most, n)
	}
	return most
}

// sent says how many keys each operation was sent under.
func (w *witness) sent() string {
	counts := w.keys()
	var parts []string
	for _, operation := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s was sent under %d keys", operation, counts[operation]))
	}
	if len(parts) == 0 {
		return "nothing was sent under a key"
	}
	return strings.Join(parts, ", ")
}

// wait lets the bubble's time pass.
func (w *witness) wait(tb testing.TB, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-tb.Context().Done():
	}
}

// untilBeforeMidnight is how long it is until half an hour before a midnight.
func untilBeforeMidnight(now time.Time) time.Duration {
	day := now.UTC().Truncate(24 * time.Hour)
	until := day.Add(23*time.Hour + 30*time.Minute).Sub(now)
	if until < 0 {
		until += 24 * time.Hour
	}
	return until
}

// inBubble reports whether the caller is in a bubble of testing/synctest.
func inBubble() (yes bool) {
	defer func() { yes = recover() == nil }() // outside Wait panics
	synctest.Wait()
	return true
}
