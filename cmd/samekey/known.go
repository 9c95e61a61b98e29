package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-6b5e302b/samekey/cmd/samekey/explain"
	"github.com/seed-6b5e302b/samekey/providers/paypal"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/replaysemantics"
)

// tables are the operations that this build knows, by provider.
func tables() map[string][]replaysemantics.Operation {
	return map[string][]replaysemantics.Operation{"stripe": stripe.Operations(), "paypal": paypal.Operations()}
}

// horizonOf returns how long after a lease a request of an operation may still be
// executed; 0: as usual.
func horizonOf(provider, operation string) time.Duration {
	row, _ := replaysemantics.Find(tables()[provider], operation)
	return row.Horizon
}

// explained says what a record means, with what its trail tells.
func explained(ctx context.Context, s store, rec recordstore.Record, about recordstore.About) (explain.Words, error) {
	trail, err := s.Trail(ctx, rec.ID)
	if err != nil {
		return explain.Words{}, err
	}
	return explain.Record(rec, knownOf(rec, trail, about)), nil
}

func knownOf(rec recordstore.Record, trail []recordstore.Entry, about recordstore.About) explain.Known {
	return explain.Known{Trail: trail, Now: about.Now, Restored: about.Restored, Horizon: horizonOf(rec.Provider, rec.Operation)}
}

// unheardOf says what is odd about filters that found nothing: a name that no table
// of this build has is likely mistyped. It is "" where both are known.
func unheardOf(provider, operation string) string {
	all := tables()
	if provider != "" && all[provider] == nil {
		return fmt.Sprintf("--provider %q is none that this build knows, and the ledger has no such record: it knows paypal and stripe", provider)
	}
	if operation == "" {
		return ""
	}
	var names []string
	for name, rows := range all {
		if provider != "" && name != provider {
			continue
		}
		for _, row := range rows {
			if row.Name == operation {
				return ""
			}
			names = append(names, row.Name)
		}
	}
	of := "any provider"
	if provider != "" {
		of = provider
	}
	return fmt.Sprintf("--operation %q is none of %s that this build knows, and the ledger has no such record: is it %s?", operation, of, strings.Join(nearest(operation, names), ", "))
}

// nearest returns the three names that need the fewest changes to become word.
func nearest(word string, names []string) []string {
	slices.Sort(names)
	names = slices.Compact(names)
	slices.SortStableFunc(names, func(a, b string) int { return changes(word, a) - changes(word, b) })
	return names[:min(3, len(names))]
}

// changes counts the bytes to insert, remove or replace to make b of a.
func changes(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
