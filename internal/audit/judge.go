package audit

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	"github.com/seed-6b5e302b/samekey/recordstore"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// judge compares what was read.
func (c *comparison) judge(coverage []httpadapter.Coverage) {
	c.report.Complete = true
	for _, l := range coverage {
		c.report.Complete = c.report.Complete && l.Incomplete == ""
		c.report.Lists = append(c.report.Lists, List{l.List, l.Effects, l.Incomplete, l.Doubt, l.UpTo})
	}
	c.indexCommands()
	unrecorded := map[recordstore.ID]bool{}
	for _, e := range c.sorted() {
		c.object(e, unrecorded)
	}
	for _, id := range slices.SortedFunc(maps.Keys(c.statements), byID) {
		c.stated(id, unrecorded)
	}
	c.duplicates()
	c.shared()
	for _, r := range slices.SortedFunc(maps.Values(c.held), func(a, b *record) int { return cmp.Or(a.since.Compare(b.since), byID(a.id, b.id)) }) {
		if r.period {
			c.report.Records++
			c.applied(r, coverage)
		}
	}
	order := Classes()
	slices.SortStableFunc(c.report.Findings, func(a, b Finding) int {
		return cmp.Compare(slices.Index(order, a.Class), slices.Index(order, b.Class))
	})
}

func byID(a, b recordstore.ID) int {
	return cmp.Or(cmp.Compare(a.Day, b.Day), bytes.Compare(a.KeyHash[:], b.KeyHash[:]))
}

// sorted returns the objects by time and id.
func (c *comparison) sorted() []*effect {
	return slices.SortedFunc(maps.Values(c.objects), func(a, b *effect) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.ref, b.ref)) })
}

// find adds a finding, and names it while there is room.
func (c *comparison) find(f Finding) {
	c.report.Counts[f.Class]++
	if c.report.Counts[f.Class] <= maxFindings {
		c.report.Findings = append(c.report.Findings, f)
	}
}

// recordOf is the record that an object belongs to; nil for none. A record whose own
// effect it is goes before that of a command which caused it on the way, as the order
// of a payment; what the provider states and the object bears, before what answers
// told.
func (c *comparison) recordOf(e *effect) *record {
	var cause *record
	for _, id := range e.ids {
		r := c.held[id]
		if r != nil && slices.Contains(e.operations, r.operation) {
			return r
		}
		if cause == nil {
			cause = r
		}
	}
	for _, operation := range e.operations {
		if ids := c.byRef[operation+" "+e.ref]; len(ids) > 0 {
			return c.held[ids[0]]
		}
	}
	if id, known := c.byRequest[e.requestID]; cause == nil && known && e.requestID != "" {
		return c.held[id]
	}
	return cause
}

// object judges one object.
func (c *comparison) object(e *effect, unrecorded map[recordstore.ID]bool) {
	r := c.recordOf(e)
	here := c.shown(e.at) || r != nil && r.period
	other := c.foreignOf(e)
	if here {
		c.report.Effects++
	}
	switch {
	case r != nil:
		c.agree(e, r, here)
	case !here:
	case other != nil:
		unrecorded[other.id] = true
		if !e.refused { // then nothing came of it
			c.find(c.misplaced(e, other))
		}
	case len(e.ids) > 0:
		unrecorded[e.ids[0]] = true
		c.find(c.unrecorded(e, e.ids[0]))
	case !e.refused:
		c.find(Finding{Class: Outside, Operation: strings.Join(e.operations, " or "), Refs: []string{e.ref}, At: e.at,
			Why: "it bears no mark and no key of a ledger, and no record names it: somebody else made it, as at the dashboard, or a program that does not call through this ledger"})
	}
}

// stated judges what is known by a key alone, or by a mark on an object that others
// made.
func (c *comparison) stated(id recordstore.ID, unrecorded map[recordstore.ID]bool) {
	r := c.held[id]
	for _, e := range c.statements[id] {
		switch other := c.foreign[markOf(id)]; {
		case !c.shown(e.at) && (r == nil || !r.period):
			if r != nil && slices.Contains(e.operations, r.operation) {
				r.found = true
			}
		case r != nil:
			if slices.Contains(e.operations, r.operation) {
				c.settles(e, r)
			}
		case !unrecorded[id]:
			unrecorded[id] = true
			if other != nil {
				c.find(c.misplaced(e, other))
			} else {
				c.find(c.unrecorded(e, id))
			}
		}
	}
}

