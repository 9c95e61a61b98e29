package audit

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

// An effect here whose record names another account is a finding, by whatever
// connects them, and a duplicate where this account's record of the command is applied.
func TestForeign(t *testing.T) {
	t.Parallel()
	foreign := claimed(1, recordstore.Succeeded, "re_1")
	foreign.Account = "wrong/live"
	old := foreign
	old.ClaimedAt = now.AddDate(0, 0, -9)
	elsewhere := foreign
	elsewhere.Provider = "other"
	own := claimed(2, recordstore.Succeeded, "re_2")
	own.CommandID = foreign.CommandID
	open := own
	open.State, open.ExternalRef = recordstore.Uncertain, ""
	marked, plain := listed("re_1", markOf(id(1))), listed("re_1", "")
	declined := marked
	declined.Refused = true
	change := httpadapter.ListedEffect{Operations: []string{refund}, Ref: "re_1", Mark: markOf(id(1)), At: now.Add(-time.Hour)}
	for name, c := range map[string]struct {
		ledger  ledger
		effects []httpadapter.ListedEffect
		want    Class
		why     string
	}{
		"marked":           {ledger{foreign}, []httpadapter.ListedEffect{marked, marked}, Foreign, "account wrong/live: the setting"},
		"by its id":        {ledger{foreign}, []httpadapter.ListedEffect{plain}, Foreign, "account wrong/live: the setting"},
		"of long ago":      {ledger{old}, []httpadapter.ListedEffect{marked}, Foreign, "account wrong/live: the setting"},
		"a change":         {ledger{foreign}, []httpadapter.ListedEffect{change, change}, Foreign, "account wrong/live: the setting"},
		"another provider": {ledger{elsewhere}, []httpadapter.ListedEffect{marked}, Foreign, "account other wrong/live"},
		"sent here too":    {ledger{foreign, own}, []httpadapter.ListedEffect{marked, listed("re_2", markOf(id(2)))}, Duplicate, "same command, which is succeeded"},
		"open here":        {ledger{foreign, open}, []httpadapter.ListedEffect{marked}, Foreign, "same command, which is uncertain"},
		"declined":         {ledger{foreign}, []httpadapter.ListedEffect{declined}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := run(t, c.ledger, &provider{effects: c.effects}, nil)
			if c.want == "" {
				if len(r.Findings) != 0 {
					t.Errorf("found %+v", r.Findings)
				}
				return
			}
			if len(r.Findings) != 1 || r.Counts[c.want] != 1 || !strings.Contains(r.Findings[0].Why, c.why) || len(r.Accounts) != 0 {
				t.Errorf("want %s: %+v, left alone %v", c.want, r.Findings, r.Accounts)
			}
		})
	}
}

// Clocks that are apart by less than two hours make nothing missing and hide no
// duplicate.
func TestClocksApart(t *testing.T) {
	t.Parallel()
	for _, skew := range []time.Duration{-110 * time.Minute, -3 * time.Minute, 3 * time.Minute, 110 * time.Minute} {
		var l ledger
		p := &provider{skewed: true}
		for n, ago := range []time.Duration{time.Second, 10 * time.Minute, 59 * time.Minute} {
			rec := claimed(byte(n+1), recordstore.Succeeded, "")
			rec.ClaimedAt, rec.CreatedAt, rec.AnsweredAt = now.Add(-ago), now.Add(-ago), now.Add(-ago)
			l = append(l, rec)
			e := listed("re_"+rec.CommandID, markOf(rec.ID))
			e.At = now.Add(skew - ago)
			p.effects = append(p.effects, e)
		}
		hour := func(o *Options) { o.Since = now.Add(-time.Hour) }
		if r := run(t, l, p, hour); len(r.Counts) != 0 || r.Matched != 3 || r.Effects != 3 {
			t.Errorf("%s apart: %+v", skew, r)
		}
		second := p.effects[0]
		second.Ref = "re_second"
		p.effects = append(p.effects, second)
		if r := run(t, l, p, hour); r.Counts[Duplicate] != 1 || len(r.Counts) != 1 {
			t.Errorf("%s apart, with a duplicate: %+v", skew, r.Counts)
		}
		p.effects = p.effects[:1]
		if r := run(t, l, p, hour); r.Counts[Missing] != 2 {
			t.Errorf("%s apart, with two missing: %+v", skew, r.Counts)
		}
	}
}
