package chaos

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

// R17, R18: a process is killed between the steps of a purge, again and again. What is
// gone is forgotten, never executed a second time; what is not over stays.
func TestKilledDuringPurge(t *testing.T) {
	t.Parallel()
	for _, store := range stores {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			const old, young = 12, 4
			s := newScene(t, store)
			for n := range old + young {
				k := moneyKinds[n%len(moneyKinds)]
				j, err := s.providers.job(k, n)
				if err != nil {
					t.Fatal(err)
				}
				age := time.Duration(500-n) * 24 * time.Hour // days of their own, the young ones last
				if j.ID, err = keyderive.CommandID(time.Now().Add(-age), string(k), j.ID); err != nil {
					t.Fatal(err)
				}
				s.jobs = append(s.jobs, j)
			}
			s.redeliver() // for the first time
			s.wantEffects(1)
			lastOld, err := keyderive.CommandID(time.Now().Add(-(500-old+1)*24*time.Hour), "some", "command")
			if err != nil {
				t.Fatal(err)
			}
			s.expireUpTo(s.dayOf(lastOld))

			deaths := 0
			for {
				worker := s.start(doPurge, afterPurge)
				err := worker.await(func(stopped, _ int) bool { return stopped > 0 })
				worker.kill()
				if err != nil {
					break // ended by itself: nothing is left to purge
				}
				deaths++
			}
			if deaths < 2 {
				t.Errorf("only %d purges were killed", deaths)
			}
			for n, j := range s.jobs {
				_, err := s.clients[j.Kind.provider()].Do(t.Context(), j.call())
				switch {
				case n < old && !errors.Is(err, outbound.ErrForgotten):
					t.Errorf("%s was purged; called again: %v", j.ID, err)
				case n >= old && err != nil:
					t.Errorf("%s was not over; called again: %v", j.ID, err)
				}
			}
			s.wantEffects(1)
		})
	}
}

func (s *scene) dayOf(command string) int32 {
	s.t.Helper()
	key, err := s.clients["stripe"].Key(outbound.Command{ID: command}, operations[stripeRefund], "")
	if err != nil {
		s.t.Fatal(err)
	}
	return key.Day()
}

// expireUpTo ends the retention of all records of a day and before.
func (s *scene) expireUpTo(day int32) {
	s.t.Helper()
	const where = " WHERE day <= "
	n := strconv.Itoa(int(day))
	s.exec("UPDATE samekey.record SET created_at = created_at - interval '1 day', replay_until = clock_timestamp() - interval '2 h', evidence_until = clock_timestamp() - interval '1 h'"+where+n,
		"UPDATE samekey_records SET created_at = created_at - 86400000000, replay_until = replay_until - 1000 * 86400000000, evidence_until = evidence_until - 1000 * 86400000000"+where+n)
	if left, err := s.ledger.count(s.t.Context(), recordstore.Succeeded); err != nil || left != len(s.jobs) {
		s.t.Fatalf("%d records before the purge, %v", left, err)
	}
}
