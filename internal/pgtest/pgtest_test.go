package pgtest_test

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-6b5e302b/samekey/internal/pgtest"
)

// Two tests never see each other's tables, and fsync is on: a ledger tested on
// a server that forgets proves nothing.
func TestDatabasesAreApart(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	a, b := pgtest.Pool(t), pgtest.Pool(t)
	if _, err := a.Exec(ctx, "CREATE TABLE only_here ()"); err != nil {
		t.Fatal(err)
	}
	var seen bool
	if err := b.QueryRow(ctx, "SELECT to_regclass('only_here') IS NOT NULL").Scan(&seen); err != nil || seen {
		t.Fatalf("the other database sees the table: %v, %v", seen, err)
	}
	var fsync string
	if err := b.QueryRow(ctx, "SHOW fsync").Scan(&fsync); err != nil || fsync != "on" {
		t.Fatalf("fsync = %q, %v; want on", fsync, err)
	}
}

// A private server ends with the process that started it, also when that is
// killed and can clean up nothing.
func TestServerEndsWithItsProcess(t *testing.T) {
	t.Parallel()
	if os.Getenv("PGTEST_HOLD_SERVER") != "" {
		s, err := pgtest.Start()
		if err != nil {
			t.Fatal(err)
		}
		os.Stdout.WriteString("dsn " + s.DSN + "\n")
		select {}
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestServerEndsWithItsProcess$")
	cmd.Env = append(os.Environ(), "PGTEST_HOLD_SERVER=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	dsn, found := strings.CutPrefix(strings.TrimSpace(line), "dsn ")
	if err != nil || !found {
		t.Fatalf("the other process said %q, %v; want its DSN", line, err)
	}
	if err := answers(dsn); err != nil {
		t.Fatalf("the server does not answer: %v", err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	for end := time.Now().Add(20 * time.Second); answers(dsn) == nil; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the server outlived its process by 20 s")
		}
	}
}

func answers(dsn string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}
