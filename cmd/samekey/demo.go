package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
	fakepaypal "github.com/seed-6b5e302b/samekey/internal/fakeprovider/paypal"
	fakestripe "github.com/seed-6b5e302b/samekey/internal/fakeprovider/stripe"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/paypal"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
	"github.com/seed-6b5e302b/samekey/recordstore/sqlite"
)

func demoCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show what happens when answers are lost, senders race and processes die",
		Long: `Demo runs two fake providers on loopback sockets and a SQLite ledger in a
temporary folder, breaks what can break, and prints one line for each call. The
numbers of deliveries and effects are the providers' own count. It ends with an
error if any command had another number of effects than it should.`,
		Example: "  samekey demo\n  samekey demo --json",
		Args:    cobra.NoArgs,
		RunE: run(func(cmd *cobra.Command, _ []string) error {
			return runDemo(cmd.Context(), cmd.OutOrStdout(), asJSON)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object in place of the timeline")
	return cmd
}

const demoMerchant = "MERCHANTDEMO1"

// side is one provider: the fake that keeps count and the client that calls it.
type side struct {
	name   string
	fake   *fakeprovider.Fake
	server *fakeprovider.Server
	client *outbound.Client
}

// line is what the timeline shows of one call.
type line struct {
	Provider   string `json:"provider"`
	Operation  string `json:"operation"`
	Command    string `json:"command"`
	Deliveries int    `json:"deliveries"`
	Effects    int    `json:"effects"`
	Outcome    string `json:"outcome"`
	Label      string `json:"label,omitempty"`
	Evidence   string `json:"evidence,omitempty"`
	What       string `json:"what"`
}

type labels struct {
	NewExecution   int `json:"new_execution"`
	OriginalReplay int `json:"original_replay"`
	LatestStatus   int `json:"latest_status"`
}

// totals count over both providers. Deliveries, effects and duplicates are what
// the providers counted.
type totals struct {
	Commands   int    `json:"commands"`
	Declines   int    `json:"declines"`
	Deliveries int    `json:"deliveries"`
	Effects    int    `json:"effects"`
	Duplicates int    `json:"duplicates"`
	Blocked    int    `json:"blocked"`
	Conflicts  int    `json:"conflicts"`
	Labels     labels `json:"labels"`
	Calls      []line `json:"calls"`
}

type demo struct {
	out    io.Writer
	asJSON bool
	ledger *sqlite.Store
	path   string
	sides  [2]*side

	totals   totals
	commands map[string]bool
}

func runDemo(ctx context.Context, out io.Writer, asJSON bool) error {
	dir, err := os.MkdirTemp("", "samekey-demo-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	d := &demo{out: out, asJSON: asJSON, path: filepath.Join(dir, "ledger.db"), commands: make(map[string]bool)}
	if d.ledger, err = sqlite.Open(d.path, nil); err != nil {
		return err
	}
	defer func() { _ = d.ledger.Close() }()
	for i, name := range []string{"stripe", "paypal"} {
		if d.sides[i], err = newSide(name, d.ledger); err != nil {
			return err
		}
		defer d.sides[i].server.Close()
	}
	d.begin()
	for _, scene := range []func(context.Context) error{d.stripeScenes, d.paypalScenes} {
		if err := scene(ctx); err != nil {
			return err
		}
	}
	for _, s := range d.sides {
		if err := s.client.Close(ctx); err != nil {
			return err
		}
	}
	return d.finish()
}

func newSide(name string, ledger *sqlite.Store) (*side, error) {
	dialect := fakestripe.New(fakestripe.Config{})
	if name == "paypal" {
		dialect = fakepaypal.New(fakepaypal.Config{MerchantID: demoMerchant})
	}
	s := &side{name: name, fake: fakeprovider.New(dialect, nil)}
	var err error
	if s.server, err = fakeprovider.Listen(s.fake); err != nil {
		return nil, err
	}
	s.client, err = demoClient(name, s.server.URL, ledger)
	return s, err
}

// demoClient is what a service would build at its start; leases are short, so
// that a dead process is noticed while somebody watches.
func demoClient(provider, url string, ledger *sqlite.Store) (*outbound.Client, error) {
	var adapter outbound.Adapter
	switch provider {
	case "stripe":
		adapter = stripe.New(stripe.Config{Account: "acct_demo", Test: true, SecretKey: "sk_test_demo", BaseURL: url})
	default:
		adapter = paypal.New(paypal.Config{Account: demoMerchant, Sandbox: true, ClientID: "demo", Secret: "demo", BaseURL: url})
	}
	return outbound.New(adapter, ledger, &outbound.Options{
		Bodies: outbound.Seal(outbound.SealKey{ID: "demo", Bytes: make([]byte, 32)}), // a real key comes from a secret store
		Lease:  2 * time.Second,
		Retry:  outbound.Retry{MinWait: 50 * time.Millisecond, MaxWait: 200 * time.Millisecond},
	})
}

// call runs one call and adds its line. Both counts are the fake's, before and
// after.
func (d *demo) call(ctx context.Context, s *side, what string, c outbound.Call) (*outbound.Reply, error) {
	deliveries, effects := len(s.fake.Requests(c.Operation)), s.fake.Effects(c.Operation)
	reply, err := s.client.Do(ctx, c)
	d.add(line{
		Provider: s.name, Operation: c.Operation, Command: c.Command.ID, What: what,
		Deliveries: len(s.fake.Requests(c.Operation)) - deliveries, Effects: s.fake.Effects(c.Operation) - effects,
	}, reply, err)
	return reply, err
}

// show is call for answers of which the timeline says enough.
func (d *demo) show(ctx context.Context, s *side, what string, c outbound.Call) {
	_, _ = d.call(ctx, s, what, c)
}

// add completes a line by what Do returned, counts it and prints it.
func (d *demo) add(l line, reply *outbound.Reply, err error) {
	l.Outcome = "applied"
	answer := reply
	if e, ok := errors.AsType[*outbound.Error](err); ok {
		l.Outcome, answer = string(e.Code), e.Answer
		switch e.Code {
		case outbound.ErrInFlight:
			d.totals.Blocked++
		case outbound.ErrFingerprintConflict:
			d.totals.Conflicts++
		case outbound.ErrRefused:
			d.totals.Declines++
		}
	} else if err != nil {
		l.Outcome = err.Error()
	}
	if answer != nil {
		l.Label, l.Evidence = string(answer.Label), string(answer.Evidence)
		switch answer.Label {
		case outbound.NewExecution:
			d.totals.Labels.NewExecution++
		case outbound.OriginalReplay:
			d.totals.Labels.OriginalReplay++
		case outbound.LatestStatus:
			d.totals.Labels.LatestStatus++
		}
	}
	d.commands[l.Provider+" "+l.Operation+" "+l.Command] = true
	d.totals.Deliveries += l.Deliveries
	d.totals.Calls = append(d.totals.Calls, l)
	if !d.asJSON {
		fmt.Fprintf(d.out, lineFormat, l.Provider, l.Operation, fmt.Sprint(l.Deliveries), fmt.Sprint(l.Effects), l.Outcome, l.Label, l.Evidence, l.What)
	}
}

const lineFormat = "%-8s %-22s %-10s %-7s %-20s %-15s %-16s %s\n"

func (d *demo) begin() {
	if !d.asJSON {
		fmt.Fprintf(d.out, lineFormat, "provider", "operation", "deliveries", "effects", "outcome", "label", "evidence", "what happened")
	}
}

// finish prints the totals, and fails if a command had another number of effects
// than it should.
func (d *demo) finish() error {
	t := &d.totals
	t.Commands = len(d.commands)
	for _, s := range d.sides {
		r := s.fake.Report()
		t.Effects += r.Total
		t.Duplicates += r.Duplicates
	}
	if d.asJSON {
		enc := json.NewEncoder(d.out)
		enc.SetIndent("", "  ")
		if err := enc.Encode(t); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(d.out, "\nblocked %d  conflicts %d  declines %d  deliveries %d\n", t.Blocked, t.Conflicts, t.Declines, t.Deliveries)
		fmt.Fprintf(d.out, "labels: new_execution %d  original_replay %d  latest_status %d\n", t.Labels.NewExecution, t.Labels.OriginalReplay, t.Labels.LatestStatus)
		fmt.Fprintf(d.out, "commands %d  effects %d  duplicates %d\n", t.Commands, t.Effects, t.Duplicates)
	}
	if t.Effects != t.Commands-t.Declines || t.Duplicates != 0 {
		return fmt.Errorf("%d effects of %d commands with %d declines, %d duplicates", t.Effects, t.Commands, t.Declines, t.Duplicates)
	}
	return nil
}
