package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/seed-6b5e302b/samekey/reprocess"
)

func (r *reprocessing) plan(ctx context.Context, b *reprocess.Batch, runner *reprocess.Runner) error {
	p, err := runner.Plan(ctx, r.progress.at)
	if err != nil {
		return err
	}
	if r.asJSON {
		err = writeJSON(r.out, p)
	} else {
		r.writePlan(b, p)
		if p.ShadowNeeded {
			fmt.Fprintf(r.out, "over %d targets: a run needs `samekey reprocess shadow` first\n", reprocess.ShadowOver)
		}
	}
	if err != nil {
		return err
	}
	return differs(p)
}

func (r *reprocessing) writePlan(b *reprocess.Batch, p *reprocess.Plan) {
	m := &b.Manifest
	fmt.Fprintf(r.out, "%s, effect version %d, at %s, wanted by %s: %s\n", printable(m.Consumer), m.EffectVersion, printable(m.Provider), printable(m.Who), printable(m.Reason))
	fmt.Fprintf(r.out, "manifest %s\n", p.Digest)
	fmt.Fprintf(r.out, "%d targets: %d are done at this version, %d ended without it, %d would be called for, %d of them begun\n", p.Targets, p.Done, p.Ended, p.Calls, p.Begun)
	if m.EffectVersion > 1 {
		fmt.Fprintf(r.out, "earlier versions: %d applied, which will have two effects; %d whose outcome nobody knows\n", p.Earlier, p.Unknown)
	}
	if !m.ExternalWrites {
		fmt.Fprintln(r.out, "external writes are not allowed by the manifest: a run is refused")
	}
}

// differs ends a command whose manifest says something else than the ledger.
func differs(p *reprocess.Plan) error {
	if len(p.Differs) > 0 {
		return endf(exitPerson, "the manifest differs, a run is refused: %s", strings.Join(p.Differs, "; "))
	}
	return nil
}

func (r *reprocessing) shadow(ctx context.Context, b *reprocess.Batch, runner *reprocess.Runner) error {
	s, err := runner.Shadow(ctx, r.progress.at)
	if err != nil {
		return err
	}
	if r.asJSON {
		err = writeJSON(r.out, s)
	} else {
		r.writePlan(b, &s.Plan)
		fmt.Fprintf(r.out, "compared %d with what earlier versions sent: %d the same, %d changed, %d new, %d unreadable\n", s.Compared, s.Same, s.Changed, s.New, s.Unread)
		if s.Twice > 0 {
			fmt.Fprintf(r.out, "%d of them are the same and applied: a run repeats those effects\n", s.Twice)
		}
		fmt.Fprintf(r.out, "report: %s\n", b.ShadowPath())
	}
	if err != nil {
		return err
	}
	return differs(&s.Plan)
}

func (r *reprocessing) run(ctx context.Context, _ *reprocess.Batch, runner *reprocess.Runner) error {
	r.opts.Progress = r.tell
	report, err := runner.Run(ctx, r.opts)
	if report == nil {
		return err
	}
	if r.asJSON {
		if wrote := writeJSON(r.out, report); err == nil {
			err = wrote
		}
	} else {
		fmt.Fprintf(r.out, "%s\nreport: %s\n", counts(report), report.Path())
	}
	switch {
	case err != nil:
		return err
	case report.Stopped != "":
		return fmt.Errorf("the run was stopped: %s", report.Stopped)
	case report.Failed+report.Unknown > 0:
		return endf(exitPerson, "%d targets failed and of %d nobody knows yet: run it again, then see the report", report.Failed, report.Unknown)
	}
	return nil
}

// tell shows how far a run is, every few seconds.
func (r *reprocessing) tell(report reprocess.Report) {
	if now := time.Now(); now.Sub(r.progress.last) >= progressEvery {
		r.progress.last = now
		fmt.Fprintf(r.log, "samekey: %s\n", counts(&report))
	}
}

func counts(r *reprocess.Report) string {
	return fmt.Sprintf("%d targets: executed %d, replayed %d, failed %d, unknown %d, skipped %d",
		r.Targets, r.Executed, r.Replayed, r.Failed, r.Unknown, r.Skipped)
}
