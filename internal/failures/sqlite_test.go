package failures

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/sqlite"
)

func openLedger(t *testing.T, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // a test may have closed it
	return s
}

// lockTime is how long another process holds the file: longer than a claim waits,
// and than both tries of a settlement.
const lockTime = 10 * time.Second

// patient lets the ledger say itself that it waited for the file long enough.
func patient(o *outbound.Options) { o.ClaimTimeout, o.SettleTimeout = lockTime, lockTime }

// lockedByAnother returns when another process has locked the file. It lets go
// after lockTime; ended is closed then.
func lockedByAnother(t *testing.T, path string) (ended <-chan struct{}) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env, cmd.Stderr = append(os.Environ(), lockEnv+"="+path), os.Stderr
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); err != nil || line != "locked\n" {
		t.Fatalf("the other process says %q, %v", line, err)
	}
	gone := make(chan struct{})
	time.AfterFunc(lockTime, func() { _ = in.Close() }) // the process may be gone
	go func() {
		defer close(gone)
		_, _ = io.Copy(io.Discard, lines)
		_ = cmd.Wait() // killed where the test ends first
	}()
	return gone
}

// R22: another process has the file locked for 10 s when calls claim. They send
// nothing and say so in time; called again they have one effect each.
func TestFileLockedAtTheClaim(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	ledger := openLedger(t, path)
	s := newService(t, ledger, patient)
	s.must(s.refund("warm"))
	lockedByAnother(t, path)
	began := time.Now()
	s.fails(s.refund("one"), "database is locked")
	if took := time.Since(began); took > lockTime*3/4 {
		t.Errorf("two tries of 2 s took %v", took)
	}
	s.count(1, 1)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			call := s.refund(fmt.Sprintf("command-%d", i))
			reply, err := s.persist(call, s.unaskedHeard)
			if err != nil || reply.Unrecorded != nil {
				t.Errorf("%s ends in %+v, %v", call.Command.ID, reply, err)
			}
		})
	}
	all.Wait()
	if took := time.Since(began); took < lockTime-time.Second {
		t.Errorf("the calls ended after %v, while the file was locked", took)
	}
	s.count(5, 5)
}

// unaskedHeard is unasked for other goroutines than the test's.
func (s *service) unaskedHeard(err error) {
	if outbound.EffectOf(err) != outbound.EffectUnknown {
		s.t.Errorf("%v knows more than can be known", err)
	}
}

// R22: the file is locked for 10 s when the provider has answered. The answer is
// handed over, unrecorded, and written down when the file is free; nothing is sent
// a second time.
func TestFileLockedAtTheSettlement(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	ledger := openLedger(t, path)
	s := newService(t, ledger, patient)
	release := s.held(s.refund("one"))
	ended := lockedByAnother(t, path)
	reply, err := release()
	s.unrecorded(reply, err, "database is locked")
	if rec, err := s.record(ledger, "one"); err != nil || rec.State != recordstore.Sending {
		t.Errorf("under the lock the record is %q, %v; it can be read", rec.State, err)
	}
	<-ended
	rec := s.awaitState(ledger, "one", recordstore.Succeeded)
	if rec.Fence != 1 || rec.Deliveries != 1 || rec.Doubt {
		t.Errorf("the record has fence %d, %d deliveries, doubt %v", rec.Fence, rec.Deliveries, rec.Doubt)
	}
	s.replayed(s.refund("one"), reply.ExternalRef)
	s.count(1, 1)
}

// A claim whose own limit ends first, as it does with the default settings of both,
// says as well that the file was locked.
func TestLockedFileIsNamed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	s := newService(t, openLedger(t, path), nil)
	s.must(s.refund("warm"))
	lockedByAnother(t, path)
	s.fails(s.refund("one"), "database is locked")
	s.count(1, 1)
}

// What an answer says that the ledger could not be told is about the ledger: that
// something was sent is known, and that it is applied.
func TestUnrecordedDoesNotSayThatNothingWasSent(t *testing.T) {
	t.Parallel()
	ledger := openLedger(t, filepath.Join(t.TempDir(), "ledger.db"))
	s := newService(t, ledger, nil)
	release := s.held(s.refund("one"))
	if err := ledger.Close(); err != nil {
		t.Fatal(err)
	}
	reply, err := release()
	s.unrecorded(reply, err, "closed")
	if text := reply.Unrecorded.Error(); strings.Contains(text, "nothing was sent") {
		t.Errorf("an applied effect that is unrecorded: %q", text)
	}
}
