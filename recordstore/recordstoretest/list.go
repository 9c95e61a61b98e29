package recordstoretest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

// listCases judge what people are shown of a ledger.
func listCases() []testCase {
	return []testCase{
		{"list/filter", "a person who is not shown a stuck payment does not decide about it", listFilter},
		{"list/order", "what waits longest, and what came last, stand first where they are asked for", listOrder},
		{"list/pages", "page by page each record is shown once, also where a thousand were claimed in one moment", listPages},
		{"list/command", "a command has several records, one for each step, operation and provider, and none of another command", listCommand},
		{"list/open", "a sender that died is found before anybody swept, and one that lives is left in peace", listOpen},
		{"list/bodies", "a list of a hundred records must not carry their bodies", listBodies},
		{"list/invalid", "a list without a bound reads the whole ledger", listInvalid},
		{"tally/groups", "counts and ages by provider, operation, class and state show where it is stuck", tallyGroups},
		{"about/ledger", "a person must see whose ledger this is, what it forgot, and by which clock it decides", aboutLedger},
	}
}

// shown returns records that differ in all that lists ask for. Many were claimed in
// one moment.
func shown() (recs []recordstore.Record) {
	states := []recordstore.State{
		recordstore.Planned, recordstore.Sending, recordstore.Succeeded, recordstore.Refused,
		recordstore.NotExecuted, recordstore.Uncertain, recordstore.ManualReview, recordstore.Abandoned,
	}
	for n := range 64 {
		rec := taken(n)
		rec.State = states[n%len(states)]
		rec.Provider = []string{"stripe", "paypal", "adyen"}[n%3]
		rec.Operation = []string{"refund.create", "order.capture"}[n/2%2]
		rec.Class = []string{"money", "object"}[n/4%2]
		rec.Account = []string{"acct_1Nv0/live", "acct_1Nv0/test"}[n/8%2]
		rec.ExternalRef = []string{"", fmt.Sprintf("re_%d", n/4)}[n%2]
		rec.RequestID = []string{fmt.Sprintf("req_%d", n/4), ""}[n%2]
		rec.ClaimedAt = start.Add(-time.Duration(n/16) * time.Hour)
		rec.CreatedAt = rec.ClaimedAt.Add(-time.Minute)
		rec.LeaseEndsAt = rec.ClaimedAt.Add(lease)
		rec.DueAt = time.Time{}
		switch {
		case rec.State == recordstore.Planned:
			rec.ClaimedAt, rec.LeaseEndsAt, rec.DueAt = time.Time{}, time.Time{}, rec.CreatedAt
		case rec.State == recordstore.Uncertain, rec.State == recordstore.NotExecuted && n < 32, rec.State == recordstore.Sending && n%16 == 1:
			rec.DueAt = start.Add(time.Duration(n-32) * time.Minute)
		}
		if n%5 == 0 {
			rec.ID.Day = 0
		}
		recs = append(recs, rec)
	}
	return recs
}

// taken returns the record of an ordinary first claim.
func taken(n int) recordstore.Record {
	rec, _ := recordstore.Take(newClaim(n), nil, 0, start)
	return rec
}

// filters returns questions of many kinds, alone and together.
func filters() []recordstore.Filter {
	all := []recordstore.Filter{
		{}, {Open: true}, {Provider: "stripe"}, {Account: "acct_1Nv0/test"}, {Operation: "order.capture"}, {Class: "object"},
		{ExternalRef: "re_3"}, {ExternalRef: "re_"}, {RequestID: "req_5"}, {RequestID: "REQ_5"}, {Provider: "nobody"},
		{After: start.Add(-time.Hour)}, {Before: start.Add(-time.Hour)}, {After: start.Add(-2 * time.Hour), Before: start},
		{Before: start.Add(-time.Hour - time.Minute)},
		{States: []recordstore.State{recordstore.Succeeded, recordstore.Planned}},
		{States: []recordstore.State{recordstore.Succeeded, recordstore.ManualReview}, Open: true},
		{States: []recordstore.State{recordstore.Refused}, Open: true},
	}
	for _, state := range []recordstore.State{
		recordstore.Planned, recordstore.Sending, recordstore.Uncertain, recordstore.ManualReview, recordstore.NotExecuted,
	} {
		one := []recordstore.State{state}
		all = append(all,
			recordstore.Filter{States: one}, recordstore.Filter{States: one, Open: true},
			recordstore.Filter{States: one, Provider: "paypal", After: start.Add(-2 * time.Hour)},
			recordstore.Filter{States: one, Operation: "refund.create", Class: "money", Before: start},
			recordstore.Filter{States: append(one, recordstore.Uncertain), Account: "acct_1Nv0/live"})
	}
	return all
}

