package chaos

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/outbound"
)

// skewedClock is added to package time of the workers with a wrong clock: all of
// their code, the standard library's included, reads it.
const skewedClock = `package time

import "syscall"

var skew = func() int64 {
	text, _ := syscall.Getenv("` + skewEnv + `")
	seconds, _ := atoi(text)
	return int64(seconds)
}()
`

const skewEnv = "SAMEKEY_TEST_CLOCK_SKEW"

// skewedWorker compiles the runner with a clock that SAMEKEY_TEST_CLOCK_SKEW, in
// seconds, sets forward or back. Nothing less is a real wrong clock: a process
// cannot have a wall clock of its own, and the clock of package time is no
// variable.
func skewedWorker(t *testing.T) string {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	src, dir := filepath.Join(strings.TrimSpace(string(root)), "src", "time"), t.TempDir()
	clock, err := os.ReadFile(filepath.Join(src, "time.go"))
	if err != nil {
		t.Fatal(err)
	}
	const reads = "sec, nsec, mono := runtimeNow()"
	if n := strings.Count(string(clock), reads); n != 1 {
		t.Fatalf("this Go release reads its clock %d times in time.go by %q: adapt this test", n, reads)
	}
	files := map[string]string{
		"time.go": strings.Replace(string(clock), reads, reads+"\n\tsec += skew", 1),
		"skew.go": skewedClock,
	}
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for name, text := range files {
		overlay.Replace[filepath.Join(src, name)] = filepath.Join(dir, name)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	overlayFile, worker := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "worker")
	if err := os.WriteFile(overlayFile, list, 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlayFile, "-tags", "postgresonly", "-o", worker, "./run")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build.Args, err, out)
	}
	return worker
}

func skewed(worker string, by time.Duration) program {
	return program{path: worker, env: []string{skewEnv + "=" + strconv.Itoa(int(by.Seconds()))}}
}

// R20: on PostgreSQL the workers' clocks are an hour apart, half of it on each
// side of the server's, and nothing comes of it: leases end when the server says
// so, windows and retention count from its time, the frontier is its own, and
// under kills and faults every command has one effect.
func TestClocksAnHourApart(t *testing.T) {
	worker := skewedWorker(t)
	fast, slow := skewed(worker, 30*time.Minute), skewed(worker, -30*time.Minute)

	t.Run("leases and windows", func(t *testing.T) {
		for _, order := range []struct {
			name        string
			first, next program
		}{{"fast, then slow", fast, slow}, {"slow, then fast", slow, fast}} {
			t.Run(order.name, func(t *testing.T) {
				s := newScene(t, "postgres", moneyKinds...)
				s.attach()
				holder := s.startProgram(order.first, doCalls, afterClaim)
				if err := holder.await(func(stopped, _ int) bool { return stopped == len(s.jobs) }); err != nil {
					t.Fatal(err)
				}
				s.wantServerTimes()
				second := s.startProgram(order.next, doCalls, "")
				if err := second.await(func(_, ended int) bool { return ended == len(s.jobs) }); err != nil {
					t.Fatal(err)
				}
				for id, end := range second.ended {
					if end.Code != string(outbound.ErrInFlight) {
						t.Errorf("%s, while another holds it: %q", id, end.Code)
					}
				}
				s.wantEffects(0)
				holder.kill()
				s.startProgram(order.next, doReconcile, "")
				s.awaitResolved()
				s.wantEffects(1)
				s.redeliver()
				s.wantNothingLeft()
			})
		}
	})
	t.Run("frontier", func(t *testing.T) {
		for name, pr := range map[string]program{"fast": fast, "slow": slow} {
			s := newScene(t, "postgres")
			today := s.dayOf(outbound.NewCommandID())
			if err := s.ledger.RaiseFrontier(t.Context(), "money", today-10); err != nil {
				t.Fatal(err)
			}
			want := map[string]string{}
			for age, code := range map[int]string{20: string(outbound.ErrForgotten), 5: "", 0: ""} {
				j, err := s.providers.job(stripePayment, age)
				if err != nil {
					t.Fatal(err)
				}
				if j.ID, err = keyderive.CommandID(time.Now().AddDate(0, 0, -age), name); err != nil {
					t.Fatal(err)
				}
				s.jobs, want[j.ID] = append(s.jobs, j), code
			}
			w := s.startProgram(pr, doCalls, "")
			if err := w.await(func(_, ended int) bool { return ended == len(s.jobs) }); err != nil {
				t.Fatal(err)
			}
			for id, end := range w.ended {
				if end.Code != want[id] {
					t.Errorf("%s clock, %s: %q, want %q", name, id, end.Code, want[id])
				}
			}
		}
	})
	t.Run("random kills", func(t *testing.T) {
		result, err := Run(t.Context(), Config{
			Ledger: Ledger(newPlace(t, "postgres")), Seed: 7, Duration: 4 * time.Second, Commands: 100, Workers: 4,
			Log: t.Output(), programs: []program{fast, slow},
		})
		if err = errors.Join(err, result.Err()); err != nil {
			t.Error(err)
		}
		t.Logf("%v; %d kills, %d faults", result, result.Kills, result.Faults)
	})
}

// wantServerTimes compares what a holder with a wrong clock wrote with the
// server's time.
func (s *scene) wantServerTimes() {
	s.t.Helper()
	for _, j := range s.jobs {
		rec, now, err := s.ledger.Get(s.t.Context(), s.idOf(j))
		if err != nil {
			s.t.Fatal(err)
		}
		if age := now.Sub(rec.ClaimedAt); age < 0 || age > time.Minute {
			s.t.Errorf("%s was claimed %v ago by the server's clock", j.ID, age)
		}
		if !rec.LeaseEndsAt.Equal(rec.ClaimedAt.Add(lease)) || !rec.WindowEndsAt.After(rec.ClaimedAt.Add(5*time.Hour)) || !rec.CreatedAt.Equal(rec.ClaimedAt) {
			s.t.Errorf("%s: claimed %v, lease ends %v, window ends %v", j.ID, rec.ClaimedAt, rec.LeaseEndsAt, rec.WindowEndsAt)
		}
	}
}
