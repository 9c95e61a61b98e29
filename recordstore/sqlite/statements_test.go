package sqlite

import (
	"context"
	"database/sql/driver"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"modernc.org/sqlite"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

// journal lists what the database is asked, each by its first word.
type journal struct {
	mu    sync.Mutex
	words []string
}

func (j *journal) note(query string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.words = append(j.words, strings.Fields(query)[0])
}

// take returns the list and empties it.
func (j *journal) take() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	words := j.words
	j.words = nil
	return words
}

// listening is a connector whose connections note their statements.
type listening struct {
	driver.Connector
	journal *journal
}

func (l listening) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := l.Connector.Connect(ctx)
	return listeningConn{c, l.journal}, err
}

type listeningConn struct {
	driver.Conn
	journal *journal
}

func (c listeningConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	c.journal.note("BEGIN")
	tx, err := c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts)
	return listeningTx{tx, c.journal}, err
}

func (c listeningConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	s, err := c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, query)
	return listeningStmt{s, query, c.journal}, err
}

func (c listeningConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	c.journal.note(query)
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
}

func (c listeningConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.journal.note(query)
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}

type listeningTx struct {
	driver.Tx
	journal *journal
}

func (t listeningTx) Commit() error {
	t.journal.note("COMMIT")
	return t.Tx.Commit()
}

type listeningStmt struct {
	driver.Stmt
	query   string
	journal *journal
}

func (s listeningStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	s.journal.note(s.query)
	return s.Stmt.(driver.StmtExecContext).ExecContext(ctx, args)
}

func (s listeningStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	s.journal.note(s.query)
	return s.Stmt.(driver.StmtQueryContext).QueryContext(ctx, args)
}

// An ordinary call costs two writes: one statement for the claim and one for the
// settle, each in a transaction of its own.
func TestClaimAndSettleAreOneStatementEach(t *testing.T) {
	j := &journal{}
	s, err := open(filepath.Join(t.TempDir(), "ledger.db"), nil, func(dsn string) (driver.Connector, error) {
		c, err := sqlite.NewConnector(dsn)
		return listening{c, j}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	j.take()

	claim := recordstore.Claim{
		ID: recordstore.ID{Day: 20000}, Holder: "a", Lease: time.Minute, Window: time.Hour,
		Fingerprints: [][]byte{{1, 1}}, Derivation: "k1", Derivations: []string{"k1"}, SealVersion: 1, Request: []byte("sealed"),
	}
	got, err := s.Claim(t.Context(), claim)
	if err != nil || got.Decision != recordstore.Send {
		t.Fatalf("Claim: %q, %v", got.Decision, err)
	}
	if words := j.take(); !slices.Equal(words, []string{"BEGIN", "WITH", "COMMIT"}) {
		t.Errorf("a claim asks %v", words)
	}
	_, err = s.Settle(t.Context(), recordstore.Settlement{
		ID: claim.ID, Holder: "a", Fence: got.Record.Fence, Result: recordstore.Result{State: recordstore.Uncertain},
	})
	if err != nil {
		t.Fatal(err)
	}
	if words := j.take(); !slices.Equal(words, []string{"BEGIN", "UPDATE", "COMMIT"}) {
		t.Errorf("a settle asks %v", words)
	}

	claim.Holder = "b" // A takeover is an ordinary claim; one that does not hold reads why.
	if got, err = s.Claim(t.Context(), claim); err != nil || got.Decision != recordstore.Send {
		t.Fatalf("Claim: %q, %v", got.Decision, err)
	}
	if words := j.take(); !slices.Equal(words, []string{"BEGIN", "WITH", "COMMIT"}) {
		t.Errorf("a takeover asks %v", words)
	}
	claim.Holder = "c"
	if got, err = s.Claim(t.Context(), claim); err != nil || got.Decision != recordstore.InFlight {
		t.Fatalf("Claim: %q, %v", got.Decision, err)
	}
	if words := j.take(); !slices.Equal(words, []string{"BEGIN", "WITH", "SELECT", "COMMIT"}) {
		t.Errorf("a blocked claim asks %v", words)
	}
}
