package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/seed-6b5e302b/samekey/recordstore/postgres"
)

func migrateCommand() *cobra.Command {
	var flags ledgerFlags
	var printed, partitions bool
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Make or update the schema of a ledger in PostgreSQL, or print it as SQL",
		Long: `Migrate makes the ledger's schema or brings it up to date. It may run beside services
and beside other migrations; builds of the last two minor versions keep working. The
DSN stands in ` + envDSN + ` or in a file that --dsn-file names; its user must own the
schema or be allowed to create it. With --sql the same is printed, for goose, Flyway,
Atlas or a database administrator, and no server is needed. A ledger in a SQLite file
migrates when it is opened.

With --partitions a new ledger has a partition for each month, so that old months go
in a moment. Commands from more than 400 days ago are then forgotten from the
beginning. Migrate also makes the months that are missing up to the next one: run it
every month where no service that purges owns the tables.` + exitCodes,
		Example: "  samekey migrate --dsn-file /run/secrets/ledger-owner\n" +
			"  samekey migrate --sql --schema payments > migrations/0042_samekey.sql",
		Args: cobra.NoArgs,
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case !printed:
				return flags.check(cmd)
			case cmd.Flags().Changed("dsn-file"):
				return errors.New("--sql prints and asks no server: leave --dsn-file out")
			}
			return nil
		},
		RunE: run(func(cmd *cobra.Command, _ []string) error {
			opts := flags.postgres()
			opts.Partitions = partitions
			if printed {
				return postgres.WriteSchema(cmd.OutOrStdout(), opts)
			}
			return migrate(cmd.Context(), cmd.OutOrStdout(), &flags, opts)
		}),
	}
	flags.addPostgres(cmd)
	cmd.Flags().BoolVar(&printed, "sql", false, "print the SQL and apply nothing")
	cmd.Flags().BoolVar(&partitions, "partitions", false, "make a new ledger with a partition for each month")
	return cmd
}

// migrate takes as long as it takes, since an index on a large table does: ctx ends
// when the user interrupts.
func migrate(ctx context.Context, out io.Writer, flags *ledgerFlags, opts *postgres.Options) error {
	pool, err := flags.pool(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := postgres.Migrate(ctx, pool, opts); err != nil {
		return err
	}
	fmt.Fprintf(out, "the ledger's schema %q is up to date\n", flags.schema)
	return nil
}
