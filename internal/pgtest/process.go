package pgtest

import (
	"errors"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// Process is a program that lives no longer than this process, kill -9 included.
type Process struct {
	lifeline *os.File // The keeper stops the program when this end is closed.
	ended    chan struct{}
}

// Stop ends the program at once and waits until it is gone. Stopping
// twice does nothing.
func (p *Process) Stop() {
	p.lifeline.Close()
	<-p.ended
}

// Ended is closed when the program is gone, however it ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Folder returns a new folder that a server's user owns. Its path is short enough
// for a socket in it. It goes when the test ends.
func Folder(t testing.TB) string {
	t.Helper()
	owner, err := ServerUser()
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	dir, err := os.MkdirTemp("/tmp", "samekey-pg-")
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // what a stopped server still held goes with the machine
	if owner != nil {
		if err := os.Chown(dir, int(owner.Uid), int(owner.Gid)); err != nil {
			t.Fatalf("pgtest: %v", err)
		}
	}
	return dir
}

// Run starts a program as the user that servers run as: a standby, a proxy in
// front of a server. It is stopped when the test ends. What it says is in the file
// log of the folder run, which must not exist yet, and goes with the program.
func Run(t testing.TB, run string, command ...string) *Process {
	t.Helper()
	owner, err := ServerUser()
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	if err := os.Mkdir(run, 0o700); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	if owner != nil {
		if err := os.Chown(run, int(owner.Uid), int(owner.Gid)); err != nil {
			t.Fatalf("pgtest: %v", err)
		}
	}
	p, err := keep(run, owner, command...)
	if err != nil {
		t.Fatalf("pgtest: %s: %v", command[0], err)
	}
	t.Cleanup(p.Stop)
	return p
}

// keeper runs the server ($2...) and ends it when descriptor 3 is closed, which
// the kernel does when the process that started it is gone. $1 is the folder to
// remove. SIGQUIT skips the closing checkpoint: nobody reads the data again. What
// ignores it, as PgBouncer, ends by SIGTERM.
const keeper = `dir=$1; shift
"$@" & server=$!
(read -r _ <&3; kill -QUIT $server; kill -TERM $server) 2>/dev/null &
wait $server
cd / && rm -rf "$dir"`

// keep starts command under the keeper, in a session of its own so that Ctrl-C
// ends the tests first.
func keep(dir string, owner *syscall.Credential, command ...string) (*Process, error) {
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, errors.Join(err, ours.Close())
	}
	defer log.Close()
	cmd := exec.Command("/bin/sh", append([]string{"-c", keeper, "keeper", dir}, command...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = dir, log, log, []*os.File{theirs}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: owner, Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, ours.Close())
	}
	p := &Process{lifeline: ours, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		_ = cmd.Wait() // how it ended is in its log
	}()
	return p, nil
}

// ServerUser is whom a server runs as: nil for the present user, since only
// root must change (PostgreSQL refuses to run as root).
func ServerUser() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, errors.New("PostgreSQL does not run as root, and there is neither a user postgres nor nobody")
}
