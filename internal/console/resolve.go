package console

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/seed-6b5e302b/samekey/cmd/samekey/explain"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

// verdict is one that a person can choose.
type verdict struct {
	Name, Says string
	gives      outbound.Resolution
}

// verdicts are the words of `samekey ledger resolve`.
var verdicts = []verdict{
	{"applied", "The object is there: the command has succeeded.", outbound.Resolution{Effect: outbound.EffectApplied}},
	{"none", "It is not there and cannot come any more: the command is ended.", outbound.Resolution{Effect: outbound.EffectNone}},
	{"send-again", "It is not there and cannot come any more, and the same command may be sent again.", outbound.Resolution{Effect: outbound.EffectNone, SendAgain: true}},
}

// decision is the form of a verdict, and what was typed into it.
type decision struct {
	Version                     int64  // That was seen.
	Early                       string // Until when "not there" cannot be known; "" where it can.
	Force                       bool   // It is decided anyway.
	State                       recordstore.State
	Verdicts                    []verdict
	Verdict, Ref, Reason, Named string
	Problem                     string
}

// decisionOf returns the form for a record, or why there is none.
func (c *console) decisionOf(rec recordstore.Record, now time.Time) (*decision, string) {
	possible := verdictsFor(rec, now)
	switch {
	case len(possible) == 0 || rec.State != recordstore.ManualReview && rec.State != recordstore.Uncertain:
		return nil, ""
	case !c.AllowResolve:
		return nil, "This console only reads. Decide with `samekey ledger resolve " + markOf(rec) + " --version " + number(rec.Version) + "`, or start the console with --allow-resolve."
	}
	return &decision{Version: rec.Version, State: rec.State, Verdicts: possible, Early: c.early(rec, now)}, ""
}

// horizon returns how long after a lease a request may still be executed; 0: as usual.
func (c *console) horizon(rec recordstore.Record) time.Duration {
	if c.Horizon == nil {
		return 0
	}
	return c.Horizon(rec.Provider, rec.Operation)
}

// early says until when "not there" cannot be known; "" where it can.
func (c *console) early(rec recordstore.Record, now time.Time) string {
	return explain.TooEarly(rec, c.horizon(rec), now)
}

func (c *console) known(rec recordstore.Record, trail []recordstore.Entry, about recordstore.About) explain.Known {
	return explain.Known{Trail: trail, Now: about.Now, Restored: about.Restored, Horizon: c.horizon(rec)}
}

// verdictsFor returns what a person may decide about a record as it is.
func verdictsFor(rec recordstore.Record, now time.Time) (possible []verdict) {
	for _, v := range verdicts {
		r := v.gives
		r.Version, r.Reason, r.Operator = rec.Version, "-", "-"
		if moved, err := r.Verdict(rec.ID); err == nil {
			if _, err = recordstore.Resolved(rec, moved, now); err == nil {
				possible = append(possible, v)
			}
		}
	}
	return possible
}

// decided tells the verdict that raised a record to a version, where there is one:
// what the page that follows a form says.
func decided(trail []recordstore.Entry, version string) string {
	for _, e := range trail {
		if version == number(e.Version) && e.Kind == "verdict" {
			return fmt.Sprintf("Recorded in version %d: %s decided, %s → %s.", e.Version, printable(e.Actor), spaced(e.From), spaced(e.To))
		}
	}
	return ""
}

// resolve settles a record by a person's verdict about the version that they saw.
func (c *console) resolve(_ http.ResponseWriter, r *http.Request, _ *session) (view, error) {
	if !c.AllowResolve {
		return view{status: http.StatusForbidden, name: "message", title: "Forbidden", body: "This console only reads: start it with --allow-resolve. Nothing was done."}, nil
	}
	rec, err := c.get(r)
	if err != nil {
		return view{}, err
	}
	form, v, err := readDecision(r, rec.ID)
	if err != nil {
		form.Problem = printable(err.Error())
		return c.recordView(r, rec, form)
	}
	if v.State != recordstore.Succeeded && !form.Force {
		about, err := c.ledger.About(r.Context())
		if err != nil {
			return view{}, err
		}
		_, refused := recordstore.Resolved(rec, v, about.Now)
		if early := c.early(rec, about.Now); refused == nil && early != "" {
			form.Problem = "it cannot be known yet that it had no effect: " + early + ", or tick the box"
			return c.recordView(r, rec, form)
		}
	}
	after, err := c.ledger.Resolve(r.Context(), v)
	if errors.Is(err, recordstore.ErrNotHeld) {
		c.Log.InfoContext(r.Context(), "console: verdict refused", "record", markOf(after), "seen", v.Version, "version", after.Version)
		return c.moved(r, after, form)
	}
	if err != nil {
		return view{}, err
	}
	c.Log.InfoContext(r.Context(), "console: resolved", "record", markOf(after), "state", after.State, "version", after.Version, "name", form.Named)
	return view{to: "/records/" + markOf(after) + "?resolved=" + number(after.Version)}, nil
}

// readDecision reads the form. The error says what it lacks.
func readDecision(r *http.Request, id recordstore.ID) (*decision, recordstore.Verdict, error) {
	form := &decision{
		State: recordstore.State(r.PostFormValue("state")), Verdict: r.PostFormValue("verdict"), Ref: bounded(r.PostFormValue("external_ref")),
		Reason: r.PostFormValue("reason"), Named: r.PostFormValue("name"),
		Force: r.PostFormValue("force") == "yes",
	}
	version, err := strconv.ParseInt(r.PostFormValue("version"), 10, 64)
	if err != nil || version < 1 {
		return form, recordstore.Verdict{}, errors.New("the form does not say which version was seen: look at the record again")
	}
	form.Version = version
	i := slices.IndexFunc(verdicts, func(v verdict) bool { return v.Name == form.Verdict })
	if i < 0 {
		return form, recordstore.Verdict{}, errors.New("choose a verdict: applied, none or send-again")
	}
	decided := verdicts[i].gives
	decided.Version, decided.ExternalRef, decided.Reason, decided.Operator = version, form.Ref, form.Reason, form.Named
	v, err := decided.Verdict(id)
	return form, v, err
}

// movedPage is the body of the page that refuses a verdict.
type movedPage struct {
	Row            row
	Form           *decision
	Version        int64
	Same           bool // The version is the one that was seen: it cannot be resolved as it is.
	Since          []recordstore.Entry
	Words          explain.Words
	EarlierUnknown bool // Nothing in the trail tells what moved it.
}

// moved shows what changed since the version that a person saw.
func (c *console) moved(r *http.Request, rec recordstore.Record, form *decision) (view, error) {
	about, err := c.ledger.About(r.Context())
	if err != nil {
		return view{}, err
	}
	trail, err := c.ledger.Trail(r.Context(), rec.ID)
	if err != nil {
		return view{}, err
	}
	body := movedPage{
		Row: rowOf(rec, about.Now), Form: form, Version: rec.Version, Same: rec.Version == form.Version,
		Words: explain.Record(rec, c.known(rec, trail, about)),
	}
	for _, e := range trail {
		if e.Version > form.Version {
			body.Since = append(body.Since, e)
		}
	}
	body.EarlierUnknown = !body.Same && len(body.Since) == 0
	return view{status: http.StatusConflict, name: "moved", title: "Nothing was changed", now: about.Now, body: body}, nil
}

func number(n int64) string { return strconv.FormatInt(n, 10) }