func listFilter(l *ledger) {
	recs := shown()
	l.seed(recs...)
	for _, f := range filters() {
		l.lists(recs, recordstore.ListQuery{Filter: f, Limit: 100})
	}
	for _, rec := range recs {
		l.same("a record that was listed", l.stored(rec.ID), rec)
	}
}

func listOrder(l *ledger) {
	recs := shown()
	l.seed(recs...)
	for _, order := range orders {
		for _, f := range []recordstore.Filter{{}, {Open: true}, {States: []recordstore.State{recordstore.Uncertain}}} {
			l.lists(recs, recordstore.ListQuery{Filter: f, Order: order, Limit: 100})
			l.lists(recs, recordstore.ListQuery{Filter: f, Order: order, Limit: 3})
		}
	}
}

var orders = []recordstore.Order{recordstore.OldestFirst, recordstore.NewestFirst, recordstore.ByIdentity}

func listPages(l *ledger) {
	recs := shown()
	l.seed(recs...)
	for _, order := range orders {
		for _, f := range []recordstore.Filter{{}, {Open: true}, {Open: true, Provider: "stripe"}, {States: []recordstore.State{recordstore.Sending}}} {
			q := recordstore.ListQuery{Filter: f, Order: order, Limit: 7}
			want := len(recordstore.ListingOf(recs, recordstore.ListQuery{Filter: f, Limit: 100}, start).Records)
			seen := map[recordstore.ID]bool{}
			for range len(recs) {
				page := l.lists(recs, q)
				for _, rec := range page.Records {
					seen[rec.ID] = true
				}
				if q.From = page.Next; q.From == nil {
					break
				}
			}
			if len(seen) != want {
				l.Errorf("%d records of %d were shown on all pages of %+v", len(seen), want, q)
			}
		}
	}
}

func listCommand(l *ledger) {
	named := func(n int, day int32, command string) recordstore.Record {
		rec := taken(n)
		rec.ID.Day, rec.CommandID = day, command
		return rec
	}
	day := today(start)
	recs := []recordstore.Record{
		named(1, day, "ord_1"), named(2, day, "ord_1"), named(3, day, "ord_1/line-1"), named(4, day, "ord_1/line-2"),
		named(5, day, "ord_10"), named(6, day, "ord_1-b"), named(7, 0, "ord_1"), named(8, day, "ord%1"), named(9, day, "ORD_1"),
		named(10, day, "ord_/line-1"), named(11, day, "ördx1/ä"),
	}
	recs[1].Provider, recs[1].State = "paypal", recordstore.Succeeded
	l.seed(recs...)
	for _, command := range []string{"ord_1", "ord_1/line-1", "ord%", "ord%1", "ord_", "_rd_1", "ördx1", "or"} {
		for _, f := range []recordstore.Filter{
			{CommandID: command, Day: day}, {CommandID: command}, {CommandID: command, Day: day, Open: true, Provider: "stripe"},
			{CommandID: command, Day: day, States: []recordstore.State{recordstore.Succeeded}},
		} {
			l.lists(recs, recordstore.ListQuery{Filter: f, Limit: 10})
		}
	}
}

func listOpen(l *ledger) {
	if !l.can("Queue") {
		return
	}
	rec := l.claim(newClaim(1), recordstore.Send)
	open := func(want int) {
		l.Helper()
		page := l.list(recordstore.ListQuery{Filter: recordstore.Filter{Open: true}, Limit: 10})
		if len(page.Records) != want || want > 0 && page.Records[0].ID != rec.ID {
			l.Errorf("%v after the claim %d records are open, want %d", l.clock.Now().Sub(start), len(page.Records), want)
		}
	}
	open(0)
	l.clock.advance(lease)
	open(1)
	for range 2 { // the second sweep moves a watermark beyond what the first found
		if _, err := l.Store.(recordstore.Queue).FindCrashed(l.Context(), false, 10); err != nil {
			l.Fatalf("FindCrashed: %v", err)
		}
		l.clock.advance(time.Hour)
		open(1)
	}
	rec = l.claim(by(newClaim(1), "other"), recordstore.Send)
	open(0)
	rec = l.settle(rec, recordstore.Result{State: recordstore.ManualReview})
	open(1)
}

func listBodies(l *ledger) {
	rec := taken(1)
	rec.State, rec.ResponseHeader, rec.ResponseBody = recordstore.Uncertain, []byte("head"), bytes.Repeat([]byte("body"), 1<<18)
	l.seed(rec)
	for _, f := range []recordstore.Filter{{}, {Open: true}} {
		page := l.list(recordstore.ListQuery{Filter: f, Limit: 1})
		want := len(rec.Request) + 4 + 4<<18
		if len(page.Records) != 1 || page.Records[0].Sealed != want {
			l.Errorf("the list says %+v, want a record with %d sealed bytes", page.Records, want)
		}
	}
	l.same("the stored record", l.stored(rec.ID), rec)
}

