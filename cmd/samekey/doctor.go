package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-6b5e302b/samekey/cmd/samekey/explain"
	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

// What doctor takes for wrong.
const (
	skewNoted   = time.Second      // of two clocks
	skewWrong   = time.Minute      // ends of windows and NotAfter are then told wrongly to people
	deadFor     = 10 * time.Minute // since a lease ended that nobody looked after
	overdueFor  = 15 * time.Minute // since a check was due
	leastWindow = 22 * time.Minute // lease, the time for resends and their margin, by default
	bodiesRead  = 100              // newest records with bodies, whose seal key is read
)

// finding is what doctor says about one thing.
type finding struct {
	Check string `json:"check"`
	Level string `json:"level"` // ok, note or problem.
	Text  string `json:"text"`
	Do    string `json:"what_to_do,omitempty"`
}

const (
	levelOK      = "ok"
	levelNote    = "note"
	levelProblem = "problem"
)

func ok(check, format string, args ...any) finding {
	return finding{check, levelOK, fmt.Sprintf(format, args...), ""}
}

func note(check, do, format string, args ...any) finding {
	return finding{check, levelNote, fmt.Sprintf(format, args...), do}
}

func problem(check, do, format string, args ...any) finding {
	return finding{check, levelProblem, fmt.Sprintf(format, args...), do}
}

func doctorCommand() *cobra.Command {
	var flags ledgerFlags
	var horizon time.Duration
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look for what will hurt: clocks, secrets, keys, dead leases, settings of the database",
		Long: `Doctor compares this machine's clock with the ledger's, the secret and the seal keys
that are given (` + envSecret + `, ` + envSealKeys + `) with those that the ledger was written
with, and looks for senders that died, overdue checks, provider windows that are shorter
than your retries, and settings of the database that lose claims or slow it down. It
changes nothing. Where there is a problem it ends with exit code 4.` + exitCodes,
		Example: "  samekey doctor\n" +
			"  samekey doctor --retry-horizon 72h --json\n" +
			"  samekey doctor --sqlite /var/lib/shop/ledger.db",
		Args: cobra.NoArgs,
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if horizon <= 0 {
				return errors.New("--retry-horizon is how long your job queue tries again, as 72h")
			}
			return flags.check(cmd)
		},
		RunE: run(func(cmd *cobra.Command, _ []string) error {
			return flags.work(cmd.Context(), ledgerTimeout, func(ctx context.Context, s store, about recordstore.About) error {
				d := doctor{flags: &flags, store: s, about: about, horizon: horizon}
				if err := d.examine(ctx); err != nil {
					return err
				}
				return d.report(cmd.OutOrStdout(), asJSON)
			})
		}),
	}
	flags.addSQLite(cmd)
	flags.addPostgres(cmd)
	cmd.Flags().DurationVar(&horizon, "retry-horizon", leastWindow, "how long your job queue tries a command again")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print an array of findings as JSON")
	return cmd
}

type doctor struct {
	flags    *ledgerFlags
	store    store
	about    recordstore.About
	horizon  time.Duration
	findings []finding
}

func (d *doctor) add(f ...finding) { d.findings = append(d.findings, f...) }

