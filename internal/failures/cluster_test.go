package failures

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-6b5e302b/samekey/internal/pgtest"
)

// node is a PostgreSQL server whose data outlive it: it can be stopped, started
// again, killed, copied to a standby and promoted.
type node struct {
	t        *testing.T // It ends with this test, whichever subtest starts it again.
	bin      string
	data     string // Folder.
	runs     string // Folder of the logs of its runs.
	port     string
	password string
	process  *pgtest.Process
}

// newNode makes an empty server and starts it.
func newNode(t *testing.T) *node {
	t.Helper()
	n := prepareNode(t, rand.Text())
	pwfile := filepath.Join(n.runs, "password")
	if err := os.WriteFile(pwfile, []byte(n.password), 0o644); err != nil { // its folder is closed to others
		t.Fatal(err)
	}
	n.run("initdb", "--pgdata="+n.data, "--username=samekey", "--pwfile="+pwfile,
		"--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync")
	n.start()
	return n
}

func prepareNode(t *testing.T, password string) *node {
	t.Helper()
	bin, err := pgtest.Programs()
	if err != nil {
		t.Fatal(err)
	}
	port, err := pgtest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	dir := pgtest.Folder(t)
	return &node{t: t, bin: bin, data: filepath.Join(dir, "data"), runs: dir, port: port, password: password}
}

// standby copies n to a server that follows it, and lets n acknowledge a commit
// only when it is on the standby's disk too.
func (n *node) standby() *node {
	n.t.Helper()
	s := prepareNode(n.t, n.password)
	s.run("pg_basebackup", "--pgdata="+s.data, "--dbname="+n.dsn()+"&application_name=standby",
		"--write-recovery-conf", "--checkpoint=fast", "--wal-method=stream", "--no-sync")
	s.start()
	n.exec("ALTER SYSTEM SET synchronous_standby_names = 'standby'") // after the copy, which waits for nobody
	n.exec("SELECT pg_reload_conf()")
	n.await("SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'")
	return s
}

// promote makes a standby a server of its own, and waits until it may be written.
func (n *node) promote() {
	n.t.Helper()
	n.exec("SELECT pg_promote()")
	n.await("SELECT NOT pg_is_in_recovery()")
}

// start starts the server on its data and waits until it answers.
func (n *node) start() {
	n.t.Helper()
	n.process = pgtest.Run(n.t, filepath.Join(n.runs, rand.Text()), filepath.Join(n.bin, "postgres"),
		"-D", n.data, "-h", "127.0.0.1", "-p", n.port, "-c", "unix_socket_directories=", "-c", "max_connections=100")
	n.await("SELECT true")
}

// stop ends the server at once, without its last checkpoint: connections break,
// and the next start recovers from the log.
func (n *node) stop() { n.process.Stop() }

// kill ends the server with SIGKILL, which it cannot answer.
func (n *node) kill() {
	n.t.Helper()
	text, err := os.ReadFile(filepath.Join(n.data, "postmaster.pid"))
	if err != nil {
		n.t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil || pid <= 1 {
		n.t.Fatalf("the server's process is %q", first)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		n.t.Fatal(err)
	}
	<-n.process.Ended()
}

// dsn leads to the database "postgres" of n, or of whichever of n and others may
// be written.
func (n *node) dsn(others ...*node) string {
	hosts := "127.0.0.1:" + n.port
	query := url.Values{"sslmode": {"disable"}}
	for _, o := range others {
		hosts += ",127.0.0.1:" + o.port
		query.Set("target_session_attrs", "read-write")
	}
	u := url.URL{Scheme: "postgres", User: url.UserPassword("samekey", n.password), Host: hosts, Path: "/postgres", RawQuery: query.Encode()}
	return u.String()
}

// run runs one of PostgreSQL's programs to its end, as the server's user.
func (n *node) run(program string, args ...string) {
	n.t.Helper()
	owner, err := pgtest.ServerUser()
	if err != nil {
		n.t.Fatal(err)
	}
	cmd := exec.CommandContext(n.t.Context(), filepath.Join(n.bin, program), args...)
	cmd.Dir, cmd.SysProcAttr = n.runs, &syscall.SysProcAttr{Credential: owner}
	if out, err := cmd.CombinedOutput(); err != nil {
		n.t.Fatalf("%s: %v\n%s", program, err, out)
	}
}

func (n *node) exec(sql string) {
	n.t.Helper()
	conn, err := pgx.Connect(n.t.Context(), n.dsn())
	if err == nil {
		_, err = conn.Exec(n.t.Context(), sql)
		_ = conn.Close(n.t.Context()) // the statement has ended
	}
	if err != nil {
		n.t.Fatalf("%s: %v", sql, err)
	}
}

// await asks until the answer is true.
func (n *node) await(question string) {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), time.Minute)
	defer cancel()
	ask := func() (yes bool, err error) {
		conn, err := pgx.Connect(ctx, n.dsn())
		if err != nil {
			return false, err
		}
		defer func() { _ = conn.Close(ctx) }()
		err = conn.QueryRow(ctx, question).Scan(&yes)
		return yes, err
	}
	for {
		yes, err := ask()
		if yes && err == nil {
			return
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-n.process.Ended():
			n.t.Fatalf("the server ended before %q was so: %v", question, err)
		case <-ctx.Done():
			n.t.Fatalf("%s: %v, after a minute", question, fmt.Sprint(yes, err))
		}
	}
}
