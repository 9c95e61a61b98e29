package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/paypal"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
	"github.com/seed-6b5e302b/samekey/recordstore/sqlite"
)

// errKilled is what the timeline shows of a process that cannot answer any more.
var errKilled = errors.New("killed")

// workerOrder is what a worker process of the demo has to do.
type workerOrder struct {
	Provider, URL, Ledger, Command, Target string
}

func demoWorkerCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "demo-worker ORDER",
		Short:  "Make one call of the demo in a process of its own",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: run(func(cmd *cobra.Command, args []string) error {
			var o workerOrder
			if err := json.Unmarshal([]byte(args[0]), &o); err != nil {
				return err
			}
			return o.work(cmd.Context())
		}),
	}
}

func (o workerOrder) work(ctx context.Context) error {
	ledger, err := sqlite.Open(o.Ledger, nil)
	if err != nil {
		return err
	}
	defer func() { _ = ledger.Close() }()
	client, err := demoClient(o.Provider, o.URL, ledger)
	if err != nil {
		return err
	}
	cmd := outbound.Command{ID: o.Command}
	call := paypal.OrderCapture(cmd, o.Target, nil)
	if o.Provider == "stripe" {
		call = stripe.RefundCreate(cmd, url.Values{"charge": {o.Target}, "amount": {"1000"}})
	}
	_, err = client.Do(ctx, call)
	return err
}

// worker is a running worker process.
type worker struct{ cmd *exec.Cmd }

func startWorker(ctx context.Context, o workerOrder) (*worker, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	order, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, "demo-worker", string(order))
	cmd.Stderr = os.Stderr
	return &worker{cmd}, cmd.Start()
}

// kill ends the process with SIGKILL, which it cannot answer, and reaps it.
func (w *worker) kill() error {
	err := w.cmd.Process.Kill()
	_ = w.cmd.Wait() // "signal: killed" is what was asked for
	return err
}
