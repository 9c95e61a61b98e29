package chaos

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

// R23: two builds work side by side on one ledger, and a process of the one is
// killed with its requests unanswered. The other ends its commands and replays
// them, where it reads what was written; no honest repetition is a conflict.
func TestRollingDeploy(t *testing.T) {
	t.Parallel()
	for _, deploy := range []struct {
		name        string
		first, next build
	}{
		{"the old build's records, read by the one that reads both", oldBuild, middle},
		{"the middle build's records, read by the old one", middleSealedOld(), oldBuild},
		{"the middle build's records, read by the one that writes anew", middle, nextBuild},
		{"the new build's records, read by the middle one", nextBuild, middle},
		{"the old build's records, read by one that skipped the middle", oldBuild, nextBuild},
	} {
		for _, store := range stores {
			t.Run(deploy.name+"/"+store, func(t *testing.T) {
				t.Parallel()
				s := newScene(t, store, moneyKinds...)
				s.attach()
				s.dieUnanswered(deploy.first)
				s.startProgram(program{build: deploy.next}, doReconcile, "")
				s.awaitResolved()
				s.wantEffects(1)
				for _, b := range []build{deploy.first, deploy.next} {
					s.wantCodes(b, "")
				}
				s.wantEffects(1)
				s.wantNothingLeft()
			})
		}
	}
}

// middleSealedOld is the middle build while the old one still runs beside it: the
// new seal key is written once every process has it.
func middleSealedOld() build { return build{middle.Canonicals, oldBuild.Seals} }

// dieUnanswered calls all jobs from a process of a build, and kills it once the
// requests are written and before they are performed.
func (s *scene) dieUnanswered(b build) {
	s.t.Helper()
	s.inject(fakeprovider.Fault{Kind: fakeprovider.LateApply, Delay: 200 * time.Millisecond})
	w := s.startProgram(program{build: b}, doCalls, afterWrite)
	if err := w.await(func(stopped, _ int) bool { return stopped >= len(s.jobs) }); err != nil {
		s.t.Fatal(err)
	}
	w.kill()
}

// wantCodes calls all jobs as a build does; "" wants a reply.
func (s *scene) wantCodes(b build, want outbound.Code) {
	s.t.Helper()
	for _, j := range s.jobs {
		name, p := j.Kind.provider(), s.providers[j.Kind.provider()]
		client, err := b.newClient(b.adapterOf(name, p.server.URL, p.server.Transport()), s.ledger.store)
		if err != nil {
			s.t.Fatal(err)
		}
		s.poll(fmt.Sprintf("%s, called by the build %v", j.ID, b), func() error {
			_, err = client.Do(s.t.Context(), j.call())
			if errors.Is(err, outbound.ErrStore) || errors.Is(err, outbound.ErrInFlight) {
				return err
			}
			return nil
		})
		if want == "" && err != nil || want != "" && !errors.Is(err, want) {
			s.t.Errorf("%s, called by the build %v: %v, want %q", j.ID, b, err, want)
		}
	}
}

// R23: a build that meets what only a later one understands sends nothing, and
// leaves the record alone: neither a conflict nor a guess. The later build ends it.
func TestRecordsOfALaterBuildAreLeftAlone(t *testing.T) {
	t.Parallel()
	for _, store := range stores {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, store, moneyKinds...)
			s.attach()
			s.dieUnanswered(nextBuild)
			s.awaitLeases()
			before := s.requests()
			s.wantCodes(oldBuild, outbound.ErrNewerRecord)
			s.sweep(oldBuild)
			if after := s.requests(); after != before {
				t.Errorf("the old build sent %d requests about records that it cannot read", after-before)
			}
			s.startProgram(program{build: nextBuild}, doReconcile, "")
			s.awaitResolved()
			s.wantCodes(oldBuild, outbound.ErrNewerRecord)
			s.wantCodes(nextBuild, "")
			s.wantEffects(1)
			s.wantNothingLeft()
		})
	}
}

// sweep sweeps once as a build does.
func (s *scene) sweep(b build) {
	s.t.Helper()
	var clients []*outbound.Client
	for name, p := range s.providers {
		c, err := b.newClient(b.adapterOf(name, p.server.URL, p.server.Transport()), s.ledger.store)
		if err != nil {
			s.t.Fatal(err)
		}
		clients = append(clients, c)
	}
	r, err := outbound.NewReconciler(quick(), clients...)
	if err != nil {
		s.t.Fatal(err)
	}
	var swept outbound.Swept
	s.poll("no sweep", func() error {
		swept, err = r.Sweep(s.t.Context())
		return err
	})
	if swept.Found != len(s.jobs) || swept.Settled+swept.Resent+swept.LookedUp+swept.Postponed+swept.ToReview > 0 {
		s.t.Errorf("the build %v swept what it cannot read: %+v", b, swept)
	}
}

