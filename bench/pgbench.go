package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/seed-6b5e302b/samekey/internal/pgtest"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

// listener notes the statements that go over its connections, alone or in a batch.
type listener struct {
	mu   sync.Mutex
	said []statement
}

var (
	_ pgx.QueryTracer = (*listener)(nil)
	_ pgx.BatchTracer = (*listener)(nil)
)

// TraceQueryStart implements pgx.QueryTracer.
func (l *listener) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	l.note(q.SQL, q.Args)
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (l *listener) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TraceBatchStart implements pgx.BatchTracer.
func (l *listener) TraceBatchStart(ctx context.Context, _ *pgx.Conn, batch pgx.TraceBatchStartData) context.Context {
	for _, q := range batch.Batch.QueuedQueries {
		l.note(q.SQL, q.Arguments)
	}
	return ctx
}

// TraceBatchQuery implements pgx.BatchTracer.
func (l *listener) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd implements pgx.BatchTracer.
func (l *listener) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

func (l *listener) note(sql string, args []any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.said = append(l.said, statement{sql, slices.Clone(args)})
}

// about returns the statements that name a record.
func (l *listener) about(id recordstore.ID) []statement {
	l.mu.Lock()
	defer l.mu.Unlock()
	named := func(s statement) bool { return slices.ContainsFunc(s.args, statements{key: id}.isKey) }
	return slices.DeleteFunc(slices.Clone(l.said), func(s statement) bool { return !named(s) })
}

// pgbench is PostgreSQL's benchmark program, which prepares the two statements of
// a call and sends them over a connection for each caller. It stands for what the
// server can do for anybody who sends one statement at a time.
func (b *bench) pgbench(s statements, dsn string) (contender, error) {
	program, err := pgbenchProgram()
	if err != nil {
		return contender{}, err
	}
	dir, err := b.folder("pgbench")
	if err != nil {
		return contender{}, err
	}
	vars := make(map[string]string)
	// A number with an even count of decimal digits is eight bytes in hexadecimal too.
	text := "\\set r random(1000000000000000, 9999999999999999)\n"
	for i, st := range []statement{s.claim, s.settle} {
		sql, err := s.scripted(st, "s"+strconv.Itoa(i)+"_", vars)
		if err != nil {
			return contender{}, err
		}
		text += sql + ";\n"
	}
	script := filepath.Join(dir, "call.sql")
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		return contender{}, err
	}
	args := []string{"--no-vacuum", "--protocol=prepared", "--file=" + script}
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		args = append(args, "--define="+name+"="+vars[name])
	}
	environment, err := connectionOf(dsn)
	if err != nil {
		return contender{}, err
	}
	rates := make(map[int]float64) // by callers, of the round before
	return contender{"pgbench, the same statements", func(ctx context.Context, callers int, window time.Duration) (sample, error) {
		length := "--time=" + strconv.Itoa(max(1, int(math.Round(window.Seconds())))) // it knows whole seconds only
		if rate := rates[callers]; rate > 0 && window < time.Second {
			length = "--transactions=" + strconv.Itoa(max(1, int(rate*window.Seconds())/callers))
		}
		cmd := exec.CommandContext(ctx, program, append([]string{
			"--client=" + strconv.Itoa(callers), "--jobs=" + strconv.Itoa(min(callers, 2)), length,
		}, args...)...)
		cmd.Env = environment
		s, err := runPgbench(cmd)
		if err == nil {
			rates[callers] = s.perSecond()
		}
		return s, err
	}}, nil
}

