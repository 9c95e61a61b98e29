package console

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-6b5e302b/samekey/cmd/samekey/explain"
	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

// row is one record of a list.
type row struct {
	Mark                         string
	Provider, Operation, Command string
	State                        recordstore.State
	Since                        time.Time
	Age                          time.Duration
	Next, Code                   string
	Person, Late                 bool
	Planned                      bool // Nobody claimed it yet: Since is when it was written.
}

// late is how long after its time a check may come before somebody should ask why.
const late = time.Minute

func rowOf(rec recordstore.Record, now time.Time) row {
	since := recordstore.Since(rec)
	r := row{
		Mark: markOf(rec), Provider: rec.Provider, Operation: rec.Operation, Command: rec.CommandID,
		State: rec.State, Since: since, Age: now.Sub(since), Code: rec.ErrorCode,
		Planned: rec.ClaimedAt.IsZero(), Person: rec.State == recordstore.ManualReview, Late: !rec.DueAt.IsZero() && now.Sub(rec.DueAt) > late,
	}
	if recordstore.IsOpen(rec, now) {
		r.Next = explain.Next(rec, now)
	}
	return r
}

func rowsOf(records []recordstore.Listed, now time.Time) []row {
	rows := make([]row, len(records))
	for i, rec := range records {
		rows[i] = rowOf(rec.Record, now)
	}
	return rows
}

func markOf(rec recordstore.Record) string { return keyderive.MarkOf(rec.ID.Day, rec.ID.KeyHash) }

// openList is the body of the first page.
type openList struct {
	State    recordstore.State // That is asked for; "": all that is open.
	Provider string
	States   []recordstore.State
	Rows     []row
	More     string // The next page.
	Later    bool   // This is not the first.
}

// openStates are those that the first page can be narrowed to.
var openStates = []recordstore.State{
	recordstore.ManualReview, recordstore.Uncertain, recordstore.Sending, recordstore.Planned, recordstore.NotExecuted,
}

// openRecords lists what is open, the oldest first.
func (c *console) openRecords(r *http.Request, _ *session) (view, error) {
	body := openList{State: recordstore.State(r.FormValue("state")), Provider: bounded(r.FormValue("provider")), States: openStates}
	q := recordstore.ListQuery{Filter: recordstore.Filter{Open: true, Provider: body.Provider}, Limit: pageSize}
	if body.State != "" {
		if !slices.Contains(openStates, body.State) {
			return view{}, fmt.Errorf("%w: there is no open state %q", recordstore.ErrInvalid, body.State)
		}
		q.States = []recordstore.State{body.State}
	}
	if from := r.FormValue("from"); from != "" {
		place, err := parsePlace(from)
		if err != nil {
			return view{}, err
		}
		q.From, body.Later = place, true
	}
	page, err := c.ledger.List(r.Context(), q)
	if err != nil {
		return view{}, err
	}
	body.Rows = rowsOf(page.Records, page.Now)
	if page.Next != nil {
		next := url.Values{"from": {formatPlace(*page.Next)}}
		if body.State != "" {
			next.Set("state", string(body.State))
		}
		if body.Provider != "" {
			next.Set("provider", body.Provider)
		}
		body.More = "/?" + next.Encode()
	}
	return view{name: "open", title: "Open records", now: page.Now, body: body}, nil
}

// formatPlace writes a place in a list for a URL; parsePlace reads it.
func formatPlace(p recordstore.Place) string {
	return strconv.FormatInt(p.Since.UnixMicro(), 10) + "-" + keyderive.MarkOf(p.ID.Day, p.ID.KeyHash)
}

func parsePlace(text string) (*recordstore.Place, error) {
	micros, mark, _ := strings.Cut(text, "-")
	at, err := strconv.ParseInt(micros, 10, 64)
	id, known := idOf(mark)
	if err != nil || !known {
		return nil, fmt.Errorf("%w: the page's place in the list is not one that the console wrote: begin with the first page", recordstore.ErrInvalid)
	}
	return &recordstore.Place{Since: time.UnixMicro(at).UTC(), ID: id}, nil
}

// idOf reads a record's mark.
func idOf(mark string) (recordstore.ID, bool) {
	day, hash, err := keyderive.ParseMark(mark)
	return recordstore.ID{Day: day, KeyHash: hash}, err == nil
}

// maxInput bounds what people type into one field.
const maxInput = 512

func bounded(s string) string {
	s = strings.TrimSpace(s)
	if len(s) > maxInput {
		return s[:maxInput]
	}
	return s
}
