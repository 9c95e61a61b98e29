package console

import (
	"cmp"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/seed-6b5e302b/samekey/cmd/samekey/explain"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/replaysemantics"
)

// recordPage is the body of the page of one record.
type recordPage struct {
	Row    row
	Words  explain.Words
	Effect string
	Facts  []fact
	Draw   drawing
	Events []point
	Decide *decision // nil: there is nothing to decide, or not here.
	Tell   string    // Why there is none, where a person is needed.
	Done   string    // What was just decided.
	Sealed int       // Bytes of bodies.
}

// fact is a line of what the ledger holds.
type fact struct {
	Name, Value string
	At          time.Time // In place of Value.
}

// record shows one record.
func (c *console) record(r *http.Request, _ *session) (view, error) {
	rec, err := c.get(r)
	if err != nil {
		return view{}, err
	}
	return c.recordView(r, rec, nil)
}

// get reads the record that a path names.
func (c *console) get(r *http.Request) (recordstore.Record, error) {
	id, known := idOf(r.PathValue("mark"))
	if !known {
		return recordstore.Record{}, errNoRecord
	}
	rec, _, err := c.ledger.Get(r.Context(), id)
	return rec, err
}

// recordView makes the page of a record; again is a form to be corrected.
func (c *console) recordView(r *http.Request, rec recordstore.Record, again *decision) (view, error) {
	about, err := c.ledger.About(r.Context())
	if err != nil {
		return view{}, err
	}
	trail, err := c.ledger.Trail(r.Context(), rec.ID)
	if err != nil {
		return view{}, err
	}
	events := explain.Timeline(rec, trail, about.Now)
	body := recordPage{
		Row: rowOf(rec, about.Now), Words: explain.Record(rec, c.known(rec, trail, about)),
		Effect: outbound.EffectOfRecord(rec, about.Restored).String(),
		Facts:  factsOf(rec), Events: pointsOf(events), Sealed: recordstore.Unsealed(rec).Sealed,
		Done: decided(trail, r.FormValue("resolved")),
	}
	body.Draw = draw(body.Events)
	body.Decide, body.Tell = c.decisionOf(rec, about.Now)
	status := 0
	if again != nil {
		again.Verdicts, again.Early = verdictsFor(rec, about.Now), c.early(rec, about.Now)
		body.Decide, status = again, http.StatusUnprocessableEntity
	}
	return view{status: status, name: "record", title: cmp.Or(rec.CommandID, markOf(rec)) + ": " + rec.Provider + " " + rec.Operation, now: about.Now, body: body}, nil
}

// factsOf lists what a record holds in clear, leaving out what is not set.
func factsOf(rec recordstore.Record) (facts []fact) {
	for _, f := range []fact{
		{Name: "Command", Value: rec.CommandID}, {Name: "Record (mark)", Value: markOf(rec)},
		{Name: "Account", Value: rec.Account}, {Name: "Class", Value: rec.Class},
		{Name: "Outcome", Value: rec.Outcome},
		{Name: "External reference", Value: rec.ExternalRef}, {Name: "Object status", Value: rec.ObjectStatus},
		{Name: "Provider request id", Value: rec.RequestID}, {Name: "Code", Value: rec.ErrorCode},
		{Name: "Label", Value: spaced(replaysemantics.Evidence(rec.Evidence).Label())},
		{Name: "Rests on", Value: explain.Evidence(rec.Evidence)},
		{Name: "Created", At: rec.CreatedAt}, {Name: "Last claim", At: rec.ClaimedAt},
		{Name: "Lease ends", At: rec.LeaseEndsAt}, {Name: "Provider's window ends", At: rec.WindowEndsAt},
		{Name: "Answered", At: rec.AnsweredAt}, {Name: "Next check", At: rec.DueAt}, {Name: "Never sent after", At: rec.NotAfter},
	} {
		if f.Value != "" || !f.At.IsZero() {
			facts = append(facts, f)
		}
	}
	return append(facts,
		fact{Name: "Version", Value: number(rec.Version)}, fact{Name: "Claims", Value: number(rec.Fence)},
		fact{Name: "Requests that may have reached the provider", Value: number(int64(rec.Deliveries))},
		fact{Name: "Checks of the reconciler", Value: number(int64(rec.Checks))})
}

// maxBody is how much of a body one page shows.
const maxBody = 256 << 10

// opened is the body of the page with what was sent and answered.
type opened struct {
	Row                     row
	Sent                    bool
	Method, Target, Request string
	Header                  []outbound.Field
	Answer                  string
	Cut                     bool
	Problem                 string
}

// bodies opens the sealed fields of one record, for who asks for them.
func (c *console) bodies(r *http.Request, _ *session) (view, error) {
	if c.Sealer == nil {
		return view{}, errNoPage
	}
	rec, err := c.get(r)
	if err != nil {
		return view{}, err
	}
	about, err := c.ledger.About(r.Context())
	if err != nil {
		return view{}, err
	}
	c.Log.InfoContext(r.Context(), "console: bodies shown", "record", markOf(rec), "from", r.RemoteAddr)
	body := opened{Row: rowOf(rec, about.Now)}
	plain, err := outbound.OpenRecord(rec, c.Sealer)
	if err != nil {
		body.Problem = printable(err.Error())
	}
	if m := plain.Request; m != nil {
		body.Sent, body.Method, body.Target, body.Request = true, m.Method, m.Target, body.shown(m.Body)
	}
	body.Header, body.Answer = plain.Header, body.shown(plain.Body)
	return view{name: "bodies", title: "What was sent and answered", now: about.Now, body: body}, nil
}

// shown makes a body a text of bounded length, quoted line by line where it is none.
func (o *opened) shown(b []byte) string {
	if len(b) > maxBody {
		b, o.Cut = b[:maxBody], true
		for len(b) > 0 && !utf8.RuneStart(b[len(b)-1]) {
			b = b[:len(b)-1]
		}
	}
	var text strings.Builder
	for line := range strings.Lines(string(b)) {
		text.WriteString(printable(strings.TrimRight(line, "\r\n")) + "\n")
	}
	return text.String()
}
