package chaos

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

// R21: a codec that panics over one record sends that record to review, after few
// checks, and no other: the reconciler and its process live on.
func TestPanickingCodecEndsInReview(t *testing.T) {
	t.Parallel()
	for _, how := range []struct {
		name      string
		resendFor time.Duration
	}{
		{"in Judge, when resent", time.Hour},
		{"in FindAll, when looked up", time.Nanosecond},
	} {
		for _, store := range stores {
			t.Run(how.name+"/"+store, func(t *testing.T) {
				t.Parallel()
				fake := fakeprovider.New(newBulkDialect, nil)
				server, err := fakeprovider.Listen(fake)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(server.Close)
				l, err := open(t.Context(), newPlace(t, store), true)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(l.close)
				client, err := middle.newClient(newBulk(poisoned{}, server.URL, server.Transport()), l.store)
				if err != nil {
					t.Fatal(err)
				}
				const commands = 10
				loseBulkAnswers(t, fake, client, commands)

				opts := quick()
				opts.ResendFor = how.resendFor
				r, err := outbound.NewReconciler(opts, client)
				if err != nil {
					t.Fatal(err)
				}
				arrived := len(fake.Requests(""))
				for over := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
					if _, err := r.Sweep(t.Context()); err != nil {
						t.Fatal(err)
					}
					open, err := l.count(t.Context(), unresolved...)
					if err != nil {
						t.Fatal(err)
					}
					if open == 0 {
						break
					}
					if time.Now().After(over) {
						t.Fatalf("%d records are still unresolved", open)
					}
				}
				review, err := l.waiting(t.Context(), recordstore.ManualReview)
				if err != nil || len(review) != 1 || review[0].command != bulkCommand(poisonedOne).ID {
					t.Errorf("in review: %v, %v; want the poisoned command alone", review, err)
				}
				if n := len(fake.Requests("")) - arrived; n > 3*commands {
					t.Errorf("%d requests for %d records", n, commands)
				}
				if n := fake.Effects(""); n != commands || fake.Report().Duplicates != 0 {
					t.Errorf("%d effects of %d commands", n, commands)
				}
			})
		}
	}
}

const poisonedOne = 4

func bulkCommand(n int) outbound.Command { return outbound.Command{ID: fmt.Sprint("bulk-", n)} }

// loseBulkAnswers makes calls whose answers are lost, one of them poisoned, and
// wakes their records.
func loseBulkAnswers(t *testing.T, fake *fakeprovider.Fake, client *outbound.Client, commands int) {
	t.Helper()
	if err := fake.Inject(fakeprovider.Fault{Kind: fakeprovider.DropAfterApply, Times: -1}); err != nil {
		t.Fatal(err)
	}
	for n := range commands {
		b := bulkBody{Group: "g"}
		if n == poisonedOne {
			b.Note = poison
		}
		if _, err := client.Do(t.Context(), bulkCall(bulkCommand(n), "", b)); !errors.Is(err, outbound.ErrUncertain) {
			t.Fatalf("all answers lost: %v", err)
		}
	}
	fake.ClearFaults()
	for n := range commands {
		err := client.Observe(t.Context(), outbound.Observation{
			Provider: "bulk", Command: bulkCommand(n), Operations: []string{bulkTransfer.Name}, EventType: "chaos",
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
