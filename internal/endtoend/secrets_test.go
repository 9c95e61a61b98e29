package endtoend

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-6b5e302b/samekey/internal/pgtest"
	"github.com/seed-6b5e302b/samekey/recordstore/postgres"
)

// R14, R27: a process that meets every fault, refusal and misuse says no secret
// anywhere: in no log line, span, metric, error, panic or output. Its ledger's
// files hold no body, no raw key, and of a card number nothing in any form.
func TestSecretsStayInside(t *testing.T) {
	t.Parallel()
	for name, found := range huntEverywhere(t, false) {
		for place, kinds := range found {
			if len(kinds) > 0 {
				t.Errorf("%s: %s holds %v", name, place, kinds)
			}
		}
	}
}

// The hunt finds what is planted in each of the places.
func TestTheHuntFindsWhatIsPlanted(t *testing.T) {
	t.Parallel()
	for name, found := range huntEverywhere(t, true) {
		if len(found) != 8 {
			t.Errorf("%s: %d places were searched: %v", name, len(found), slices.Sorted(maps.Keys(found)))
		}
		for place, kinds := range found {
			want := []string{"key"}
			if place == "ledger" {
				want = []string{"body", "card", "key"}
			}
			for _, kind := range want {
				if !slices.Contains(kinds, kind) {
					t.Errorf("%s: the %s planted in %s was not found", name, kind, place)
				}
			}
		}
	}
}

// huntEverywhere runs the hunt on both durable ledgers and returns which kinds
// of secrets were found in which place.
func huntEverywhere(t *testing.T, plant bool) map[string]map[string][]string {
	t.Helper()
	file := job{Kind: "hunt", Folder: t.TempDir(), Plant: plant}
	file.SQLite = filepath.Join(file.Folder, "ledger.db")
	dsn := pgtest.DSN(t)
	pool := pgtest.Open(t, dsn)
	if err := postgres.Migrate(t.Context(), pool, nil); err != nil {
		t.Fatal(err)
	}
	server := job{Kind: "hunt", Folder: t.TempDir(), Plant: plant, Postgres: dsn}
	one, two := file.start(t), server.start(t)
	all := map[string]map[string][]string{
		"sqlite":   file.findings(t, one, func() []byte { return filesOf(t, file.SQLite) }),
		"postgres": server.findings(t, two, func() []byte { return dump(t, pool) }),
	}
	noCardBodies(t, pool)
	return all
}

// filesOf is a SQLite ledger as its process left it.
func filesOf(t *testing.T, path string) (all []byte) {
	t.Helper()
	for _, end := range []string{"", "-wal", "-shm"} {
		b, err := os.ReadFile(path + end)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b...)
	}
	return all
}

// findings searches what came of a hunt.
func (j job) findings(t *testing.T, child *process, ledger func() []byte) map[string][]string {
	t.Helper()
	output := child.output(t)
	text, err := os.ReadFile(filepath.Join(j.Folder, "secrets.json"))
	if err != nil {
		t.Fatal(err)
	}
	var known secrets
	if err := json.Unmarshal(text, &known); err != nil {
		t.Fatal(err)
	}
	if len(known.Keys) < 150 || len(known.Credentials) < 100 {
		t.Fatalf("only %d keys and %d credentials went over the wire", len(known.Keys), len(known.Credentials))
	}
	places := map[string][]byte{"stdout": []byte(output), "stderr": child.errors.Bytes(), "ledger": ledger()}
	for _, name := range []string{"logs", "spans", "metrics", "errors", "panics"} {
		if places[name], err = os.ReadFile(filepath.Join(j.Folder, name+".txt")); err != nil {
			t.Fatal(err)
		}
	}
	for name, least := range map[string]int{"logs": 50_000, "spans": 50_000, "metrics": 2_000, "errors": 50_000, "ledger": 50_000} {
		if len(places[name]) < least {
			t.Errorf("%s has %d bytes: too little to be searched", name, len(places[name]))
		}
	}
	if !j.Plant && len(places["panics"]) > 0 {
		t.Errorf("a call panicked: %s", places["panics"])
	}
	found := map[string][]string{}
	for name, text := range places {
		found[name] = known.in(text)
	}
	return found
}