func listInvalid(l *ledger) {
	for _, q := range []recordstore.ListQuery{{}, {Limit: -1}, {Limit: recordstore.MaxList + 1}, {Limit: 1, Order: "random"}} {
		if _, err := l.lister().List(l.Context(), q); !errors.Is(err, recordstore.ErrInvalid) {
			l.Errorf("List with limit %d and order %q: error is %v, want ErrInvalid", q.Limit, q.Order, err)
		}
	}
	if page := l.list(recordstore.ListQuery{Limit: recordstore.MaxList}); len(page.Records) != 0 || page.Next != nil {
		l.Errorf("an empty ledger lists %d records, more follow: %v", len(page.Records), page.Next != nil)
	}
}

func tallyGroups(l *ledger) {
	recs := shown()
	for i := range recs {
		if i%3 == 0 {
			recs[i].Request = nil
		}
	}
	l.seed(recs...)
	for _, f := range filters() {
		got, err := l.lister().Tally(l.Context(), f)
		if err != nil {
			l.Fatalf("Tally of %+v: %v", f, err)
		}
		want := recordstore.TallyOf(recs, f, start)
		if !slices.Equal(got, want) {
			l.Errorf("Tally of %+v is %+v, want %+v", f, got, want)
		}
	}
}

func aboutLedger(l *ledger) {
	about := func() recordstore.About {
		l.Helper()
		got, err := l.lister().About(l.Context())
		if err != nil {
			l.Fatalf("About: %v", err)
		}
		return got
	}
	if got := about(); got.Pins != nil || len(got.Frontier) != 0 || !got.SweptTo.IsZero() || !got.Restored.IsZero() || !got.Now.Equal(start) {
		l.Errorf("a ledger that nobody used says %+v at %v", got, start)
	}
	pins := recordstore.Pins{Derivation: "k1", Secret: "5ec2e7"}
	l.attach(l.Store, pins, nil)
	l.clock.advance(time.Hour)
	if l.can("Restorer") {
		l.markRestored(start.Add(-time.Hour))
	}
	if l.can("Forgetter") {
		l.raise("money", 7)
		l.raise("object", 9)
	}
	got := about()
	if got.Pins == nil || *got.Pins != pins || !got.Now.Equal(start.Add(time.Hour)) {
		l.Errorf("pinned with %+v at %v the ledger says %+v", pins, start.Add(time.Hour), got)
	}
	if l.can("Restorer") && !got.Restored.Equal(start.Add(-time.Hour)) {
		l.Errorf("Restored is %v, want %v", got.Restored, start.Add(-time.Hour))
	}
	if l.can("Forgetter") && (got.Frontier["money"] != 7 || got.Frontier["object"] != 9 || len(got.Frontier) != 2) {
		l.Errorf("Frontier is %v, want money 7 and object 9", got.Frontier)
	}
}

func (l *ledger) lister() recordstore.Lister { return l.Store.(recordstore.Lister) }

func (l *ledger) list(q recordstore.ListQuery) recordstore.Listing {
	l.Helper()
	got, err := l.lister().List(l.Context(), q)
	if err != nil {
		l.Fatalf("List of %+v: %v", q, err)
	}
	return got
}

// lists asks q of a ledger that holds recs and expects what recordstore.ListingOf
// says.
func (l *ledger) lists(recs []recordstore.Record, q recordstore.ListQuery) recordstore.Listing {
	l.Helper()
	got, want := l.list(q), recordstore.ListingOf(recs, q, l.clock.Now())
	what := fmt.Sprintf("the list of %+v", q)
	switch {
	case len(got.Records) != len(want.Records):
		l.Errorf("%s has %d records, want %d", what, len(got.Records), len(want.Records))
		return want
	case !got.Now.Equal(want.Now):
		l.Errorf("%s says that it is %v, want %v", what, got.Now, want.Now)
	case (got.Next == nil) != (want.Next == nil) || got.Next != nil && (got.Next.ID != want.Next.ID || !got.Next.Since.Equal(want.Next.Since)):
		l.Errorf("%s goes on at %+v, want %+v", what, got.Next, want.Next)
	}
	for i := range want.Records {
		l.same(fmt.Sprintf("record %d of %s", i, what), got.Records[i].Record, want.Records[i].Record)
		if got.Records[i].Sealed != want.Records[i].Sealed {
			l.Errorf("record %d of %s has %d sealed bytes, want %d", i, what, got.Records[i].Sealed, want.Records[i].Sealed)
		}
	}
	return want
}
