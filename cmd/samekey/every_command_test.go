package main

import (
	"database/sql"
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-6b5e302b/samekey/internal/pgtest"
	"github.com/seed-6b5e302b/samekey/recordstore/postgres"
	"github.com/seed-6b5e302b/samekey/recordstore/sqlite"
)

// everyCommand returns root and all commands below it that people see.
func everyCommand() (all []*cobra.Command) {
	queue := []*cobra.Command{root()}
	for len(queue) > 0 {
		cmd := queue[0]
		queue = append(queue[1:], cmd.Commands()...)
		if !cmd.Hidden {
			all = append(all, cmd)
		}
	}
	return all
}

// Every command says in a line what it is for and shows how it is called; those that
// scripts call on a ledger say what their exit codes mean. The examples can be run:
// their commands and flags exist.
func TestEveryCommandHasHelp(t *testing.T) {
	t.Parallel()
	commands := everyCommand()
	if len(commands) < 16 {
		t.Fatalf("%d commands found", len(commands))
	}
	for _, cmd := range commands {
		path := cmd.CommandPath()
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") || strings.Contains(cmd.Short, "\n") || cmd.Long == "" {
			t.Errorf("%s: its help is %q and %q", path, cmd.Short, cmd.Long)
		}
		if cmd.Flag("dsn-file") != nil && cmd.Name() != "console" && !strings.Contains(cmd.Long, "Exit codes: 0 done") {
			t.Errorf("%s --help does not say what its exit codes mean", path)
		}
		examples := strings.Split(strings.ReplaceAll(cmd.Example, "\\\n", " "), "\n")
		for _, example := range examples {
			if strings.HasPrefix(example, "  curl ") {
				continue
			}
			if !strings.HasPrefix(example, "  "+path) {
				t.Errorf("%s: the example %q shows another command", path, example)
				continue
			}
			line, _, _ := strings.Cut(example, " | ")
			found, args, err := cmd.Root().Find(words(line)[1:])
			if err == nil {
				err = found.ParseFlags(args)
			}
			if err != nil {
				t.Errorf("%s: the example %q cannot be run: %v", path, example, err)
			}
		}
	}
}

// R27: other users of a machine see command lines. No flag takes a password, a key
// or a token: only paths of files that hold them, and a DSN, which is refused where
// it has a password.
func TestNoFlagTakesASecret(t *testing.T) {
	t.Parallel()
	secret := regexp.MustCompile(`(?i)password|passwd|secret|token|key|credential|dsn`)
	for _, cmd := range everyCommand() {
		visit := func(f *pflag.Flag) {
			names, _ := pflag.UnquoteUsage(f)
			switch {
			case !secret.MatchString(f.Name) || names == "path" || f.Value.Type() == "bool" || f.Value.Type() == "int":
			case f.Name != "dsn":
				t.Errorf("%s --%s may take a secret: have it in the environment or in a file", cmd.CommandPath(), f.Name)
			case !strings.Contains(f.Usage, "without a password"):
				t.Errorf("%s --dsn: its help is %q", cmd.CommandPath(), f.Usage)
			}
		}
		cmd.Flags().VisitAll(visit)
		cmd.PersistentFlags().VisitAll(visit)
	}
}

// arguments are what the commands on a ledger need beside the flags that name it. A
// new command that needs some is wrong usage until they stand here.
var arguments = map[string][]string{
	"samekey ledger show":      {"refund-1"},
	"samekey ledger resolve":   {"refund-1", "--version", "1", "--verdict", "none", "--name", "ada", "--reason", "x"},
	"samekey ledger abandon":   {"refund-1", "--name", "ada", "--reason", "x"},
	"samekey ledger erase":     {"refund-1", "--name", "ada", "--reason", "x"},
	"samekey ledger restored":  {"--clear"},
	"samekey reconcile":        {"--once"},
	"samekey audit":            {"--since", "24h"},
	"samekey reprocess plan":   {"manifest.json"},
	"samekey reprocess shadow": {"manifest.json"},
	"samekey reprocess run":    {"manifest.json"},
	"samekey console":          {"--listen", "127.0.0.1:0"},
}

// onLedgers returns a line of each command that works on a ledger, without the flags
// that name it.
func onLedgers(withSQLite bool) (lines [][]string) {
	for _, cmd := range everyCommand() {
		if cmd.Flag("dsn-file") == nil || cmd.Name() == "ledger" || cmd.HasSubCommands() || withSQLite && cmd.Flag("sqlite") == nil {
			continue
		}
		lines = append(lines, append(strings.Fields(cmd.CommandPath())[1:], arguments[cmd.CommandPath()]...))
	}
	return lines
}

// giveEverything puts keys and credentials into the environment and returns what
// nothing may print.
func giveEverything(t *testing.T) (secrets []string) {
	t.Helper()
	giveSealKey(t)
	t.Setenv(envStripe+"ACCOUNT", account)
	t.Setenv(envStripe+"KEY", apiKey)
	t.Setenv(envStripe+"TEST", "1")
	return []string{apiKey, base64.StdEncoding.EncodeToString(sealKey), "hunter2"}
}

// broken is a ledger that no command can work on, with what each says of it: what is
// wrong, and what to do.
type broken struct {
	flags     []string
	dsn       string // In the environment, "" for none.
	wrong, do string
}