// awaitLeases waits until nobody holds a record.
func (s *scene) awaitLeases() {
	s.t.Helper()
	s.poll("leases are alive", func() error {
		for _, j := range s.jobs {
			rec, now, err := s.ledger.Get(s.t.Context(), s.idOf(j))
			if err != nil || now.Before(rec.LeaseEndsAt) {
				return errors.Join(err, fmt.Errorf("%s is held", j.ID))
			}
		}
		return nil
	})
}

// requests is how many requests about the jobs arrived at the fakes.
func (s *scene) requests() (n int) {
	for _, j := range s.jobs {
		n += len(s.providers[j.Kind.provider()].fake.Requests(operations[j.Kind]))
	}
	return n
}

// R27: while seal keys rotate, some processes have the old key, some the new one,
// some both. A reconciler with the key resends; one without it looks up, and sends
// nothing: what cannot be found without the request's bytes waits for a caller who
// brings them. Every command ends with one effect, and every process answers it.
func TestSealRotation(t *testing.T) {
	t.Parallel()
	both, old, missing := nextBuild.Seals, []string{lastYear}, []string{"2031"}
	for _, c := range []struct {
		name          string
		writes, reads []string
		resends       bool
	}{
		{"old key, read by both", old, both, true},
		{"new key, read by both", both, both, true},
		{"new key, read by the old one", both, old, false},
		{"old key, read by one that has lost it", old, missing, false},
	} {
		for _, store := range stores {
			t.Run(c.name+"/"+store, func(t *testing.T) {
				t.Parallel()
				s := newScene(t, store, moneyKinds...)
				s.attach()
				writer, reader := build{Seals: c.writes}, build{Seals: c.reads}
				s.dieUnanswered(writer)
				for _, j := range s.jobs {
					s.awaitEffect(j)
				}
				before := s.requests()
				reconciler := s.startProgram(program{build: reader}, doReconcile, "")
				s.awaitSucceeded(stripeRefund, stripePayment)
				if c.resends {
					s.awaitResolved()
				}
				reconciler.kill()
				if n := s.requests() - before; (n > 0) != c.resends {
					t.Errorf("%d requests were sent again, want some: %t", n, c.resends)
				}
				s.awaitLeases()
				for _, b := range []build{writer, reader, {}} {
					s.wantCodes(b, "")
				}
				s.wantEffects(1)
				s.wantNothingLeft()
			})
		}
	}
}

// awaitSucceeded waits until the jobs of some kinds have succeeded.
func (s *scene) awaitSucceeded(kinds ...kind) {
	s.t.Helper()
	s.poll("not found", func() error {
		for _, j := range s.jobs {
			rec, _, err := s.ledger.Get(s.t.Context(), s.idOf(j))
			if err == nil && rec.State != recordstore.Succeeded && slices.Contains(kinds, j.Kind) {
				err = fmt.Errorf("%s is %s", j.ID, rec.State)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// awaitEffect waits until a command has happened.
func (s *scene) awaitEffect(j job) {
	s.t.Helper()
	s.poll(j.ID+" does not happen", func() error {
		n, err := s.providers.effects(j, s.clients[j.Kind.provider()])
		if err == nil && n == 0 {
			err = errors.New("not yet")
		}
		return err
	})
}

// R27: what never arrived and cannot be opened is sent by a caller who brings the
// same input again.
func TestSealKeyIsMissingForWhatNeverArrived(t *testing.T) {
	t.Parallel()
	s := newScene(t, "sqlite", moneyKinds...)
	s.attach()
	s.inject(fakeprovider.Fault{Kind: fakeprovider.DropBeforeApply})
	w := s.startProgram(program{build: build{Seals: []string{lastYear}}}, doCalls, afterWrite)
	if err := w.await(func(stopped, _ int) bool { return stopped >= len(s.jobs) }); err != nil {
		t.Fatal(err)
	}
	w.kill()
	s.awaitLeases()
	s.wantCodes(build{Seals: []string{"2031"}}, "")
	s.wantEffects(1)
	s.wantNothingLeft()
}
