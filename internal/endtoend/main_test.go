package endtoend

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/postgres"
	"github.com/seed-6b5e302b/samekey/recordstore/sqlite"
)

// jobEnv, where it is set, makes the test binary another process of the service:
// it holds a job as JSON.
const jobEnv = "SAMEKEY_ENDTOEND_JOB"

// job is what a child process does.
type job struct {
	Kind     string // "one", "storm", "hunt" or "invoicing"
	Provider string // the fake's URL
	SQLite   string // the ledger's file, or
	Postgres string // its DSN
	Charge   string
	Command  string // of "one"

	Process  int // of "storm"
	Commands int
	Charges  []string

	Folder string // of "hunt": where its report goes
	Plant  bool   // leaks on purpose
}

func TestMain(m *testing.M) {
	text := os.Getenv(jobEnv)
	if text == "" {
		os.Exit(m.Run())
	}
	var j job
	err := json.Unmarshal([]byte(text), &j)
	if err == nil {
		err = j.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func (j job) run() error {
	switch j.Kind {
	case "one":
		return j.one()
	case "storm":
		return j.storm()
	case "hunt":
		return j.hunt()
	case "invoicing":
		n, err := j.invoicing()
		fmt.Println(n)
		return err
	}
	return fmt.Errorf("no job %q", j.Kind)
}

// ledger opens the job's ledger.
func (j job) ledger() (recordstore.Store, func(), error) {
	if j.SQLite != "" {
		s, err := sqlite.Open(j.SQLite, nil)
		if err != nil {
			return nil, nil, err
		}
		return s, func() { _ = s.Close() }, nil // the process ends here
	}
	pool, err := pgxpool.New(context.Background(), j.Postgres)
	if err != nil {
		return nil, nil, err
	}
	return postgres.New(pool, nil), pool.Close, nil
}

// process is a running child.
type process struct {
	*exec.Cmd
	out, errors bytes.Buffer
}

// start starts a child. It is killed when the test ends.
func (j job) start(t *testing.T) *process {
	t.Helper()
	text, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{Cmd: exec.CommandContext(t.Context(), exe)}
	p.Env = append(os.Environ(), jobEnv+"="+string(text))
	p.Stdout, p.Stderr = &p.out, &p.errors
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// output waits until a child has ended well, and returns what it printed.
func (p *process) output(t *testing.T) string {
	t.Helper()
	if err := p.Wait(); err != nil {
		t.Fatalf("a child process: %v\n%s", err, p.errors.String())
	}
	return strings.TrimSpace(p.out.String())
}