// agree compares an object with its record. One of another operation was caused on
// the way, and says nothing of the record's own effect.
func (c *comparison) agree(e *effect, r *record, here bool) {
	own := slices.Contains(e.operations, r.operation)
	if !own || !here {
		r.found = r.found || own
		if here {
			c.report.Matched++
		}
		return
	}
	switch {
	case c.settles(e, r):
		c.report.Matched++
	case r.alive:
		c.report.InFlight++
	}
}

// settles compares the state of a record with an effect that it has. It reports
// whether they agree.
func (c *comparison) settles(e *effect, r *record) bool {
	if r.found {
		return r.state == recordstore.Succeeded
	}
	r.found = true
	f := c.about(r)
	f.Refs, f.At = refs(e), e.at
	switch r.state {
	case recordstore.Succeeded:
		return true
	case recordstore.Refused:
		if e.refused || r.ref == e.ref && r.evidence != string(rs.ByOperator) { // the provider refused, and left the object
			return true
		}
		f.Class, f.Why = Contradicted, "the record says refused, and the effect is there"
	case recordstore.Uncertain, recordstore.ManualReview:
		f.Class, f.Why = Unsettled, "the effect is there: the look-up can settle the record"
	case recordstore.Sending:
		if r.alive {
			return false
		}
		f.Class, f.Why = Unsettled, "its sender died, and the effect is there"
	default:
		if e.refused {
			return true
		}
		f.Class, f.Why = Contradicted, fmt.Sprintf("the record says %s, and the effect is there", r.state)
	}
	c.find(f)
	return false
}

func (c *comparison) about(r *record) Finding {
	return Finding{Operation: r.operation, Command: r.command, Record: markOf(r.id), State: string(r.state), At: r.since}
}

func refs(e *effect) []string {
	if e.ref == "" {
		return nil
	}
	return []string{e.ref}
}

func markOf(id recordstore.ID) string { return keyderive.MarkOf(id.Day, id.KeyHash) }

// unrecorded is the finding of an effect whose key or mark leads to no record.
func (c *comparison) unrecorded(e *effect, id recordstore.ID) Finding {
	f := Finding{Class: Unrecorded, Operation: strings.Join(e.operations, " or "), Record: markOf(id), Refs: refs(e), At: e.at}
	bears := "the provider states a ledger's key for it"
	if e.marked {
		bears = "it bears a ledger's mark"
	}
	frontier := int32(0)
	for _, day := range c.About.Frontier {
		frontier = max(frontier, day)
	}
	switch {
	case id.Day > 0 && id.Day <= frontier:
		f.Why = bears + "; this ledger may have forgotten its record: evidence of that day may be purged"
	case !c.About.Restored.IsZero() && e.at.Before(c.About.Restored):
		f.Why = bears + "; this ledger was restored from a backup and may have lost its record"
	default:
		f.Why = bears + ", and a record of it was not purged here: it was sent through another ledger, without one (KeysOnly), or the record was lost"
	}
	return f
}

// foreignOf is the record of another account that an effect here leads to.
func (c *comparison) foreignOf(e *effect) *record {
	for _, id := range e.ids {
		if r := c.foreign[markOf(id)]; r != nil {
			return r
		}
	}
	return c.foreign[e.ref]
}

// misplaced is the finding of an effect here whose record names another account. A
// command has another key in each account, so that it may have been sent in both: it
// is a duplicate where this account's record of it was applied too.
func (c *comparison) misplaced(e *effect, other *record) Finding {
	f := c.about(other)
	f.Class, f.Refs, f.At = Foreign, refs(e), e.at
	f.Why = fmt.Sprintf("the effect is in this account, and its record names account %s: the setting of the account was wrong when it was sent; "+
		"the same command may have been sent under the right one too", other.account)
	r := c.byCommand[other.operation+" "+other.command]
	if r == nil {
		return f
	}
	f.Why = fmt.Sprintf("its record names account %s, and this account has a record of the same command, which is %s: samekey ledger show %s",
		other.account, r.state, markOf(r.id))
	if r.state == recordstore.Succeeded {
		f.Class = Duplicate
		if r.ref != "" && r.ref != e.ref {
			f.Refs = append(f.Refs, r.ref)
		}
	}
	return f
}

