package postgres

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

// many is a statement on one record that takes a step on each of many records. What
// it costs the server to begin a statement is then paid once: with small rows that
// is most of it. Its parameters are those of the single statement, each an array
// with one element for each record; it returns what the single one does behind the
// record's key. A record of which it returns no row is one for which the single
// statement returns none.
type many struct {
	sql   string
	types []string // Of the parameters' elements.
}

// manySettings bound each wait for a lock, which the other steps in the transaction
// would share; what meets it waits on its own afterwards. And the server finds each
// record by its key, whatever it knows of the table: before its first ANALYZE it
// would read all of it.
var manySettings = fmt.Sprintf(`SELECT set_config('lock_timeout', '%dms', true), set_config('plan_cache_mode', 'force_generic_plan', true), set_config('enable_seqscan', 'off', true),
	set_config('enable_bitmapscan', 'off', true), set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true)`,
	lockWait.Milliseconds())

// fewest is how many steps are worth a statement for many. Each has its own plans.
const fewest = 3

var parameters = regexp.MustCompile(`\$(\d+)::(\w+)`)

// manyOf makes the statement for many of begin or end: what their first FROM reads,
// a subquery, is read for each step.
func manyOf(sql string) many {
	// Of the fingerprints a new record takes the first.
	sql = strings.ReplaceAll(sql, "($5::bytea[])[1]", "$5::bytea")
	var m many
	for _, p := range parameters.FindAllStringSubmatch(sql, -1) {
		var n int
		_, _ = fmt.Sscan(p[1], &n) // they are digits
		m.types = append(m.types, make([]string, max(0, n-len(m.types)))...)
		m.types[n-1] = p[2]
	}
	arrays, names := make([]string, len(m.types)), make([]string, len(m.types))
	for i, t := range m.types {
		arrays[i], names[i] = fmt.Sprintf("$%d::%s[]", i+1, t), fmt.Sprintf("p%d", i+1)
	}
	sql = parameters.ReplaceAllString(sql, "step.p$1")
	sql = strings.Replace(sql, "FROM (", fmt.Sprintf("FROM unnest(%s) AS step (%s), LATERAL (",
		strings.Join(arrays, ", "), strings.Join(names, ", ")), 1)
	m.sql = strings.Replace(sql, "RETURNING ", "RETURNING day, key_hash, ", 1)
	return m
}

// args are the parameters for steps.
func (m *many) args(steps []*asked) []any {
	args := make([]any, len(m.types))
	for i, t := range m.types {
		switch t {
		case "text":
			args[i] = elements(steps, i, stringOf)
		case "timestamptz":
			args[i] = elements(steps, i, timeOf)
		case "boolean":
			args[i] = elements(steps, i, boolOf)
		case "bytea":
			args[i] = elements(steps, i, bytesOf)
		default:
			args[i] = elements(steps, i, intOf)
		}
	}
	return args
}

// elements are the parameters at i of all steps.
func elements[T any](steps []*asked, i int, as func(any) T) []T {
	list := make([]T, len(steps))
	for n, a := range steps {
		list[n] = as(a.args[i])
	}
	return list
}

// The values of single parameters, nil for NULL, in types that pgx knows for
// arrays without asking the server.

func stringOf(v any) *string {
	switch v := v.(type) {
	case string:
		return &v
	case zeronull.Text:
		return orNull(string(v))
	}
	return nil
}

func timeOf(v any) *time.Time {
	switch v := v.(type) {
	case time.Time:
		return &v
	case zeronull.Timestamptz:
		return orNull(time.Time(v))
	}
	return nil
}

func boolOf(v any) *bool {
	b, _ := v.(bool)
	return &b
}

func bytesOf(v any) []byte {
	switch v := v.(type) {
	case []byte:
		return v
	case [][]byte:
		if len(v) > 0 {
			return v[0]
		}
	}
	return nil
}

func intOf(v any) *int64 {
	var n int64
	switch v := v.(type) {
	case int:
		n = int64(v)
	case int32:
		n = int64(v)
	case int64:
		n = v
	case zeronull.Int8:
		return orNull(int64(v))
	default:
		return nil
	}
	return &n
}

func orNull[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// run are steps that one statement takes, in their order, and their places.
type run struct {
	steps  []*asked
	places []int
}

// runs sorts steps by the statement that takes them.
func runs(steps []*asked) (cut []*run) {
	of := map[string]*run{}
	for i, a := range steps {
		r := of[a.sql]
		if r == nil {
			r = &run{}
			of[a.sql], cut = r, append(cut, r)
		}
		r.steps, r.places = append(r.steps, a), append(r.places, i)
	}
	return cut
}

// queue adds what the steps ask to a batch and returns what reads the answers, in
// turn. They put what each step came to into errs; that it has no row is an answer.
func (r *run) queue(batch *pgx.Batch, errs []error) (reads []func(pgx.BatchResults) error) {
	if m := r.steps[0].many; m != nil && len(r.steps) >= fewest {
		batch.Queue(m.sql, m.args(r.steps)...)
		return append(reads, func(from pgx.BatchResults) error { return r.read(from, errs) })
	}
	for i, a := range r.steps {
		batch.Queue(a.sql, a.args...)
		reads = append(reads, func(from pgx.BatchResults) error {
			err := from.QueryRow().Scan(a.into...)
			errs[r.places[i]] = err
			if errors.Is(err, pgx.ErrNoRows) {
				return nil
			}
			return err
		})
	}
	return reads
}

// read reads the rows of a statement for many into the variables of the steps.
func (r *run) read(from pgx.BatchResults, errs []error) error {
	of := make(map[recordstore.ID]int, len(r.steps))
	for i, a := range r.steps {
		of[a.id], errs[r.places[i]] = i, pgx.ErrNoRows
	}
	rows, err := from.Query()
	if err != nil {
		return err
	}
	defer rows.Close()
	var (
		id   recordstore.ID
		hash []byte
	)
	into := make([]any, 2+len(r.steps[0].into))
	into[0], into[1] = &id.Day, &hash
	for rows.Next() {
		clear(into[2:]) // what is nil is not read
		if err := rows.Scan(into...); err != nil {
			return err
		}
		copy(id.KeyHash[:], hash)
		i, known := of[id]
		if !known {
			return errors.New("the server answers for a record that it was not asked about")
		}
		copy(into[2:], r.steps[i].into)
		if err := rows.Scan(into...); err != nil {
			return err
		}
		errs[r.places[i]] = nil
	}
	return rows.Err()
}