// in returns the kinds of secrets that a text holds. It names none of them.
func (s secrets) in(text []byte) (kinds []string) {
	search := func(kind string, forms ...[]byte) {
		for _, form := range forms {
			if !slices.Contains(kinds, kind) && bytes.Contains(text, form) {
				kinds = append(kinds, kind)
			}
		}
	}
	search("body", inAllForms(bodyMarker)...)
	search("card", inAllForms(codeMarker)...)
	search("card", cardForms()...)
	for _, key := range slices.Compact(slices.Sorted(slices.Values(s.Keys))) {
		search("key", []byte(key), []byte(strings.ToUpper(key)), []byte(strings.ReplaceAll(key, "-", "")), []byte(base64.StdEncoding.EncodeToString([]byte(key))[:44]))
		if u, err := uuid.Parse(key); err == nil {
			search("key", u[:], []byte(hex.EncodeToString([]byte(key))))
		}
	}
	for _, credential := range slices.Compact(slices.Sorted(slices.Values(s.Credentials))) {
		search("credential", []byte(credential))
	}
	slices.Sort(kinds)
	return kinds
}

// inAllForms is a text as it is, as hex, and as base64 wherever it begins.
func inAllForms(text string) [][]byte {
	forms := [][]byte{[]byte(text), []byte(hex.EncodeToString([]byte(text)))}
	for skip := range 3 {
		encoded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", skip) + text))
		forms = append(forms, []byte(encoded[4:len(encoded)-4])) // without the neighbours
	}
	return forms
}

// cardForms are a card number as people and programs write it, parts of it, and
// its plain hashes.
func cardForms() [][]byte {
	n := cardNumber
	forms := inAllForms(n)
	for i := range len(n) - 9 {
		forms = append(forms, []byte(n[i:i+10]))
	}
	for _, separator := range []string{" ", "-", "%20", "+", "\u00a0"} {
		forms = append(forms, []byte(strings.Join([]string{n[:4], n[4:8], n[8:12]}, separator)))
	}
	sum1, sum5, sum256 := sha1.Sum([]byte(n)), md5.Sum([]byte(n)), sha256.Sum256([]byte(n))
	for _, sum := range [][]byte{sum1[:], sum5[:], sum256[:], sum256[:16]} {
		forms = append(forms, sum, []byte(hex.EncodeToString(sum)), []byte(base64.StdEncoding.EncodeToString(sum)))
	}
	return forms
}

// dump is every table of a database, as binary COPY and as text.
func dump(t *testing.T, pool *pgxpool.Pool) []byte {
	t.Helper()
	rows, err := pool.Query(t.Context(), `SELECT format('%I.%I', schemaname, tablename) FROM pg_tables
		WHERE schemaname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || !slices.Contains(tables, "samekey.record") {
		t.Fatalf("tables %v, %v", tables, err)
	}
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	var all bytes.Buffer
	for _, table := range tables {
		for _, format := range []string{"binary", "text"} {
			if _, err := conn.Conn().PgConn().CopyTo(t.Context(), &all, fmt.Sprintf("COPY %s TO STDOUT (FORMAT %s)", table, format)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return all.Bytes()
}

// noCardBodies holds that no record of a request with a card number keeps request
// or answer, sealed or not.
func noCardBodies(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	var records, kept int
	err := pool.QueryRow(context.Background(), `SELECT count(*), count(*) FILTER (WHERE request IS NOT NULL OR response_headers IS NOT NULL OR response_body IS NOT NULL)
		FROM samekey.record WHERE command_id LIKE 'card-%'`).Scan(&records, &kept)
	if err != nil || records < 10 || kept != 0 {
		t.Errorf("%d of %d records of requests with a card number keep something of them, %v", kept, records, err)
	}
}
