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
	"path/filepath"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// Server is a private PostgreSQL in a temporary folder, with fsync on. It stops
// and its folder goes when Stop is called, and also when the process ends in any
// way, kill -9 included.
type Server struct {
	DSN string // Of its database "postgres", as a superuser, over the Unix socket.
	*Process
}

// Start makes and starts a server. It needs PostgreSQL 15 or newer; the error
// says how to install it.
func Start() (*Server, error) {
	bin, err := Programs()
	if err != nil {
		return nil, err
	}
	owner, err := ServerUser()
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
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	p, err := keep(dir, owner, filepath.Join(bin, "postgres"), "-D", data, "-k", dir, "-h", "127.0.0.1", "-p", port,
		"-c", "fsync=on", "-c", "synchronous_commit=on", "-c", "max_connections=400", "-c", "max_wal_size=2GB")
	if err != nil {
		return nil, err
	}
	s := &Server{Process: p, DSN: (&url.URL{
		Scheme: "postgres", User: url.UserPassword("samekey", password), Path: "/postgres",
		RawQuery: url.Values{"host": {dir}, "port": {port}, "sslmode": {"disable"}}.Encode(),
	}).String()}
	if err := s.waitReady(); err != nil {
		log, _ := os.ReadFile(filepath.Join(dir, "log"))
		s.Stop()
		return nil, fmt.Errorf("PostgreSQL did not start: %w\n%s", err, tail(log))
	}
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

// FreePort returns a port of 127.0.0.1 on which nobody listens yet.
func FreePort() (string, error) {
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
