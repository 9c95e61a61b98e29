package audit

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

// comparison is one audit at work. It keeps of each effect and record what connects
// them, and no body.
type comparison struct {
	Options
	ledger Ledger
	report Report

	objects    map[string]*effect           // What effects made, by the provider's id.
	statements map[recordstore.ID][]*effect // What the provider says of a key, or an object bears, beside that.
	said       int                          // statements so far
	lists      map[string][]string          // Operations, each list kept once.

	held      map[recordstore.ID]*record
	byRef     map[string][]recordstore.ID // By operation and the provider's id.
	byRequest map[string]recordstore.ID

	foreign   map[string]*record // Of other accounts, by the mark or provider's id of an effect here.
	byCommand map[string]*record // By operation and command; empty where nothing is foreign.
}

// effect is what is kept of one.
type effect struct {
	operations []string
	ref        string
	ids        []recordstore.ID // That the keys and marks lead to.
	marked     bool             // A mark is among them.
	requestID  string
	at         time.Time
	refused    bool
}

// record is what is kept of one. done is when it was answered, by the ledger's clock.
type record struct {
	id                      recordstore.ID
	state                   recordstore.State
	operation, command, ref string
	evidence, account       string
	created, since, done    time.Time
	alive                   bool // Its sender's lease lives.
	period                  bool // It was claimed in the period, and not only fetched for an effect.
	found                   bool // An effect of its own operation is there.
}

func newComparison(ledger Ledger, o Options) *comparison {
	return &comparison{
		Options: o, ledger: ledger,
		objects: map[string]*effect{}, statements: map[recordstore.ID][]*effect{}, lists: map[string][]string{},
		held: map[recordstore.ID]*record{}, byRef: map[string][]recordstore.ID{}, byRequest: map[string]recordstore.ID{}, foreign: map[string]*record{}, byCommand: map[string]*record{},
		report: Report{
			Provider: o.Provider, Account: o.account(), Since: o.Since, Until: o.Until, Findings: []Finding{}, Counts: map[Class]int{},
			NotYetKnown: map[string]int{}, NotCompared: map[string]int{}, Accounts: map[string]int{},
		},
	}
}

// effect takes one in. What made an object is kept by the object, so that list and
// event of it become one.
func (c *comparison) effect(l httpadapter.ListedEffect) error {
	var ids []recordstore.ID
	if !l.Key.IsZero() {
		ids = append(ids, recordstore.ID{Day: l.Key.Day(), KeyHash: l.Key.Hash()})
	}
	day, hash, err := keyderive.ParseMark(l.Mark)
	marked := l.Mark != "" && err == nil
	if id := (recordstore.ID{Day: day, KeyHash: hash}); marked && (len(ids) == 0 || ids[0] != id) {
		ids = append(ids, id)
	}
	e := &effect{operations: c.once(l.Operations), ref: l.Ref, ids: ids, marked: marked, requestID: l.RequestID, at: l.At, refused: l.Refused}
	if !l.Creates || l.Ref == "" {
		return c.statement(e)
	}
	known := c.objects[l.Ref]
	if known == nil {
		if len(c.objects) >= c.Limit {
			return tooMany("effects", c.Limit)
		}
		c.objects[l.Ref] = e
		if len(c.objects)%100 == 0 {
			c.Progress("effects read:", len(c.objects))
		}
		return nil
	}
	known.merge(e)
	return nil
}

// merge adds what another sight of the same object shows.
func (e *effect) merge(other *effect) {
	for _, id := range other.ids {
		if !e.leadsTo(id) {
			e.ids = append(e.ids, id)
		}
	}
	e.marked = e.marked || other.marked
	e.refused = e.refused || other.refused
	if e.requestID == "" {
		e.requestID = other.requestID
	}
	if len(other.operations) < len(e.operations) { // a list may know better than an event
		e.operations = other.operations
	}
	if e.at.IsZero() || !other.at.IsZero() && other.at.Before(e.at) {
		e.at = other.at
	}
}

func (e *effect) leadsTo(id recordstore.ID) bool {
	for _, known := range e.ids {
		if known == id {
			return true
		}
	}
	return false
}

// statement keeps what is known by a key or mark alone; the rest, as what Stripe did
// by itself, says nothing of a ledger.
func (c *comparison) statement(e *effect) error {
	for _, id := range e.ids {
		again := false
		for _, known := range c.statements[id] {
			again = again || known.ref == e.ref && strings.Join(known.operations, " ") == strings.Join(e.operations, " ")
		}
		if again {
			continue
		}
		if c.said++; c.said > c.Limit {
			return tooMany("statements of the provider's", c.Limit)
		}
		c.statements[id] = append(c.statements[id], e)
	}
	return nil
}

