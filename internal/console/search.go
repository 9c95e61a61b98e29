package console

import (
	"net/http"

	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

// The ways to search for a record.
const (
	byCommand  = "command"
	byExternal = "external"
	byRequest  = "request"
)

// found is the body of the page with what a search found.
type found struct {
	Nothing, Problem string
	Rows             []row
	Full             bool // There may be more.
}

// search finds records by a command's ID, a mark, or what the provider calls them.
// One record alone is shown at once.
func (c *console) search(r *http.Request, _ *session) (view, error) {
	by, text := r.FormValue("by"), bounded(r.FormValue("q"))
	v := view{name: "search", title: "Search"}
	f, problem := filterOf(by, text)
	if problem != "" || text == "" {
		v.body = found{Problem: problem}
		return v, nil
	}
	if id, isMark := idOf(text); isMark && by == byCommand {
		if rec, _, err := c.ledger.Get(r.Context(), id); err == nil {
			return view{to: "/records/" + markOf(rec)}, nil
		}
	}
	page, err := c.ledger.List(r.Context(), recordstore.ListQuery{Filter: f, Limit: pageSize})
	if err != nil {
		return view{}, err
	}
	if len(page.Records) == 1 {
		return view{to: "/records/" + markOf(page.Records[0].Record)}, nil
	}
	body := found{Rows: rowsOf(page.Records, page.Now), Full: page.Next != nil}
	if len(page.Records) == 0 {
		body.Nothing, err = c.nothing(r, f)
	}
	v.now, v.body = page.Now, body
	return v, err
}

// filterOf returns what a search asks the ledger, or what is wrong with it.
func filterOf(by, text string) (f recordstore.Filter, problem string) {
	switch by {
	case byExternal:
		f.ExternalRef = text
		return f, ""
	case byRequest:
		f.RequestID = text
		return f, ""
	case byCommand, "":
	default:
		return f, "Search by command, external reference or provider request id."
	}
	if text == "" {
		return f, ""
	}
	err := keyderive.CheckID(text)
	if err == nil {
		f.CommandID = text
		f.Day, err = keyderive.Day(text)
	}
	if err != nil {
		return f, "This is no command ID: " + printable(err.Error())
	}
	return f, ""
}

// nothing says what it means that the ledger holds no such record.
func (c *console) nothing(r *http.Request, f recordstore.Filter) (string, error) {
	if f.CommandID == "" {
		return "The ledger holds no record with that id of the provider. An answer that was lost left none behind: search by the command.", nil
	}
	about, err := c.ledger.About(r.Context())
	for _, gone := range about.Frontier {
		if f.Day > 0 && f.Day <= gone {
			return "The ledger holds no record of this command, and records of its day may have been removed. Look for it at the provider; a call with it is refused as forgotten.", err
		}
	}
	if !about.Restored.IsZero() {
		return "The ledger holds no record of this command: it was never sent through it, or its record was lost when the ledger was restored from a backup.", err
	}
	return "The ledger holds no record of this command: it was never sent through it. Is the ID whole, and is this the right ledger?", err
}