func brokenLedgers(t *testing.T) map[string]broken {
	t.Helper()
	old := pgtest.DSN(t)
	pool := pgtest.Open(t, old)
	if err := postgres.Migrate(t.Context(), pool, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), "UPDATE samekey.meta SET value = '0' WHERE name LIKE 'schema%'"); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	newer := filepath.Join(dir, "newer.db")
	s, err := sqlite.Open(newer, nil)
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	execSQLite(t, newer, "UPDATE samekey_schema SET version = 99")
	empty, other := filepath.Join(dir, "empty.db"), filepath.Join(dir, "notes.txt")
	for path, content := range map[string]string{empty: "", other: strings.Repeat("these are notes\n", 100)} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return map[string]broken{
		"no server":     {dsn: "postgres://shop:hunter2@127.0.0.1:1/shop", wrong: "connection refused", do: "is the DSN right"},
		"no such host":  {dsn: "host=/nowhere user=shop password=hunter2 dbname=shop", wrong: "no such file", do: "is the DSN right"},
		"no DSN at all": {dsn: "postgres://shop:hunter2/x@db", wrong: "cannot be read", do: "write it as postgres://"},
		"no ledger":     {dsn: pgtest.DSN(t), wrong: "holds no ledger", do: "samekey migrate"},
		"old schema":    {dsn: old, wrong: "version 0", do: "samekey migrate"},
		"no file":       {flags: []string{"--sqlite", filepath.Join(dir, "typo.db")}, wrong: "no such file", do: "give the path that the services open"},
		"empty file":    {flags: []string{"--sqlite", empty}, wrong: "holds no ledger", do: "is it the file that the services open"},
		"another file":  {flags: []string{"--sqlite", other}, wrong: "not a database", do: "is it the file that the services open"},
		"newer ledger":  {flags: []string{"--sqlite", newer}, wrong: "version 99", do: "use a newer build"},
	}
}

func execSQLite(t *testing.T, path, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", path) // the store's driver
	if err == nil {
		_, err = db.ExecContext(t.Context(), statement)
		err = errors.Join(err, db.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Every command on a ledger that is not there, or is another build's, ends with one
// line that says what is wrong and what to do, shows no secret, and makes nothing.
func TestEveryCommandOnABrokenLedger(t *testing.T) {
	secrets := giveEverything(t)
	for name, b := range brokenLedgers(t) {
		t.Run(name, func(t *testing.T) {
			t.Setenv(envDSN, b.dsn)
			for _, line := range onLedgers(len(b.flags) > 0) {
				if line[0] == "migrate" && (name == "no ledger" || name == "old schema") {
					continue // it is what mends them
				}
				said := fails(t, exitFailed, b.wrong, append(line, b.flags...)...)
				if !strings.Contains(said, b.do) {
					t.Errorf("%v: %q does not say what to do: %q", line, said, b.do)
				}
				for _, secret := range secrets {
					if strings.Contains(said, secret) {
						t.Errorf("%v shows a secret: %q", line, said)
					}
				}
			}
			if len(b.flags) > 0 && name == "no file" {
				if _, err := os.Stat(b.flags[1]); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("a command made the file: %v", err)
				}
			}
		})
	}
}

// A command ID that the ledger does not know, and keys that are missing, are told on
// one line by every command that needs them.
func TestEveryCommandWithoutWhatItNeeds(t *testing.T) {
	onBoth(t, func(p *prepared) {
		p.refund("refund-1", "", "")
		for _, verb := range []string{"show", "resolve", "abandon", "erase"} {
			args := append([]string{"ledger", verb, "refund-x"}, arguments["samekey ledger "+verb][1:]...)
			p.ends(exitNothing, "refund-x", args...)
		}

		for _, name := range []string{envSealKeys, envSealKeys + "_FILE", envBodies, envStripe + "ACCOUNT", envStripe + "KEY"} {
			t.Setenv(name, "")
		}
		t.Setenv(envConsoleToken, strings.Repeat("t", 40))
		needSeal := [][]string{{"ledger", "show", "refund-1", "--bodies"}, {"console", "--listen", "127.0.0.1:0", "--show-bodies"}}
		for _, line := range needSeal {
			p.ends(exitFailed, "no seal key is given: put ID=BASE64 into "+envSealKeys, line...)
		}
		giveSealKey(t)
		p.ends(exitFailed, "no provider's credentials are given: set "+envStripe+"ACCOUNT", "reconcile", "--once")

		// The key was replaced, and the old one is not listed after it.
		t.Setenv(envSealKeys, "2027="+base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", 32))))
		const hint = "after the current one"
		p.shows(p.succeeds("ledger", "show", "refund-1"), `key "2026" sealed the bodies`, hint)
		p.ends(exitFailed, hint, "ledger", "show", "refund-1", "--bodies")
		if v := p.views("ledger", "show", "refund-1")[0]; !strings.Contains(v.SealHint, hint) {
			t.Errorf("--json says %q", v.SealHint)
		}
		p.shows(p.ends(exitPerson, "problem", "doctor"), `key "2026" sealed at least`, "as an older key")
		t.Setenv(envSealKeys, os.Getenv(envSealKeys)+",2026="+base64.StdEncoding.EncodeToString(sealKey))
		if out := p.succeeds("ledger", "show", "refund-1", "--bodies"); strings.Contains(out, hint) || !strings.Contains(out, `"object":"refund"`) {
			t.Errorf("with both keys it says %s", out)
		}
		for _, part := range []string{base64.StdEncoding.EncodeToString(sealKey), apiKey} {
			if out := p.succeeds("ledger", "show", "refund-1", "--json"); strings.Contains(out, part) {
				t.Errorf("a secret is shown:\n%s", out)
			}
		}
	})
}

// The lines above name every command that is on a ledger.
func TestArgumentsNameCommands(t *testing.T) {
	t.Parallel()
	commands := everyCommand()
	for path := range arguments {
		if !slices.ContainsFunc(commands, func(cmd *cobra.Command) bool { return cmd.CommandPath() == path }) {
			t.Errorf("there is no command %q", path)
		}
	}
}
