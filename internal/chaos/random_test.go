package chaos

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// R8, R10, R20: four workers of two builds, every fifth request goes wrong, and every 300 ms
// a worker is killed and replaced. Each command has one effect, nothing is lost or left in the
// air, only what was made undecidable on purpose waits for a person, and every
// label is true. `make chaos` is the longer run; SAMEKEY_TEST_SEED repeats one.
func TestKilledAtRandom(t *testing.T) {
	for _, store := range stores {
		t.Run(store, func(t *testing.T) {
			t.Parallel() // with each other; the tests that are parallel come later
			seed := rand.Uint64()
			if text := os.Getenv("SAMEKEY_TEST_SEED"); text != "" {
				var err error
				if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
					t.Fatal(err)
				}
			}
			t.Logf("SAMEKEY_TEST_SEED=%d", seed)
			result, err := Run(t.Context(), Config{
				Ledger: Ledger(newPlace(t, store)), Seed: seed, Duration: 3 * time.Second, Commands: 150, Workers: 4, Log: t.Output(),
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%v; %d kills, %d faults, labels %v", result, result.Kills, result.Faults, result.Labels)
			if err := result.Err(); err != nil {
				t.Error(err)
			}
			if result.Kills < 3 || result.Faults < 20 || result.Undecidable != 3 {
				t.Errorf("%d kills, %d faults, %d undecidable: too few to prove anything", result.Kills, result.Faults, result.Undecidable)
			}
		})
	}
}
