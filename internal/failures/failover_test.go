package failures

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
	"github.com/seed-6b5e302b/samekey/recordstore/postgres"
)

const (
	failoverCalls   = 500
	failoverWorkers = 16
	failoverAt      = 200 // Effects before the primary is killed.
	failoverHeld    = 4   // Requests that the provider holds meanwhile.
)

// tally is what the callers of a failover hear.
type tally struct {
	mu         sync.Mutex
	first      map[string]*outbound.Reply // By command.
	codes      map[outbound.Code]int
	unrecorded int
	wrong      []error
}

// metOutage reports whether somebody has met the outage at a claim, and everybody
// whom the provider answered during it at the settlement.
func (l *tally) metOutage() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.codes[outbound.ErrStore] > 0 && l.unrecorded >= failoverHeld
}

func (l *tally) heard(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ours := errors.AsType[*outbound.Error](err)
	if !ours || e.Sent || e.Effect != outbound.EffectUnknown || e.Code != outbound.ErrStore && e.Code != outbound.ErrInFlight {
		l.wrong = append(l.wrong, err)
		return
	}
	l.codes[e.Code]++
}

func (l *tally) answered(command string, reply *outbound.Reply, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.wrong = append(l.wrong, fmt.Errorf("%s: %w", command, err))
		return
	}
	l.first[command] = reply
	if reply.Unrecorded != nil {
		l.unrecorded++
		if !errors.Is(reply.Unrecorded, outbound.ErrStore) || outbound.EffectOf(reply.Unrecorded) != outbound.EffectApplied {
			l.wrong = append(l.wrong, fmt.Errorf("%s is unrecorded: %w", command, reply.Unrecorded))
		}
	}
}

// R10, R22: a primary with a synchronous standby is killed in the middle of 500
// calls, and the standby promoted. Callers who go on as RetryAfter says end with
// 500 effects; who was answered and recorded before is never sent again; a call in
// flight ends in an answer, or in an error that says that it sent nothing.
func TestFailoverToSynchronousStandby(t *testing.T) {
	t.Parallel()
	primary := newNode(t)
	standby := primary.standby()
	pool, err := pgxpool.New(t.Context(), primary.dsn(standby)+"&pool_max_conns=16")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if err := postgres.Migrate(t.Context(), pool, nil); err != nil {
		t.Fatal(err)
	}
	s := newService(t, postgres.New(pool, nil), func(o *outbound.Options) {
		o.Lease, o.Retry.AttemptTimeout, o.Retry.CallTimeout = 8*time.Second, 5*time.Second, 6*time.Second
	})
	until := make(chan struct{})
	s.fake.Inject(providertest.Fault{Kind: providertest.SlowApply, Operation: refundCreate, Times: failoverHeld, Skip: failoverAt, Until: until})

	l := &tally{first: map[string]*outbound.Reply{}, codes: map[outbound.Code]int{}}
	commands := make(chan string)
	var all sync.WaitGroup
	for range failoverWorkers {
		all.Go(func() {
			for command := range commands {
				reply, err := s.persist(s.refund(command), l.heard)
				l.answered(command, reply, err)
			}
		})
	}
	go func() {
		defer close(commands)
		for i := range failoverCalls {
			commands <- fmt.Sprintf("failover-%d", i)
		}
	}()
	s.fake.AwaitHeld(failoverHeld)
	primary.kill()
	close(until) // their effects are applied, and there is nobody to tell
	for end := time.Now().Add(30 * time.Second); !l.metOutage(); <-time.After(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("30 s after its end not everybody has noticed that the ledger is gone")
		}
	}
	standby.promote()
	all.Wait()

	for _, err := range l.wrong {
		t.Errorf("says less than is known, or more: %v", err)
	}
	t.Logf("errors by code: %v; %d answers were not recorded at once", l.codes, l.unrecorded)
	s.wantAllSucceeded(pool, l)
}

// wantAllSucceeded calls every command once more, and looks into the ledger.
func (s *service) wantAllSucceeded(pool *pgxpool.Pool, l *tally) {
	s.t.Helper()
	requests := len(s.fake.Requests(refundCreate))
	for command, first := range l.first {
		if reply, err := s.persist(s.refund(command), nil); err != nil || reply.ExternalRef != first.ExternalRef {
			s.t.Errorf("%s, called again: %v, %v; first %s", command, reply, err, first.ExternalRef)
		} else if first.Unrecorded == nil && (reply.Origin != outbound.FromLedger || reply.Deliveries != first.Deliveries) {
			s.t.Errorf("%s was recorded after %d deliveries, and then came from the %s after %d", command, first.Deliveries, reply.Origin, reply.Deliveries)
		}
	}
	if again := len(s.fake.Requests(refundCreate)) - requests; again > l.unrecorded {
		s.t.Errorf("%d requests were sent again, %d answers had not been recorded", again, l.unrecorded)
	}
	if e, d := s.fake.Effects(refundCreate), s.fake.Duplicates(); e != failoverCalls || d != 0 || len(l.first) != failoverCalls {
		s.t.Errorf("%d effects, %d of them twice, %d answers; want %d", e, d, len(l.first), failoverCalls)
	}
	var succeeded, others int
	if err := pool.QueryRow(s.t.Context(), `SELECT count(*) FILTER (WHERE state = 'succeeded'), count(*) FILTER (WHERE state <> 'succeeded')
		FROM samekey.record`).Scan(&succeeded, &others); err != nil || succeeded != failoverCalls || others != 0 {
		s.t.Errorf("%d records succeeded and %d did not, %v; want %d", succeeded, others, err, failoverCalls)
	}
}
