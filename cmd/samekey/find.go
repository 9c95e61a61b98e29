package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

// maxShown is how many records of one command are shown or acted on.
const maxShown = 200

// target says which records a command line is about: those of a command, of one
// record, or of what a provider calls its own.
type target struct {
	provider, operation, externalRef, requestID string

	command string
}

// addTo adds the flags that narrow a command's records down, and with search those
// that find records without a command.
func (t *target) addTo(cmd *cobra.Command, search bool) {
	cmd.Flags().StringVar(&t.provider, "provider", "", "only records of this provider, as stripe")
	cmd.Flags().StringVar(&t.operation, "operation", "", "only records of this operation, as refund.create")
	if search {
		cmd.Flags().StringVar(&t.externalRef, "external-ref", "", "in place of CMD: the provider's `id` of the object, as re_3Nv0")
		cmd.Flags().StringVar(&t.requestID, "request-id", "", "in place of CMD: the provider's `id` of the exchange, as req_8Kd2")
	}
}

// check takes the command from the arguments. Errors are wrong usage.
func (t *target) check(args []string) error {
	t.command = ""
	if len(args) > 0 {
		t.command = args[0]
	}
	named := 0
	for _, name := range []string{t.command, t.externalRef, t.requestID} {
		if name != "" {
			named++
		}
	}
	if named != 1 || len(args) > 1 {
		return errors.New("name one command by its ID, or a record by the mark that `ledger open` shows; see --help")
	}
	if t.command == "" {
		return nil
	}
	if err := keyderive.CheckID(t.command); err != nil {
		return fmt.Errorf("%q is no command ID: %w", t.command, err)
	}
	return nil
}

// name says what was asked for.
func (t *target) name() string {
	switch {
	case t.externalRef != "":
		return "external reference " + t.externalRef
	case t.requestID != "":
		return "provider request id " + t.requestID
	}
	return "command " + t.command
}

// find returns the records that t is about, oldest first. None is exitNothing.
func (t *target) find(ctx context.Context, s store, about recordstore.About) ([]recordstore.Listed, error) {
	records, err := t.byMark(ctx, s)
	if err == nil && len(records) == 0 {
		records, err = t.byFilter(ctx, s)
	}
	if err == nil && len(records) == 0 {
		return nil, endf(exitNothing, "%s", t.nothing(about))
	}
	return records, err
}

// byMark finds one record by what is stamped on its object at the provider.
func (t *target) byMark(ctx context.Context, s store) ([]recordstore.Listed, error) {
	day, hash, err := keyderive.ParseMark(t.command)
	if err != nil { // it is a command ID
		return nil, nil
	}
	rec, _, err := s.Get(ctx, recordstore.ID{Day: day, KeyHash: hash})
	if errors.Is(err, recordstore.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return []recordstore.Listed{recordstore.Unsealed(rec)}, nil
}

func (t *target) byFilter(ctx context.Context, s store) ([]recordstore.Listed, error) {
	f := recordstore.Filter{
		Provider: t.provider, Operation: t.operation, CommandID: t.command, ExternalRef: t.externalRef, RequestID: t.requestID,
	}
	if t.command != "" {
		day, err := keyderive.Day(t.command)
		if err != nil {
			return nil, err
		}
		f.Day = day
	}
	page, err := s.List(ctx, recordstore.ListQuery{Filter: f, Limit: maxShown})
	return page.Records, err
}

// nothing says that there is no such record, and what that means.
func (t *target) nothing(about recordstore.About) string {
	text := "the ledger holds no record of " + t.name()
	if odd := unheardOf(t.provider, t.operation); odd != "" {
		return odd
	}
	if filters := t.filters(); filters != "" {
		return text + " with " + filters + ". Leave that out to see whether there is one of another provider or operation"
	}
	if t.command == "" {
		return text
	}
	day, _ := keyderive.Day(t.command) // it was checked before
	if gone := slices.Max(append([]int32{0}, frontiers(about)...)); day > 0 && day <= gone {
		return text + ": it is of " + dateOf(day) + ", and records up to " + dateOf(gone) +
			" may have been removed. Look for it at the provider; a call with it is refused as forgotten"
	}
	if !about.Restored.IsZero() {
		return text + ": it was never sent through this ledger, or its record was lost in the restore of " + about.Restored.Format(time.RFC3339)
	}
	return text + ": it was never sent through this ledger. Is the ID whole, and is this the right ledger and schema?"
}

// filters are the flags that were on.
func (t *target) filters() string {
	var on []string
	if t.provider != "" {
		on = append(on, "--provider "+t.provider)
	}
	if t.operation != "" {
		on = append(on, "--operation "+t.operation)
	}
	return strings.Join(on, " and ")
}

func frontiers(about recordstore.About) (days []int32) {
	for _, day := range about.Frontier {
		days = append(days, day)
	}
	return days
}

func dateOf(day int32) string { return time.Unix(int64(day)*86400, 0).UTC().Format(time.DateOnly) }

// one returns the only record that t is about. More than one is wrong usage, with
// what tells them apart.
func (t *target) one(ctx context.Context, s store, about recordstore.About) (recordstore.Record, error) {
	records, err := t.find(ctx, s, about)
	if err != nil {
		return recordstore.Record{}, err
	}
	if len(records) > 1 {
		var names []string
		for _, rec := range records[:min(len(records), 8)] {
			names = append(names, fmt.Sprintf("%s (%s %s of %s, %s)", markOf(rec.Record), rec.Provider, rec.Operation, rec.CommandID, rec.State))
		}
		return recordstore.Record{}, endf(exitUsage, "%s has %d records: name one by its mark in place of the command: %s",
			t.name(), len(records), strings.Join(names, ", "))
	}
	rec, _, err := s.Get(ctx, records[0].ID)
	return rec, err
}

// markOf names a record: what is stamped on its object at the provider.
func markOf(rec recordstore.Record) string { return keyderive.MarkOf(rec.ID.Day, rec.ID.KeyHash) }

// labelOf names a record to people.
func labelOf(rec recordstore.Record) string {
	return rec.Provider + " " + rec.Operation + " of " + cmp.Or(rec.CommandID, markOf(rec))
}
