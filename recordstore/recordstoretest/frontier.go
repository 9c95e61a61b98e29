package recordstoretest

import (
	"github.com/seed-6b5e302b/samekey/recordstore"
)

// frontierCases judge stores that are able to forget.
func frontierCases() []testCase {
	return []testCase{
		{"frontier/forgotten", "a command older than the evidence might have been executed: it is never a silent second execution", frontierForgotten},
		{"frontier/day_zero", "commands without a day are never forgotten, for nothing would tell a new one from an old one", frontierDayZero},
		{"frontier/raised_only", "a frontier that is lowered would let forgotten commands execute again", frontierRaisedOnly},
		{"frontier/class", "classes are kept for different times", frontierClass},
		{"frontier/found", "what the ledger still holds is answered, however old", frontierFound},
	}
}

func (l *ledger) raise(class string, day int32) {
	l.Helper()
	if err := l.Store.(recordstore.Forgetter).RaiseFrontier(l.Context(), class, day); err != nil {
		l.Fatalf("RaiseFrontier: %v", err)
	}
}

// old returns a claim of a command that is so many days old.
func old(n int, days int32) recordstore.Claim {
	c := newClaim(n)
	c.ID.Day -= days
	return c
}

func frontierForgotten(l *ledger) {
	l.raise("money", today(start)-10)
	for n, days := range []int32{11, 10} {
		c := old(n, days)
		if got := l.claim(c, recordstore.Forgotten); difference(got, recordstore.Record{}) != "" {
			l.Errorf("a forgotten command came with a record: %s", difference(got, recordstore.Record{}))
		}
		l.absent(c.ID)
	}
	l.claim(old(3, 9), recordstore.Send)
}

func frontierDayZero(l *ledger) {
	l.raise("money", today(start))
	c := newClaim(1)
	c.ID.Day = 0
	l.claim(c, recordstore.Send)
}

func frontierRaisedOnly(l *ledger) {
	l.raise("money", today(start)-10)
	l.raise("money", today(start)-20)
	l.claim(old(1, 10), recordstore.Forgotten)
	l.raise("money", today(start)-5)
	l.claim(old(2, 6), recordstore.Forgotten)
}

func frontierClass(l *ledger) {
	l.raise("notification", today(start)-1)
	l.claim(old(1, 10), recordstore.Send)
	c := old(2, 10)
	c.Class = "notification"
	l.claim(c, recordstore.Forgotten)
}

func frontierFound(l *ledger) {
	c := old(1, 20)
	want := l.settle(l.claim(c, recordstore.Send), result(recordstore.Succeeded))
	l.raise("money", today(start))
	l.same("the replayed record", l.claim(by(c, "other"), recordstore.Replay), want)
}
