// Command withserver runs a command while a private PostgreSQL runs, and gives
// it the server's DSN in SAMEKEY_TEST_POSTGRES:
//
//	go run ./internal/pgtest/withserver go test ./...
//
// Its exit code is the command's. With -find alone it only says where the server
// programs are, or how to install them.
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
		fmt.Fprintln(os.Stderr, "usage: withserver COMMAND [ARGUMENT ...], or withserver -find")
		return 2
	}
	if command[0] == "-find" {
		return find()
	}
	server, err := pgtest.Start()
	if err != nil {
		fmt.Fprintln(os.Stderr, "withserver:", err)
		return 1
	}
	defer server.Stop()
	return runOn(server, command)
}

func find() int {
	folder, err := pgtest.Programs()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(folder)
	return 0
}

// runOn runs command to its end and returns its exit code.
func runOn(server *pgtest.Server, command []string) int {
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