func (d *doctor) examine(ctx context.Context) error {
	d.add(ok("schema", "version %d, which this build works with", d.about.Schema))
	checks := []func(context.Context) error{d.secret, d.clock, d.sealKeys, d.waiting, d.windows, d.restored}
	if d.flags.sqlite != "" {
		checks = append(checks, d.file)
	} else {
		checks = append(checks, d.server)
	}
	for _, check := range checks {
		if err := check(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (d *doctor) report(out io.Writer, asJSON bool) error {
	problems := 0
	for _, f := range d.findings {
		if f.Level == levelProblem {
			problems++
		}
	}
	if asJSON {
		if err := writeJSON(out, d.findings); err != nil {
			return err
		}
	} else {
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		for _, f := range d.findings {
			fmt.Fprintf(w, "%s\t%s\t%s\n", f.Level, f.Check, printable(f.Text))
			if f.Do != "" {
				fmt.Fprintf(w, "\t\t→ %s\n", f.Do)
			}
		}
		_ = w.Flush() // a reader that went away needs no more
	}
	if problems == 1 {
		return endf(exitPerson, "1 problem")
	}
	if problems > 0 {
		return endf(exitPerson, "%d problems", problems)
	}
	return nil
}

// secret compares the pinned secret with the one that is given.
func (d *doctor) secret(context.Context) error {
	given, err := secretFromEnv()
	if err != nil {
		return err
	}
	const check = "secret"
	switch pins := d.about.Pins; {
	case pins == nil:
		d.add(note(check, "", "nobody has used this ledger yet: the first client pins its secret"))
	case pins.Derivation != keyderive.Version:
		d.add(problem(check, "use a build with that derivation", "the ledger's keys are made with derivation %q, this build's with %q", pins.Derivation, keyderive.Version))
	case pins.Secret == given.Fingerprint():
		d.add(ok(check, "derivation %s, fingerprint %s, as given", pins.Derivation, pins.Secret))
	case given.IsZero():
		d.add(note(check, "give it in "+envSecret+" to have it compared", "the ledger was made with a secret of fingerprint %s, and none is given here", pins.Secret))
	default:
		d.add(problem(check, "services with this secret are refused: give them the one that the ledger was first used with",
			"the ledger was made with fingerprint %s, the given secret has %s", pins.Secret, given.Fingerprint()))
	}
	return nil
}

// clock compares this machine's clock with the ledger's.
func (d *doctor) clock(ctx context.Context) error {
	before := time.Now()
	about, err := d.store.About(ctx)
	if err != nil {
		return err
	}
	took := time.Since(before)
	skew := about.Now.Sub(before.Add(took / 2))
	unsure := took / 2
	text := fmt.Sprintf("this machine's clock and the ledger's differ by %v, give or take %v", skew.Abs().Round(time.Millisecond), unsure.Round(time.Millisecond))
	const do = "have both machines keep time by NTP: leases count on the ledger's clock alone, but NotAfter and the days of command IDs come from this one"
	switch off := skew.Abs() - unsure; {
	case off > skewWrong:
		d.add(problem("clock", do, "%s", text))
	case off > skewNoted:
		d.add(note("clock", do, "%s", text))
	default:
		d.add(ok("clock", "%s", text))
	}
	return nil
}

// sealKeys reads which keys sealed the records that may have to be opened: all that
// are open, and the newest.
func (d *doctor) sealKeys(ctx context.Context) error {
	given, err := sealKeysFromEnv()
	if err != nil {
		return err
	}
	open, err := d.store.List(ctx, recordstore.ListQuery{Filter: recordstore.Filter{Open: true}, Limit: recordstore.MaxList})
	if err != nil {
		return err
	}
	newest, err := d.store.List(ctx, recordstore.ListQuery{
		Filter: recordstore.Filter{After: d.about.Now.Add(-24 * time.Hour)}, Order: recordstore.NewestFirst, Limit: bodiesRead,
	})
	if err != nil && !errors.Is(err, recordstore.ErrTooLong) {
		return err
	}
	used := map[string]int{}
	for _, l := range slices.Concat(open.Records, newest.Records) {
		if l.Sealed == 0 {
			continue
		}
		rec, _, err := d.store.Get(ctx, l.ID)
		if err != nil && !errors.Is(err, recordstore.ErrNotFound) {
			return err
		}
		for _, sealed := range [][]byte{rec.Request, rec.ResponseBody} {
			if id, ok := outbound.SealKeyID(sealed); ok {
				used[id]++
			}
		}
	}
	d.add(keyFindings(used, given)...)
	return nil
}

func keyFindings(used map[string]int, given []outbound.SealKey) (found []finding) {
	const check = "seal keys"
	for id, n := range used {
		has := slices.ContainsFunc(given, func(k outbound.SealKey) bool { return k.ID == id })
		switch {
		case has:
			found = append(found, ok(check, "key %q, in use, is given", id))
		case len(given) == 0:
			found = append(found, note(check, "give the services' keys in "+envSealKeys+" to have them compared", "key %q is in use", id))
		default:
			found = append(found, problem(check, "give it to the services as an older key: what it sealed can be neither resent nor replayed without it",
				"key %q sealed at least %d bodies that may be needed, and is not given", id, n))
		}
	}
	if len(found) == 0 {
		found = append(found, ok(check, "no recent or open record was sealed with a key of samekey's own sealer"))
	}
	slices.SortFunc(found, func(a, b finding) int { return strings.Compare(a.Text, b.Text) })
	return found
}

// waiting looks for what nobody looks after.
func (d *doctor) waiting(ctx context.Context) error {
	page, err := d.store.List(ctx, recordstore.ListQuery{Filter: recordstore.Filter{Open: true}, Limit: recordstore.MaxList})
	if err != nil {
		return err
	}
	var dead, overdue, review int
	var oldest time.Time
	for _, rec := range page.Records {
		switch {
		case rec.State == recordstore.ManualReview:
			review++
			if since := recordstore.Since(rec.Record); oldest.IsZero() || since.Before(oldest) {
				oldest = since
			}
		case rec.State == recordstore.Sending && rec.DueAt.IsZero() && d.about.Now.Sub(rec.LeaseEndsAt) > deadFor:
			dead++
		case !rec.DueAt.IsZero() && d.about.Now.Sub(rec.DueAt) > overdueFor:
			overdue++
		}
	}
	const do = "run a reconciler in the services (outbound.NewReconciler), or `samekey reconcile --once`"
	least := ""
	if page.Next != nil {
		least = fmt.Sprintf(" among the oldest %d that are open", len(page.Records))
	}
	if dead > 0 {
		d.add(problem("leases", do, "%d senders died more than %s ago, and nobody looked for them%s", dead, explain.Span(deadFor), least))
	} else {
		d.add(ok("leases", "no lease is long dead"))
	}
	if overdue > 0 {
		d.add(problem("reconciler", do, "%d checks are overdue by more than %s%s: no reconciler runs, or it cannot keep up", overdue, explain.Span(overdueFor), least))
	} else {
		d.add(ok("reconciler", "no check is overdue"))
	}
	if review > 0 {
		d.add(problem("review", "samekey ledger review", "%s for a person%s, the oldest since %s", waits(review), least, explain.Clock(oldest)))
	}
	return nil
}

// windows compares how long providers know a key with how long a caller retries.
func (d *doctor) windows(context.Context) error {
	shorter := 0
	for provider, rows := range tables() {
		byWindow := map[time.Duration][]string{}
		for _, op := range rows {
			if op.HasKey() && op.Window > 0 && op.Window < d.horizon {
				byWindow[op.Window] = append(byWindow[op.Window], op.Name)
				shorter++
			}
		}
		for window, names := range byWindow {
			d.add(note("windows", "that is safe: a retry after the window asks the provider first, and sends nothing before it is proved absent",
				"%s knows the keys of %s for %s, less than the retries of %s", provider, strings.Join(names, ", "), explain.Span(window), explain.Span(d.horizon)))
		}
	}
	if shorter == 0 {
		d.add(ok("windows", "every published window is longer than %s", explain.Span(d.horizon)))
	}
	return nil
}

func (d *doctor) restored(context.Context) error {
	if !d.about.Restored.IsZero() {
		d.add(note("restored", "lift it when the commands of that time are through: samekey ledger restored --clear",
			"restored from a backup: what was written before %s may be lost, and older commands are looked up first", explain.Clock(d.about.Restored)))
	}
	return nil
}
