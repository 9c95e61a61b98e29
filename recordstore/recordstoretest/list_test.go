package recordstoretest

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

func (b *broken) List(ctx context.Context, q recordstore.ListQuery) (recordstore.Listing, error) {
	if b.list == nil {
		return b.Store.List(ctx, q)
	}
	return b.list(b, ctx, q)
}

func (b *broken) Tally(ctx context.Context, f recordstore.Filter) ([]recordstore.Tally, error) {
	if b.tally == nil {
		return b.Store.Tally(ctx, f)
	}
	return b.tally(b, ctx, f)
}

func (b *broken) About(ctx context.Context) (recordstore.About, error) {
	if b.about == nil {
		return b.Store.About(ctx)
	}
	return b.about(b, ctx)
}

// asking lists, and counts, what another question asks for.
func asking(spoil func(q *recordstore.ListQuery)) steps {
	return steps{
		list: func(b *broken, ctx context.Context, q recordstore.ListQuery) (recordstore.Listing, error) {
			spoil(&q)
			return b.Store.List(ctx, q)
		},
		tally: func(b *broken, ctx context.Context, f recordstore.Filter) ([]recordstore.Tally, error) {
			q := recordstore.ListQuery{Filter: f}
			spoil(&q)
			return b.Store.Tally(ctx, q.Filter)
		},
	}
}

// showing breaks a page that was listed.
func showing(spoil func(b *broken, q recordstore.ListQuery, page *recordstore.Listing)) steps {
	return steps{list: func(b *broken, ctx context.Context, q recordstore.ListQuery) (recordstore.Listing, error) {
		page, err := b.Store.List(ctx, q)
		spoil(b, q, &page)
		return page, err
	}}
}

// withRecords breaks each record of a page.
func withRecords(spoil func(rec *recordstore.Listed)) steps {
	return showing(func(_ *broken, _ recordstore.ListQuery, page *recordstore.Listing) {
		for i := range page.Records {
			spoil(&page.Records[i])
		}
	})
}

// without leaves records out of a page.
func without(out func(b *broken, q recordstore.ListQuery, rec recordstore.Record) bool) steps {
	return showing(func(b *broken, q recordstore.ListQuery, page *recordstore.Listing) {
		page.Records = slices.DeleteFunc(page.Records, func(l recordstore.Listed) bool { return out(b, q, l.Record) })
	})
}

// counted breaks a tally.
func counted(spoil func(t *recordstore.Tally)) steps {
	return steps{tally: func(b *broken, ctx context.Context, f recordstore.Filter) ([]recordstore.Tally, error) {
		all, err := b.Store.Tally(ctx, f)
		for i := range all {
			spoil(&all[i])
		}
		return all, err
	}}
}

// describing breaks what a ledger says of itself.
func describing(spoil func(a *recordstore.About)) steps {
	return steps{about: func(b *broken, ctx context.Context) (recordstore.About, error) {
		about, err := b.Store.About(ctx)
		spoil(&about)
		return about, err
	}}
}

func brokenLists() []brokenStore {
	const both = "list/filter tally/groups"
	return slices.Concat([]brokenStore{
		{"states ignored", both, asking(func(q *recordstore.ListQuery) { q.States = nil })},
		{"all called open", "list/open " + both, asking(func(q *recordstore.ListQuery) { q.Open = false })},
		{"provider ignored", both, asking(func(q *recordstore.ListQuery) { q.Provider = "" })},
		{"account ignored", both, asking(func(q *recordstore.ListQuery) { q.Account = "" })},
		{"operation ignored", both, asking(func(q *recordstore.ListQuery) { q.Operation = "" })},
		{"class ignored", both, asking(func(q *recordstore.ListQuery) { q.Class = "" })},
		{"external reference ignored", both, asking(func(q *recordstore.ListQuery) { q.ExternalRef = "" })},
		{"request id ignored", both, asking(func(q *recordstore.ListQuery) { q.RequestID = "" })},
		{"request id in any case", both, asking(func(q *recordstore.ListQuery) { q.RequestID = strings.ToLower(q.RequestID) })},
		{"no beginning", both, asking(func(q *recordstore.ListQuery) { q.After = time.Time{} })},
		{"no end", both, asking(func(q *recordstore.ListQuery) { q.Before = time.Time{} })},
		{"an end that counts", both, asking(func(q *recordstore.ListQuery) {
			if !q.Before.IsZero() {
				q.Before = q.Before.Add(time.Microsecond)
			}
		})},
		{"planned ones left out of spans", "list/filter", without(func(_ *broken, q recordstore.ListQuery, rec recordstore.Record) bool {
			return !q.After.IsZero() && rec.ClaimedAt.IsZero()
		})},
		{"another day's command", "list/command", asking(func(q *recordstore.ListQuery) { q.Day = today(start) })},
		{"a command without its steps", "list/command", without(func(_ *broken, q recordstore.ListQuery, rec recordstore.Record) bool {
			return q.CommandID != "" && rec.CommandID != q.CommandID
		})},
		{"every command that begins so", "list/command", asking(func(q *recordstore.ListQuery) { q.CommandID = strings.TrimSuffix(q.CommandID, "/line-1") })},
		{"dead senders shown when swept", "list/open", without(func(_ *broken, q recordstore.ListQuery, rec recordstore.Record) bool {
			return q.Open && rec.State == recordstore.Sending && rec.DueAt.IsZero()
		})},
		{"dead senders shown until swept", "list/open", without(func(_ *broken, q recordstore.ListQuery, rec recordstore.Record) bool {
			return q.Open && rec.State == recordstore.Sending && !rec.DueAt.IsZero()
		})},
	}, brokenPages(), brokenCounts())
}

