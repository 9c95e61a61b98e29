package sqlite_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/sqlite"
)

// The test binary starts itself: with childEnv set it is another process on the
// ledger that the variable names, and does what jobEnv says.
const (
	childEnv = "SAMEKEY_TEST_LEDGER"
	jobEnv   = "SAMEKEY_TEST_JOB"
)

// jobs are what another process does until it is killed.
var jobs = map[string]func(*sqlite.Store, string) error{"claim": claimAll, "take": takeAll, "plan": planTwice, "hurry": callInAHurry}

const (
	processes  = 4
	goroutines = 4
	commands   = 200
)

func TestMain(m *testing.M) {
	path := os.Getenv(childEnv)
	if path == "" {
		os.Exit(m.Run())
	}
	if err := work(path, jobs[os.Getenv(jobEnv)]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// work waits until its input is closed, does a job on the ledger and prints
// "done". It then waits to be killed.
func work(path string, job func(*sqlite.Store, string) error) error {
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	s, err := sqlite.Open(path, &sqlite.Options{BusyTimeout: patience})
	if err != nil {
		return err
	}
	if err := job(s, path); err != nil {
		return err
	}
	fmt.Println("done")
	select {}
}

// claimAll claims every command in several goroutines and prints those that it may
// send.
func claimAll(s *sqlite.Store, _ string) error {
	errs := make(chan error, goroutines)
	for g := range goroutines {
		go func() { errs <- claimInOrder(s, fmt.Sprintf("%d/%d", os.Getpid(), g), g*commands/goroutines) }()
	}
	for range goroutines {
		if err := <-errs; err != nil {
			return err
		}
	}
	return nil
}

func claimInOrder(s *sqlite.Store, holder string, first int) error {
	for i := range commands {
		n := (first + i) % commands
		got, err := s.Claim(context.Background(), command(n, holder))
		if err != nil {
			return err
		}
		if got.Decision == recordstore.Send {
			fmt.Println("send", n)
		}
	}
	return nil
}

// command returns the claim of the n-th command.
func command(n int, holder string) recordstore.Claim {
	return recordstore.Claim{
		ID:       recordstore.ID{Day: 20000, KeyHash: [16]byte{byte(n), byte(n >> 8), byte(n >> 16)}},
		Provider: "stripe", Account: "acct_1/live", Operation: "refund.create", CommandID: fmt.Sprintf("refund-%d", n),
		Class: "money", Derivation: "k1", Derivations: []string{"k1"}, Fingerprints: [][]byte{{1, byte(n)}},
		SealVersion: 1, Request: []byte("sealed request"), Holder: holder,
		Lease: time.Hour, Window: 24 * time.Hour, Replay: 24 * time.Hour, Evidence: 24 * time.Hour,
	}
}

// child is a process started by start.
type child struct {
	cmd   *exec.Cmd
	start io.Closer
	out   *bufio.Scanner
}

func startChild(t *testing.T, path, job string) child {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), childEnv+"="+path, jobEnv+"="+job)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return child{cmd, in, bufio.NewScanner(out)}
}

// finish returns what the process prints until it is done, and kills it with the
// ledger still open.
func (c child) finish(t *testing.T) (lines []string) {
	for c.out.Scan() && c.out.Text() != "done" {
		lines = append(lines, c.out.Text())
	}
	if err := c.cmd.Process.Kill(); err != nil { // SIGKILL.
		t.Error(err)
	}
	_ = c.cmd.Wait() // It was killed.
	return lines
}

// R10: several processes that open one new file at once and claim the same
// commands make one Send of each. R20: what they hold outlives their death.
func TestProcessesShareOneFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	children := make([]child, processes)
	for i := range children {
		children[i] = startChild(t, path, "claim")
	}
	for _, c := range children {
		if err := c.start.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	sent := map[string]int{}
	var wg sync.WaitGroup
	for _, c := range children {
		wg.Go(func() {
			for _, line := range c.finish(t) {
				mu.Lock()
				sent[strings.TrimPrefix(line, "send ")]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()

	for n := range commands {
		if got := sent[fmt.Sprint(n)]; got != 1 {
			t.Errorf("command %d was sent %d times", n, got)
		}
	}
	s := open(t, path, nil)
	for n := range commands {
		got, err := s.Claim(t.Context(), command(n, "survivor"))
		if err != nil {
			t.Fatal(err)
		}
		if got.Decision != recordstore.InFlight || got.Record.Fence != 1 {
			t.Errorf("command %d after the processes were killed: %q with fence %d", n, got.Decision, got.Record.Fence)
		}
	}
}
