package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/postgres"
	"github.com/seed-6b5e302b/samekey/recordstore/sqlite"
)

// envDSN names the environment variable with the DSN of the ledger's database. A
// DSN holds a password, and other users of a machine see command lines.
const envDSN = "SAMEKEY_POSTGRES"

const (
	maxDSN         = 64 << 10         // bytes of a DSN file
	connectTimeout = 10 * time.Second // where the DSN names none
	ledgerTimeout  = time.Minute      // of a command that does one thing to a ledger
)

func ledgerCommand() *cobra.Command {
	var flags ledgerFlags
	cmd := &cobra.Command{
		Use:   "ledger",
		Short: "Do to a ledger what only people may decide",
		Long: `Ledger works on the ledger in the SQLite file that --sqlite names, else on the one
in PostgreSQL. Its DSN stands in the environment variable ` + envDSN + ` or in a
file that --dsn-file names, never on the command line, which others can read.`,
		Args:              cobra.NoArgs,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return flags.check(cmd) },
	}
	flags.addSQLite(cmd)
	flags.addPostgres(cmd)
	cmd.AddCommand(restoredCommand(&flags))
	return cmd
}

// ledgerFlags say which ledger a command works on.
type ledgerFlags struct{ sqlite, dsnFile, schema string }

func (f *ledgerFlags) addSQLite(cmd *cobra.Command) {
	cmd.PersistentFlags().StringVar(&f.sqlite, "sqlite", "", "`path` of the ledger's SQLite file, in place of PostgreSQL")
}

func (f *ledgerFlags) addPostgres(cmd *cobra.Command) {
	cmd.PersistentFlags().StringVar(&f.dsnFile, "dsn-file", "", "`path` of a file that holds the PostgreSQL DSN, in place of "+envDSN)
	cmd.PersistentFlags().StringVar(&f.schema, "schema", "samekey", "PostgreSQL schema that holds the ledger's tables")
}

// check wants exactly one ledger. A path that a script left empty must not lead to
// another one.
func (f *ledgerFlags) check(cmd *cobra.Command) error {
	given := func(name string) bool { return cmd.Flags().Changed(name) }
	switch {
	case cmd.Name() == "ledger": // it shows its help only
		return nil
	case given("sqlite") && f.sqlite == "":
		return errors.New("--sqlite is empty: give the path of the ledger's file")
	case given("dsn-file") && f.dsnFile == "":
		return errors.New("--dsn-file is empty: give the path of a file that holds the DSN")
	case given("sqlite") && given("dsn-file"):
		return errors.New("--sqlite and --dsn-file name two ledgers: give one of them")
	case given("sqlite") && given("schema"):
		return errors.New("--schema is for PostgreSQL: a ledger in a SQLite file has none")
	case f.sqlite == "" && f.dsnFile == "" && os.Getenv(envDSN) == "":
		return errors.New("no ledger is named: put the PostgreSQL DSN into " + envDSN + " or a file for --dsn-file" + orSQLite(cmd))
	}
	return nil
}

// orSQLite is the part of an error that only some commands can offer.
func orSQLite(cmd *cobra.Command) string {
	if cmd.Flag("sqlite") == nil {
		return ""
	}
	return ", or give --sqlite PATH"
}

// store is what both kinds of ledger are to commands.
type store interface {
	recordstore.Store
	recordstore.Restorer
}

// open opens the ledger that the flags name. It makes and migrates none. The caller
// ends with closed.
func (f *ledgerFlags) open(ctx context.Context) (s store, closed func(), err error) {
	if f.sqlite != "" {
		s, err := sqlite.Open(f.sqlite, &sqlite.Options{Existing: true})
		if err != nil {
			return nil, nil, err
		}
		return s, func() { _ = s.Close() }, nil // what a command did was committed before
	}
	pool, err := f.pool(ctx)
	if err != nil {
		return nil, nil, err
	}
	return postgres.New(pool, f.postgres()), pool.Close, nil
}

func (f *ledgerFlags) postgres() *postgres.Options { return &postgres.Options{Schema: f.schema} }

// pool returns a pool of few connections. It connects with the first statement.
func (f *ledgerFlags) pool(ctx context.Context) (*pgxpool.Pool, error) {
	dsn, from, err := f.dsn()
	if err != nil {
		return nil, err
	}
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil { // the parser's error may quote a part of the password
		return nil, fmt.Errorf("the DSN in %s cannot be read: write it as postgres://USER:PASSWORD@HOST:5432/DATABASE, with what is special in a password percent-encoded", from)
	}
	config.MaxConns = 2
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = connectTimeout
	}
	return pgxpool.NewWithConfig(ctx, config)
}

// dsn returns the DSN and where it stands.
func (f *ledgerFlags) dsn() (dsn, from string, err error) {
	if f.dsnFile == "" {
		return os.Getenv(envDSN), envDSN, nil
	}
	file, err := os.Open(f.dsnFile)
	if err != nil {
		return "", "", fmt.Errorf("--dsn-file: %w", err)
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxDSN+1))
	if err != nil {
		return "", "", fmt.Errorf("--dsn-file: %w", err)
	}
	content = bytes.TrimSpace(content)
	if len(content) == 0 || len(content) > maxDSN || bytes.ContainsAny(content, "\r\n") {
		return "", "", fmt.Errorf("--dsn-file: %s must hold one line, the DSN, and nothing else", f.dsnFile)
	}
	return string(content), f.dsnFile, nil
}
