package pgtest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// Server is a private PostgreSQL in a temporary folder, with fsync on. It stops
// and its folder goes when Stop is called, and also when the process ends in any
// way, kill -9 included.
type Server struct {
	DSN string // Of its database "postgres", as a superuser, over the Unix socket.

	lifeline *os.File // The keeper stops the server when this end is closed.
	ended    chan struct{}
}

// keeper runs the server ($2...) and ends it when descriptor 3 is closed, which
// the kernel does when the process that started it is gone. $1 is the folder to
// remove. SIGQUIT skips the closing checkpoint: nobody reads the data again.
const keeper = `dir=$1; shift
"$@" & server=$!
(read -r _ <&3; kill -QUIT $server) 2>/dev/null &
wait $server
cd / && rm -rf "$dir"`

// Start makes and starts a server. It needs PostgreSQL 15 or newer; the error
// says how to install it.
func Start() (*Server, error) {
	bin, err := Programs()
	if err != nil {
		return nil, err
	}
	owner, err := serverUser()
	if err != nil {
		return nil, err
	}
	// Not os.TempDir: a socket's path has at most 107 bytes, and the server's user
	// must reach it.
	dir, err := os.MkdirTemp("/tmp", "samekey-pg-")
	if err != nil {
		return nil, err
	}
	s, err := start(bin, dir, owner)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

// Stop ends the server and waits until it is gone.
func (s *Server) Stop() {
	s.lifeline.Close()
	<-s.ended
}

func start(bin, dir string, owner *syscall.Credential) (*Server, error) {
	password := rand.Text()
	pwfile := filepath.Join(dir, "password")
	if err := os.WriteFile(pwfile, []byte(password), 0o600); err != nil {
		return nil, err
	}
	if owner != nil {
		err := errors.Join(os.Chown(dir, int(owner.Uid), int(owner.Gid)), os.Chown(pwfile, int(owner.Uid), int(owner.Gid)))
		if err != nil {
			return nil, err
		}
	}
	data := filepath.Join(dir, "data")
	initdb := exec.Command(filepath.Join(bin, "initdb"), "--pgdata="+data, "--username=samekey", "--pwfile="+pwfile,
		"--auth-local=trust", "--auth-host=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync")
	initdb.Dir, initdb.SysProcAttr = dir, &syscall.SysProcAttr{Credential: owner}
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb failed: %w\n%s", err, tail(out))
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	s, err := keep(dir, owner, filepath.Join(bin, "postgres"), "-D", data, "-k", dir, "-h", "127.0.0.1", "-p", port,
		"-c", "fsync=on", "-c", "synchronous_commit=on", "-c", "max_connections=400", "-c", "max_wal_size=2GB")
	if err != nil {
		return nil, err
	}
	s.DSN = (&url.URL{
		Scheme: "postgres", User: url.UserPassword("samekey", password), Path: "/postgres",
		RawQuery: url.Values{"host": {dir}, "port": {port}, "sslmode": {"disable"}}.Encode(),
	}).String()
	if err := s.waitReady(); err != nil {
		log, _ := os.ReadFile(filepath.Join(dir, "log"))
		s.Stop()
		return nil, fmt.Errorf("PostgreSQL did not start: %w\n%s", err, tail(log))
	}
	return s, nil
}

// keep starts command under the keeper, in a session of its own so that Ctrl-C
// ends the tests first.
func keep(dir string, owner *syscall.Credential, command ...string) (*Server, error) {
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
	s := &Server{lifeline: ours, ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		_ = cmd.Wait() // how it ended is in its log
	}()
	return s, nil
}

// waitReady polls until the server answers; a fresh one needs well under 30 s.
func (s *Server) waitReady() error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, s.DSN)
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-s.ended:
			return errors.New("it ended at once")
		case <-ctx.Done():
			return err
		}
	}
}

// serverUser is whom the server runs as: nil for the present user, since only
// root must change (PostgreSQL refuses to run as root).
func serverUser() (*syscall.Credential, error) {
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

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}

// tail returns the last lines of a log.
func tail(log []byte) []byte {
	lines := bytes.Split(bytes.TrimSpace(log), []byte("\n"))
	return bytes.Join(lines[max(0, len(lines)-15):], []byte("\n"))
}
