package simulation

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"
)

var (
	seedFlag   = flag.Uint64("seed", 0, "the first seed to play; 0 takes one from the clock")
	seedsFlag  = flag.Int("seeds", 200, "how many seeds to play")
	forFlag    = flag.Duration("for", 0, "how long to play seeds, instead of a number of them")
	searchFlag = flag.Bool("search", false, "search seeds for each known-bad variant, instead of playing those that are known")
)

func firstSeed() uint64 {
	if *seedFlag != 0 {
		return *seedFlag
	}
	return uint64(time.Now().UnixNano()) % 1_000_000_000
}

// Whatever workers, crashes, faults, clocks, webhooks, people and purges do: one
// effect for each command, no None beside an effect, legal moves only, true labels,
// nothing that was forgotten executed anew, and nothing left uncertain in the end
// (R8, R9, R10, R11, R13, R17, R18, R20, R21, R22). What was sent without the
// ledger is protected for the provider's window, and what an SDK sent by itself is
// never sent by us.
// A failing seed is played again with -run TestSimulation -seed N -seeds 1.
func TestSimulation(t *testing.T) {
	first, begun, n := firstSeed(), time.Now(), 0
	more := func() bool {
		if *forFlag > 0 {
			return time.Since(begun) < *forFlag
		}
		return n < *seedsFlag
	}
	for ; more(); n++ {
		seed := first + uint64(n)
		if o := play(t, seed, good); o.broken != "" {
			t.Fatalf("seed %d: %s\n%s", seed, o.broken, strings.Join(o.log, "\n"))
		}
	}
	tell(t, fmt.Sprintf("played %d seeds, from %d on", n, first))
}

// A seed is the whole schedule: playing it again gives the same run.
func TestRepeats(t *testing.T) {
	for seed := range uint64(10) {
		a, b := play(t, seed+1, good), play(t, seed+1, good)
		for i := range max(len(a.log), len(b.log)) {
			if i == len(a.log) || i == len(b.log) || a.log[i] != b.log[i] {
				t.Errorf("seed %d does not repeat itself from here on:\n%s\n\nand\n\n%s", seed+1, around(a.log, i), around(b.log, i))
				break
			}
		}
	}
}

func around(log []string, i int) string {
	return strings.Join(log[max(0, i-5):min(len(log), i+5)], "\n")
}

// variants are the known-bad builds, each with a seed that is known to catch it.
var variants = []struct {
	bad   variant
	known uint64
}{
	{blindResend, 19}, {noFence, 27}, {noDoubt, 18}, {noneOn429, 35}, {finalRefusal, 46}, {noHorizon, 282},
	{slidingWindow, 194}, {eventOverLease, 139}, {noFrontier, 8}, {foreignResend, 38}, {keylessResend, 21},
}

// searchFor bounds the search for a seed that catches one variant.
const searchFor = time.Minute

// Each known-bad variant of the core is caught, by a seed that is known to catch
// it or, after the core has changed, by one near it. With -search the seed is new.
func TestVariants(t *testing.T) {
	for _, v := range variants {
		t.Run(string(v.bad), func(t *testing.T) {
			seed := v.known
			if *searchFlag {
				seed = firstSeed()
			}
			begun := time.Now()
			for n := 1; ; n, seed = n+1, seed+1 {
				if o := play(t, seed, v.bad); o.broken != "" {
					tell(t, fmt.Sprintf("%s: caught by seed %d, the %d. played, in %v: %s", v.bad, seed, n, time.Since(begun).Round(time.Millisecond), o.broken))
					return
				}
				if time.Since(begun) > searchFor && n >= leastSeeds {
					t.Fatalf("not caught by the %d seeds up to %d", n, seed)
				}
			}
		})
	}
}

// leastSeeds are played however slow the machine is.
const leastSeeds = 2000

// tell logs a result, on standard output where something was searched for.
func tell(t *testing.T, result string) {
	t.Helper()
	if *searchFlag || *forFlag > 0 {
		fmt.Println(result)
		return
	}
	t.Log(result)
}