// indexCommands finds the records of this account by their commands, those that say
// applied before others. Only what is foreign asks for it.
func (c *comparison) indexCommands() {
	if len(c.foreign) == 0 {
		return
	}
	for _, id := range slices.SortedFunc(maps.Keys(c.held), byID) {
		r := c.held[id]
		at := r.operation + " " + r.command
		if known := c.byCommand[at]; known == nil || known.state != recordstore.Succeeded {
			c.byCommand[at] = r
		}
	}
}

// duplicates finds commands with two objects of their operation.
func (c *comparison) duplicates() {
	made := map[recordstore.ID][]*effect{}
	for _, e := range c.sorted() {
		if e.refused { // nothing came of it
			continue
		}
		for _, id := range e.ids {
			if r := c.held[id]; r != nil && slices.Contains(e.operations, r.operation) || r == nil && e.marked {
				made[id] = append(made[id], e)
			}
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(made), byID) {
		all, r := made[id], c.held[id]
		here := r != nil && r.period || slices.ContainsFunc(all, func(e *effect) bool { return c.shown(e.at) })
		if r == nil { // marks may be copied to objects of other kinds: only like with like
			all = slices.DeleteFunc(all, func(e *effect) bool { return !slices.Equal(e.operations, all[0].operations) })
		}
		if len(all) < 2 || !here {
			continue
		}
		f := Finding{Class: Duplicate, Operation: strings.Join(all[0].operations, " or "), Record: markOf(id), At: all[len(all)-1].at}
		if r != nil {
			f = c.about(r)
			f.Class, f.At = Duplicate, all[len(all)-1].at
		}
		for _, e := range all {
			f.Refs = append(f.Refs, e.ref)
		}
		f.Why = fmt.Sprintf("%d effects bear this command's mark or key", len(all))
		if r != nil && r.ref != "" {
			f.Why += "; the record knows of " + r.ref
		}
		c.find(f)
	}
}

// shared finds records of one operation that claim the same object, where the
// operation makes objects.
func (c *comparison) shared() {
	for _, at := range slices.Sorted(maps.Keys(c.byRef)) {
		ids := c.byRef[at]
		operation, ref, _ := strings.Cut(at, " ")
		e := c.objects[ref]
		if len(ids) < 2 || e == nil || !slices.Contains(e.operations, operation) || !c.shown(e.at) {
			continue
		}
		f := c.about(c.held[ids[0]])
		f.Class, f.Refs, f.At = Duplicate, []string{ref}, e.at
		others := make([]string, 0, len(ids)-1)
		for _, id := range ids[1:] {
			others = append(others, c.held[id].command)
		}
		f.Why = fmt.Sprintf("%d records name this one object: also %s", len(ids), strings.Join(others[:min(len(others), 5)], ", "))
		c.find(f)
	}
}

// applied looks for the effect of a record that says it was applied.
func (c *comparison) applied(r *record, coverage []httpadapter.Coverage) {
	if r.state != recordstore.Succeeded || r.found {
		return
	}
	i := slices.IndexFunc(coverage, func(l httpadapter.Coverage) bool { return slices.Contains(l.Operations, r.operation) })
	if i < 0 {
		c.report.NotCompared[r.operation]++
		return
	}
	l := coverage[i]
	upTo := l.UpTo
	if c.About.Now.Before(upTo) { // then the lists began to be read
		upTo = c.About.Now
	}
	last := r.since
	if r.done.After(last) {
		last = r.done
	}
	why := ""
	switch {
	case l.Incomplete != "":
		why = l.List + " was not read to its end"
	case l.Doubt != "":
		why = l.Doubt
	case r.created.Before(c.Since):
		why = "the command is older than the period: its effect may be too"
	case r.evidence == string(rs.ByReplayHeader):
		why = "the provider replayed an older run: its effect may be older than the period"
	case last.After(upTo):
		why = l.List + " may not show it yet: the provider's lists lag"
	}
	if why != "" {
		c.report.NotYetKnown[why]++
		return
	}
	f := c.about(r)
	f.Class, f.Why = Missing, "the record says applied, and "+l.List+" was read to its end and shows no such effect"
	if r.ref != "" {
		f.Refs = []string{r.ref}
	}
	c.find(f)
}
