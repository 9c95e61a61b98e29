package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
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
		Short: "Look at a ledger, and do to it what only people may decide",
		Long: `Ledger works on the ledger in the SQLite file that --sqlite names, else on the one
in PostgreSQL. Its DSN stands in the environment variable ` + envDSN + ` or in a
file that --dsn-file names; one with a password is refused on the command line, which
others can read. At 3 a.m.: docs/ledger-commands.md.` + exitCodes,
		Example: "  samekey ledger open\n" +
			"  samekey ledger show 0193f6a2-1c3d-7e4f-8a5b-6c7d8e9f0a1b\n" +
			"  samekey ledger review --sqlite /var/lib/shop/ledger.db",
		Args:              cobra.NoArgs,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return flags.check(cmd) },
	}
	flags.addSQLite(cmd)
	flags.addPostgres(cmd)
	cmd.AddCommand(showCommand(&flags), openCommand(&flags), reviewCommand(&flags), resolveCommand(&flags),
		abandonCommand(&flags), eraseCommand(&flags), exportCommand(&flags), statsCommand(&flags), restoredCommand(&flags))
	return cmd
}

// ledgerFlags say which ledger a command works on.
type ledgerFlags struct{ sqlite, dsn, dsnFile, schema string }

func (f *ledgerFlags) addSQLite(cmd *cobra.Command) {
	cmd.PersistentFlags().StringVar(&f.sqlite, "sqlite", "", "`path` of the ledger's SQLite file, in place of PostgreSQL")
}

func (f *ledgerFlags) addPostgres(cmd *cobra.Command) {
	cmd.PersistentFlags().StringVar(&f.dsn, "dsn", "", "PostgreSQL `DSN` without a password, as with a password file or peer authentication")
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
	case given("dsn") && f.dsn == "":
		return errors.New("--dsn is empty: give the DSN, or leave it to " + envDSN)
	case hasPassword(f.dsn):
		return errors.New("--dsn holds a password, which other users of this machine can read: put the DSN into " + envDSN +
			" or into a file for --dsn-file, and change the password")
	case given("sqlite") && (given("dsn-file") || given("dsn")), given("dsn") && given("dsn-file"):
		return errors.New("--sqlite, --dsn and --dsn-file name different ledgers: give one of them")
	case given("sqlite") && given("schema"):
		return errors.New("--schema is for PostgreSQL: a ledger in a SQLite file has none")
	case f.sqlite == "" && f.dsn == "" && f.dsnFile == "" && os.Getenv(envDSN) == "":
		return errors.New("no ledger is named: put the PostgreSQL DSN into " + envDSN + " or a file for --dsn-file" + orSQLite(cmd))
	}
	return nil
}

// hasPassword reports whether a DSN may hold a password.
func hasPassword(dsn string) bool {
	_, rest, isURL := strings.Cut(dsn, "://")
	if at := strings.LastIndex(rest, "@"); isURL && at >= 0 && strings.Contains(rest[:at], ":") {
		return true
	}
	return strings.Contains(strings.ToLower(dsn), "password")
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
	recordstore.Lister
	recordstore.Desk
	recordstore.Queue
	recordstore.Purger
}

// open opens the ledger that the flags name. It makes and migrates none. The caller
// ends with closed.
func (f *ledgerFlags) open(ctx context.Context) (s store, closed func(), err error) {
	if f.sqlite != "" {
		s, err := sqlite.Open(f.sqlite, &sqlite.Options{Existing: true})
		if err != nil {
			return nil, nil, notOpened(err)
		}
		return s, func() { _ = s.Close() }, nil // what a command did was committed before
	}
	pool, err := f.pool(ctx)
	if err != nil {
		return nil, nil, err
	}
	return postgres.New(pool, f.postgres()), pool.Close, nil
}

// work opens the ledger, makes sure that this build can read it, and runs do with what
// the ledger says of itself. It ends after limit; 0: when the user interrupts.
func (f *ledgerFlags) work(ctx context.Context, limit time.Duration, do func(context.Context, store, recordstore.About) error) error {
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	s, closed, err := f.open(ctx)
	if err != nil {
		return err
	}
	defer closed()
	about, err := s.About(ctx)
	if err != nil {
		if cause := errors.Unwrap(err); cause != nil && strings.HasPrefix(err.Error(), "postgres: about: ") {
			err = cause // what the store calls this step says nothing to people
		}
		return fmt.Errorf("the ledger cannot be read: %w", err)
	}
	return do(ctx, s, about)
}

func (f *ledgerFlags) postgres() *postgres.Options { return &postgres.Options{Schema: f.schema} }

// pool returns a pool of few connections. It connects with the first statement. It
// prepares nothing: that gains nothing here, and PgBouncer before 1.21 does not keep
// the prepared statements of its clients apart.
func (f *ledgerFlags) pool(ctx context.Context) (*pgxpool.Pool, error) {
	config, err := f.config()
	if err != nil {
		return nil, err
	}
	if config.ConnConfig.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	}
	config.MaxConns = 2
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = connectTimeout
	}
	return pgxpool.NewWithConfig(ctx, config)
}

// config reads the DSN.
func (f *ledgerFlags) config() (*pgxpool.Config, error) {
	dsn, from, err := f.source()
	if err != nil {
		return nil, err
	}
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil { // the parser's error may quote a part of the password
		return nil, fmt.Errorf("the DSN in %s cannot be read: write it as postgres://USER:PASSWORD@HOST:5432/DATABASE, with what is special in a password percent-encoded", from)
	}
	return config, nil
}

// source returns the DSN and where it stands.
func (f *ledgerFlags) source() (dsn, from string, err error) {
	if f.dsn != "" {
		return f.dsn, "--dsn", nil
	}
	if f.dsnFile == "" {
		return strings.TrimSpace(os.Getenv(envDSN)), envDSN, nil
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
