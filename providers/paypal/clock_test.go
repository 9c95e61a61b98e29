package paypal

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
)

// planned is a PayPal whose clock differs: subscriptions of one plan, by when
// they were created on its clock, in pages.
type planned struct {
	answers
	ahead   time.Duration
	undated bool
	perPage int
	gone    int // subscriptions that vanish from the front after the first page
	made    []subscribed
}

type subscribed struct {
	id, mark string
	at       time.Time
}

func (p *planned) get(ctx context.Context, target string, query url.Values) (*httpadapter.Exchange, error) {
	var x *httpadapter.Exchange
	if target != "/v1/billing/subscriptions" {
		x, _ = p.answers.get(ctx, target, query)
	} else {
		x = &httpadapter.Exchange{Status: http.StatusOK, Header: http.Header{}, Body: p.page(query)}
	}
	x.Header.Set("Date", time.Now().Add(p.ahead).UTC().Format(http.TimeFormat))
	if p.undated {
		x.Header.Del("Date")
	}
	return x, nil
}

func (p *planned) page(query url.Values) []byte {
	bound := func(name string, past time.Time) time.Time {
		if t, err := time.Parse(time.RFC3339, query.Get(name)); err == nil {
			return t
		}
		return past
	}
	after, before := bound("created_after", time.Time{}), bound("created_before", time.Now().Add(p.ahead))
	var rows []string
	for _, s := range p.made {
		if !s.at.Before(after) && !s.at.After(before) {
			rows = append(rows, fmt.Sprintf(`{"id":%q,"status":"ACTIVE","custom_id":%q}`, s.id, s.mark))
		}
	}
	n, _ := strconv.Atoi(query.Get("page"))
	if n > 1 {
		rows = slices.Delete(rows, 0, p.gone)
	}
	size := max(p.perPage, 1)
	shown := rows[min(len(rows), (n-1)*size):min(len(rows), n*size)]
	return fmt.Appendf(nil, `{"subscriptions":[%s],"total_items":%d,"total_pages":%d}`,
		strings.Join(shown, ","), len(rows), (len(rows)+size-1)/size)
}

// A list by times holds what a command made although PayPal's clock and the
// ledger's are up to two hours apart, and proves nothing where they are further
// apart or nobody knows.
func TestListWindowAndClocks(t *testing.T) {
	t.Parallel()
	const found, none, unknown = outbound.EffectApplied, outbound.EffectNone, outbound.EffectUnknown
	for name, c := range map[string]struct {
		ahead   time.Duration
		undated bool
		late    time.Duration // after which the look-up is made
		present bool
		want    outbound.Effect
	}{
		"ours, by one clock":             {present: true, want: found},
		"ours, PayPal two hours ahead":   {present: true, ahead: 2 * time.Hour, want: found},
		"ours, PayPal two hours behind":  {present: true, ahead: -2 * time.Hour, want: found},
		"ours, two hours ahead, late":    {present: true, ahead: 2 * time.Hour, late: 48 * time.Hour, want: found},
		"ours, two hours behind, late":   {present: true, ahead: -2 * time.Hour, late: 48 * time.Hour, want: found},
		"ours, outside the list, late":   {present: true, ahead: 9 * time.Hour, late: 48 * time.Hour, want: unknown},
		"ours, before the list":          {present: true, ahead: -9 * time.Hour, want: unknown},
		"ours, outside, no clock":        {present: true, ahead: -9 * time.Hour, undated: true, want: unknown},
		"never made":                     {want: none},
		"never made, two hours ahead":    {ahead: 2 * time.Hour, want: none},
		"never made, two hours behind":   {ahead: -2 * time.Hour, late: 48 * time.Hour, want: none},
		"never made, but further ahead":  {ahead: 2*time.Hour + time.Minute, want: unknown},
		"never made, but further behind": {ahead: -2*time.Hour - time.Minute, want: unknown},
		"never made, but no clock":       {undated: true, want: unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := &planned{ahead: c.ahead, undated: c.undated, answers: answers{
					subPath: `{"id":"I-BW452GLLEP1G","status":"ACTIVE","custom_id":"` + testMark + `"}`, userPath: owner,
				}}
				l := lookup(t, subscriptionCreate, "", asked(`{"plan_id":"P-1","custom_id":"`+testMark+`"}`))
				l.FirstSentAt, l.SentUntil = time.Now(), time.Now()
				if c.present {
					p.made = append(p.made, subscribed{"I-BW452GLLEP1G", testMark, time.Now().Add(c.ahead)})
				}
				time.Sleep(15*time.Minute + c.late)
				f, err := codec{}.Find(t.Context(), p.get, l)
				if err != nil || f.Effect != c.want {
					t.Errorf("finding %+v, %v; want %v", f, err, c.want)
				}
			})
		})
	}
}

// A list that changes while it is read, so that one of its items may have slipped
// to a page that was read already, is not whole.
func TestListThatMovesProvesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &planned{perPage: 1, answers: answers{userPath: owner}}
		l := lookup(t, subscriptionCreate, "", asked(`{"plan_id":"P-1","custom_id":"`+testMark+`"}`))
		l.FirstSentAt, l.SentUntil = time.Now(), time.Now()
		for _, id := range []string{"I-1", "I-2", "I-3"} {
			p.made = append(p.made, subscribed{id, foreignMark, time.Now()})
		}
		time.Sleep(15 * time.Minute)
		if f, err := (codec{}).Find(t.Context(), p.get, l); err != nil || f != absent {
			t.Errorf("at rest: finding %+v, %v; want absent", f, err)
		}
		p.gone = 1
		if f, err := (codec{}).Find(t.Context(), p.get, l); err != nil || f != (outbound.Finding{}) {
			t.Errorf("moving: finding %+v, %v; want unknown", f, err)
		}
	})
}

// A single time decides between the command and somebody before it only where
// the clocks agree to minutes: else an old sending is taken for ours, or a goal
// that was reached and left for one never reached.
func TestStatusTimesAndClocks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ahead   time.Duration
		undated bool
		decides bool
	}{
		"one clock":               {decides: true},
		"four minutes ahead":      {ahead: 4 * time.Minute, decides: true},
		"four minutes behind":     {ahead: -4 * time.Minute, decides: true},
		"an hour ahead":           {ahead: time.Hour},
		"an hour behind":          {ahead: -time.Hour},
		"a clock that nobody has": {undated: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &planned{ahead: c.ahead, undated: c.undated, answers: answers{
				invPath: invoiceIn("SENT", "2026-11-30T12:00:30Z"), subPath: subscriptionIn("ACTIVE", "2026-11-30T09:00:00Z"), userPath: owner,
			}}
			sent, err := codec{}.Find(t.Context(), p.get, lookup(t, invoiceSend, "INV2-1", sentAt))
			if err != nil || (sent.Effect == outbound.EffectApplied) != c.decides {
				t.Errorf("sent: finding %+v, %v", sent, err)
			}
			never, err := codec{}.Find(t.Context(), p.get, lookup(t, subscriptionSuspend, "I-BW452GLLEP1G", sentAt))
			if err != nil || (never == absent) != c.decides {
				t.Errorf("never suspended: finding %+v, %v", never, err)
			}
		})
	}
}