func brokenPages() []brokenStore {
	return []brokenStore{
		{"always the oldest first", "list/order list/pages", asking(func(q *recordstore.ListQuery) {
			if q.Order == recordstore.NewestFirst {
				q.Order = recordstore.OldestFirst
			}
		})},
		{"never by identity", "list/order", asking(func(q *recordstore.ListQuery) {
			if q.Order == recordstore.ByIdentity {
				q.Order = recordstore.OldestFirst
			}
		})},
		{"always the first page", "list/pages", asking(func(q *recordstore.ListQuery) { q.From = nil })},
		{"pages by time alone", "list/pages", without(func(_ *broken, q recordstore.ListQuery, rec recordstore.Record) bool {
			return q.From != nil && q.Order != recordstore.ByIdentity && recordstore.Since(rec).Equal(q.From.Since)
		})},
		{"no page follows", "list/pages", showing(func(_ *broken, _ recordstore.ListQuery, page *recordstore.Listing) { page.Next = nil })},
		{"a page too long", "list/order", asking(func(q *recordstore.ListQuery) { q.Limit++ })},
		{"any limit", "list/invalid", asking(func(q *recordstore.ListQuery) {
			if q.Limit < 1 || q.Limit > recordstore.MaxList {
				q.Limit = 10
			}
		})},
		{"any order", "list/invalid", asking(func(q *recordstore.ListQuery) {
			if q.Order == "random" {
				q.Order = recordstore.OldestFirst
			}
		})},
		{"bodies in the list", "list/filter", withRecords(func(rec *recordstore.Listed) { rec.Request = []byte("sealed request") })},
		{"sealed bytes not counted", "list/bodies list/filter", withRecords(func(rec *recordstore.Listed) { rec.Sealed = 0 })},
		{"a list by another clock", "list/filter", showing(func(_ *broken, _ recordstore.ListQuery, page *recordstore.Listing) {
			page.Now = page.Now.Add(time.Second)
		})},
		{"a list that reports what it read", "list/filter", steps{list: func(b *broken, ctx context.Context, q recordstore.ListQuery) (recordstore.Listing, error) {
			for _, rec := range b.all(ctx) {
				rec.Version++
				b.Seed(rec)
			}
			page, err := b.Store.List(ctx, q)
			for i := range page.Records {
				page.Records[i].Version--
			}
			return page, err
		}}},
	}
}

func brokenCounts() []brokenStore {
	return []brokenStore{
		{"records miscounted", "tally/groups", counted(func(t *recordstore.Tally) { t.Records++ })},
		{"open ones miscounted", "tally/groups", counted(func(t *recordstore.Tally) { t.Open = t.Records })},
		{"no age", "tally/groups", counted(func(t *recordstore.Tally) { t.Oldest = t.Newest })},
		{"no newest", "tally/groups", counted(func(t *recordstore.Tally) { t.Newest = t.Oldest })},
		{"no size", "tally/groups", counted(func(t *recordstore.Tally) { t.Sealed = 0 })},
		{"a tally in any order", "tally/groups", steps{tally: func(b *broken, ctx context.Context, f recordstore.Filter) ([]recordstore.Tally, error) {
			all, err := b.Store.Tally(ctx, f)
			slices.Reverse(all)
			return all, err
		}}},
		{"about another clock", "about/ledger", describing(func(a *recordstore.About) { a.Now = a.Now.Add(time.Second) })},
		{"about no pins", "about/ledger", describing(func(a *recordstore.About) { a.Pins = nil })},
		{"about no frontier", "about/ledger", describing(func(a *recordstore.About) { a.Frontier = nil })},
		{"about no restore", "about/ledger", describing(func(a *recordstore.About) { a.Restored = time.Time{} })},
		{"swept before anybody did", "about/ledger", describing(func(a *recordstore.About) { a.SweptTo = a.Now })},
	}
}