// once returns one copy of equal lists.
func (c *comparison) once(operations []string) []string {
	name := strings.Join(operations, " ")
	if c.lists[name] == nil {
		c.lists[name] = append([]string{}, operations...)
	}
	return c.lists[name]
}

// records walks the ledger, from before the period to its end, and beyond it for
// what the effects lead to: a later claim moves a record.
func (c *comparison) records(ctx context.Context) error {
	wanted := map[recordstore.ID]bool{}
	for _, e := range c.objects {
		for _, id := range e.ids {
			wanted[id] = true
		}
	}
	q := recordstore.ListQuery{
		Filter: recordstore.Filter{Provider: c.Provider, After: c.Since.Add(-claimMargin)}, Limit: recordstore.MaxList,
	}
	for {
		page, err := c.ledger.List(ctx, q)
		if err != nil {
			return err
		}
		for _, listed := range page.Records {
			rec := listed.Record
			since := recordstore.Since(rec)
			near := since.Before(c.Until.Add(claimMargin)) || wanted[rec.ID] || c.statements[rec.ID] != nil || c.objects[rec.ExternalRef] != nil
			switch {
			case rec.Account != c.account():
				if !c.stray(rec, wanted[rec.ID] || c.statements[rec.ID] != nil) && c.within(since) {
					c.report.Accounts[rec.Account]++
				}
			case near:
				if len(c.held) >= c.Limit && c.held[rec.ID] == nil {
					return tooMany("records", c.Limit)
				}
				c.hold(rec, page.Now).period = c.within(since)
			}
		}
		c.Progress("records read:", len(c.held))
		if q.From = page.Next; q.From == nil {
			return nil
		}
	}
}

// hold keeps a record, anew where it moved in between.
func (c *comparison) hold(rec recordstore.Record, now time.Time) *record {
	r := newRecord(rec)
	r.alive = rec.State == recordstore.Sending && now.Before(rec.LeaseEndsAt)
	if c.held[rec.ID] == nil {
		if r.ref != "" {
			at := r.operation + " " + r.ref
			c.byRef[at] = append(c.byRef[at], rec.ID)
		}
		if rec.RequestID != "" {
			c.byRequest[rec.RequestID] = rec.ID
		}
	}
	c.held[rec.ID] = r
	return r
}

func newRecord(rec recordstore.Record) *record {
	return &record{
		id: rec.ID, state: rec.State, operation: rec.Operation, command: rec.CommandID, ref: rec.ExternalRef,
		evidence: rec.Evidence, account: rec.Account, created: rec.CreatedAt, since: recordstore.Since(rec), done: rec.AnsweredAt,
	}
}

// stray keeps a record of another account whose effect is in this one: its key or
// mark is there, or an object that it names. It reports whether it is such a record.
func (c *comparison) stray(rec recordstore.Record, wanted bool) bool {
	if e := c.objects[rec.ExternalRef]; rec.Provider == c.Provider && e != nil && slices.Contains(e.operations, rec.Operation) {
		c.foreign[rec.ExternalRef] = newRecord(rec)
		wanted = true
	}
	if wanted {
		r := newRecord(rec)
		if rec.Provider != c.Provider {
			r.account = rec.Provider + " " + rec.Account
		}
		c.foreign[markOf(rec.ID)] = r
	}
	return wanted
}

// fetch reads the records that keys and marks lead to and that the walk did not meet,
// as those of an older claim.
func (c *comparison) fetch(ctx context.Context) error {
	asked := 0
	read := func(id recordstore.ID) error {
		if c.held[id] != nil || c.foreign[markOf(id)] != nil {
			return nil
		}
		if asked++; asked%100 == 0 {
			c.Progress("older records read:", asked)
		}
		rec, now, err := c.ledger.Get(ctx, id)
		if errors.Is(err, recordstore.ErrNotFound) {
			return nil
		}
		switch {
		case err != nil:
			return err
		case rec.Provider != c.Provider || rec.Account != c.account():
			c.stray(rec, true)
		default:
			c.hold(rec, now)
		}
		return nil
	}
	for _, e := range c.objects {
		for _, id := range e.ids {
			if err := read(id); err != nil {
				return err
			}
		}
	}
	for id := range c.statements {
		if err := read(id); err != nil {
			return err
		}
	}
	return nil
}