// pgbenchProgram finds the program beside the server's own, or in the path.
func pgbenchProgram() (string, error) {
	if dir, err := pgtest.Programs(); err == nil {
		if beside := filepath.Join(dir, "pgbench"); isFile(beside) {
			return beside, nil
		}
	}
	found, err := exec.LookPath("pgbench")
	if err != nil {
		return "", fmt.Errorf("no pgbench: it comes with PostgreSQL (Debian: apt-get install postgresql): %w", err)
	}
	return found, nil
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// connectionOf is the environment that leads PostgreSQL's programs to dsn.
func connectionOf(dsn string) ([]string, error) {
	at, err := url.Parse(dsn)
	if err != nil {
		return nil, err
	}
	password, _ := at.User.Password()
	return append(os.Environ(),
		"PGHOST="+at.Query().Get("host"), "PGPORT="+at.Query().Get("port"), "PGUSER="+at.User.Username(),
		"PGPASSWORD="+password, "PGDATABASE="+strings.TrimPrefix(at.Path, "/")), nil
}

var (
	transactions = regexp.MustCompile(`number of transactions actually processed: (\d+)`)
	failures     = regexp.MustCompile(`number of failed transactions: (\d+)`)
	perSecond    = regexp.MustCompile(`tps = ([0-9.]+)`)
)

func runPgbench(cmd *exec.Cmd) (sample, error) {
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		return sample{}, fmt.Errorf("pgbench: %w: %.2000s", err, problems.String())
	}
	done, tps := transactions.FindSubmatch(out), perSecond.FindSubmatch(out)
	if done == nil || tps == nil {
		return sample{}, fmt.Errorf("pgbench said %.2000q", out)
	}
	if failed := failures.FindSubmatch(out); failed != nil && string(failed[1]) != "0" {
		return sample{}, fmt.Errorf("pgbench: %s transactions failed", failed[1])
	}
	n, err1 := strconv.Atoi(string(done[1]))
	rate, err2 := strconv.ParseFloat(string(tps[1]), 64)
	if err1 != nil || err2 != nil || rate <= 0 {
		return sample{}, fmt.Errorf("pgbench said %.2000q", out)
	}
	return sample{calls: n, elapsed: time.Duration(float64(n) / rate * float64(time.Second))}, nil
}

var parameter = regexp.MustCompile(`\$(\d+)::(\w+(?:\[\])?)`)

// scripted makes a statement one of a pgbench script: each parameter becomes a
// variable that begins with prefix, its value noted in vars; NULL stands as it is,
// since pgbench has no variable for it. Key and holder are made of the number r.
func (s statements) scripted(st statement, prefix string, vars map[string]string) (string, error) {
	types := pgtype.NewMap()
	var failed error
	sql := parameter.ReplaceAllStringFunc(st.sql, func(found string) string {
		m := parameter.FindStringSubmatch(found)
		n, err := strconv.Atoi(m[1])
		if err != nil || n < 1 || n > len(st.args) {
			failed = fmt.Errorf("the statement has no argument %s", found)
			return found
		}
		arg := st.args[n-1]
		switch {
		case s.isKey(arg):
			return "decode('0000000000000000' || :r::text, 'hex')"
		case s.isHolder(arg):
			return ":r::" + m[2]
		}
		value, err := textOf(types, m[2], arg)
		if err != nil {
			failed = fmt.Errorf("argument %s: %w", found, err)
			return found
		}
		if value == nil {
			return "NULL::" + m[2]
		}
		name := prefix + m[1]
		vars[name] = string(value)
		return ":" + name + "::" + m[2]
	})
	if failed == nil && strings.Contains(sql, "$") {
		failed = fmt.Errorf("an argument has no type written beside it: %.200s", sql)
	}
	return strings.TrimSpace(sql), failed
}

// textOf is a value as PostgreSQL reads it; nil is NULL.
func textOf(types *pgtype.Map, name string, value any) ([]byte, error) {
	if value == nil {
		return nil, nil
	}
	aliases := map[string]string{"integer": "int4", "bigint": "int8", "smallint": "int2", "boolean": "bool", "bytea[]": "_bytea", "text[]": "_text"}
	if alias, ok := aliases[name]; ok {
		name = alias
	}
	t, ok := types.TypeForName(name)
	if !ok {
		return nil, fmt.Errorf("no type %s is known", name)
	}
	return types.Encode(t.OID, pgtype.TextFormatCode, value, nil)
}
