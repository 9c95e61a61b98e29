// Command samekey shows, serves and operates samekey: a demo that needs nothing
// but this program, fake payment providers for tests in any language, and what
// people do to ledgers.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// Exit codes: scripts may rely on them.
const (
	exitFailed  = 1 // the command ran and did not succeed
	exitUsage   = 2 // the command line is wrong
	exitNothing = 3 // nothing of what was asked for is there
	exitPerson  = 4 // the command did its work, and something waits for a person
	exitMoved   = 5 // the record is not as it was seen: nothing was changed
)

// exitCodes is what every help text of a command with such codes ends with.
const exitCodes = `

Exit codes: 0 done; 1 failed; 2 wrong usage; 3 nothing found; 4 something waits for a
person; 5 the record moved since it was seen, nothing was changed.`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := root().ExecuteContext(ctx)
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "samekey:", err)
	stop()
	os.Exit(exitCode(err))
}

func exitCode(err error) int {
	if e, ok := errors.AsType[*ending](err); ok {
		return e.code
	}
	if _, failed := errors.AsType[*failure](err); failed {
		return exitFailed
	}
	return exitUsage
}

// ending is an end of a command that ran with an exit code of its own.
type ending struct {
	code int
	error
}

func (e *ending) Unwrap() error { return e.error }

func endf(code int, format string, args ...any) error {
	return &ending{code, fmt.Errorf(format, args...)}
}

// failure is an error of a command that ran; all others are wrong usage.
type failure struct{ error }

func (f *failure) Unwrap() error { return f.error }

// Error is one line, also where a driver's error has one for each host and try; the
// same try is told once.
func (f *failure) Error() string {
	var told []string
	for line := range strings.Lines(f.error.Error()) {
		line = strings.Join(strings.Fields(line), " ")
		base, _, _ := strings.Cut(line, ": is the DSN right") // the last try has the advice behind it
		if i := slices.Index(told, base); i >= 0 {
			told = slices.Delete(told, i, i+1)
		}
		told = append(told, line)
	}
	return strings.Join(told, " ")
}

// run makes a command's errors failures.
func run(f func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := f(cmd, args); err != nil {
			return &failure{advised(err)}
		}
		return nil
	}
}

func root() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "samekey",
		Short: "Call payment providers so that one command has at most one effect",
		Long: `Samekey shows, serves and operates samekey: a demo that needs nothing else, fakes of
Stripe and PayPal for tests in any language, and what people do to a ledger. No secret
is taken on the command line: DSN, keys and tokens stand in the environment, or in a
file.` + exitCodes,
		Example: "  samekey demo\n" +
			"  samekey ledger show 0193f6a2-1c3d-7e4f-8a5b-6c7d8e9f0a1b\n" +
			"  samekey doctor",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(demoCommand(), demoWorkerCommand(), fakeCommand(), migrateCommand(), ledgerCommand(),
		reconcileCommand(), purgeCommand(), doctorCommand(), consoleCommand(), auditCommand(),
		reprocessCommand(), newProviderCommand())
	return cmd
}
