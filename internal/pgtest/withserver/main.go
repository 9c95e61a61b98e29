// Command withserver runs a command while a private PostgreSQL runs, and gives
// it the server's DSN in SAMEKEY_TEST_POSTGRES:
//
//	go run ./internal/pgtest/withserver go test ./...
//
// Its exit code is the command's.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/seed-6b5e302b/samekey/internal/pgtest"
)

func main() { os.Exit(run(os.Args[1:])) }

func run(command []string) int {
	if len(command) == 0 {
		fmt.Fprintln(os.Stderr, "usage: withserver COMMAND [ARGUMENT ...]")
		return 2
	}
	server, err := pgtest.Start()
	if err != nil {
		fmt.Fprintln(os.Stderr, "withserver:", err)
		return 1
	}
	defer server.Stop()
	// The command gets the terminal's signals itself; this process waits for it.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), pgtest.EnvDSN+"="+server.DSN)
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "withserver:", err)
		return 1
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case sig := <-signals:
			_ = cmd.Process.Signal(sig) // gone already: its end is on the way
		case err := <-ended:
			var exit *exec.ExitError
			switch {
			case errors.As(err, &exit) && exit.ExitCode() > 0:
				return exit.ExitCode()
			case err != nil:
				fmt.Fprintln(os.Stderr, "withserver:", err)
				return 1
			}
			return 0
		}
	}
}
