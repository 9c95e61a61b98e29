package failures

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/sqlite"
)

// mountedEnv is set in the processes that may mount.
const mountedEnv = "SAMEKEY_FAILURES_MOUNT"

// onSmallDisk runs test with a folder on a disk of 512 KiB. The disk is mounted in
// a process with a mount table of its own, which is this test binary once more, so
// that nothing of it is to be seen outside or stays behind.
func onSmallDisk(t *testing.T, test func(t *testing.T, disk string)) {
	t.Helper()
	if os.Getenv(mountedEnv) != "" {
		disk := filepath.Join(t.TempDir(), "disk")
		if err := os.Mkdir(disk, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mount("samekey-test", disk, "tmpfs", 0, "size=512k"); err != nil {
			t.Fatalf("cannot mount a small disk: %v", err)
		}
		t.Cleanup(func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) }) // it goes with the process anyway
		test(t, disk)
		return
	}
	t.Parallel()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=2m")
	cmd.Env = append(os.Environ(), mountedEnv+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	if os.Geteuid() != 0 { // root of a user namespace may mount in it
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.EPERM) {
		t.Fatalf("no mount namespace for a small disk: run as root, or let users make user namespaces (sysctl kernel.unprivileged_userns_clone=1): %v", err)
	}
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Fatalf("%v\n%s", err, out)
	}
}

// fill writes to the disk until nothing more fits, and returns what makes room
// again.
func fill(t *testing.T, disk string) (free func()) {
	t.Helper()
	ballast := filepath.Join(disk, "ballast")
	f, err := os.Create(ballast)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk ends in %v, not full", err)
	}
	_ = f.Close() // what is written of it does not matter
	return func() {
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
	}
}

// R22: the disk is full when calls claim. Nothing is sent; the error names the
// disk; with room again the same call works.
func TestDiskFullAtTheClaim(t *testing.T) {
	onSmallDisk(t, func(t *testing.T, disk string) {
		s := newService(t, openLedger(t, filepath.Join(disk, "ledger.db")), nil)
		s.must(s.refund("before"))
		free := fill(t, disk)
		for range 3 {
			s.fails(s.refund("one"), "disk is full")
		}
		s.replayed(s.refund("before"), s.must(s.refund("before")).ExternalRef) // reading needs no room
		s.count(1, 1)
		free()
		if reply := s.must(s.refund("one")); reply.Label != outbound.NewExecution || reply.Unrecorded != nil {
			t.Errorf("%s, unrecorded: %v", reply.Label, reply.Unrecorded)
		}
		s.count(2, 2)
	})
}

// R22: the disk is full when the provider has answered. The answer is handed over,
// unrecorded. It is written down when there is room; where the process dies first,
// the next one asks the provider with the same key and gets the original answer.
func TestDiskFullAtTheSettlement(t *testing.T) {
	onSmallDisk(t, func(t *testing.T, disk string) {
		path := filepath.Join(disk, "ledger.db")
		ledger := openLedger(t, path)
		s := newService(t, ledger, nil)
		release := s.held(s.refund("one"))
		free := fill(t, disk)
		reply, err := release()
		s.unrecorded(reply, err, "disk is full")
		free()
		s.awaitState(ledger, "one", recordstore.Succeeded)
		s.replayed(s.refund("one"), reply.ExternalRef)
		s.count(1, 1)

		dying := s.again(ledger, shortLease)
		release = dying.held(s.refund("two"))
		free = fill(t, disk)
		reply, err = release()
		s.unrecorded(reply, err, "disk is full")
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if err := errors.Join(dying.Close(gone), ledger.Close()); !errors.Is(err, context.Canceled) {
			t.Errorf("the process ends in %v", err)
		}
		free()
		next := s.again(openLedger(t, path), shortLease)
		second, err := next.persist(s.refund("two"), nil)
		if err != nil || second.ExternalRef != reply.ExternalRef || second.Label != outbound.OriginalReplay {
			t.Fatalf("the next process gets %+v, %v", second, err)
		}
		s.count(2, 3)
	})
}

// A ledger on a disk that is mounted read-only is refused when it is opened, before
// any call, whoever the process runs as.
func TestReadOnlyDisk(t *testing.T) {
	onSmallDisk(t, func(t *testing.T, disk string) {
		path := filepath.Join(disk, "ledger.db")
		ledger := openLedger(t, path)
		s := newService(t, ledger, nil)
		ref := s.must(s.refund("one")).ExternalRef
		if err := ledger.Close(); err != nil {
			t.Fatal(err)
		}
		remount := func(flags uintptr) {
			if err := syscall.Mount("", disk, "", syscall.MS_REMOUNT|flags, ""); err != nil {
				t.Fatal(err)
			}
		}
		remount(syscall.MS_RDONLY)
		_, err := sqlite.Open(path, nil)
		if !errors.Is(err, syscall.EROFS) || errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), path) {
			t.Errorf("opening ends in %v; want one line that names the file and what is wrong", err)
		}
		remount(0)
		s.again(openLedger(t, path), nil).replayed(s.refund("one"), ref)
		s.count(1, 1)
	})
}
