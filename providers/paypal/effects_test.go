package paypal

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
)

// effectsOf lists the effects of a period that ends now.
func effectsOf(t *testing.T, get httpadapter.Get, period time.Duration) (shown []httpadapter.ListedEffect, coverage []httpadapter.Coverage, err error) {
	t.Helper()
	now := time.Now()
	q := httpadapter.EffectQuery{Account: "M", From: now.Add(-period), Until: now}
	coverage, err = codec{}.ListEffects(t.Context(), get, q, func(e httpadapter.ListedEffect) error {
		shown = append(shown, e)
		return nil
	})
	return shown, coverage, err
}

// marks are the marks that an id or its order was shown with.
func marks(shown []httpadapter.ListedEffect, ref string) (found []string) {
	for _, e := range shown {
		if e.Ref == ref && e.Mark != "" {
			found = append(found, e.Mark)
		}
	}
	return found
}

// Payments, refunds and authorizations are effects of their operations; items of
// payouts, payments of subscriptions and reversals are none that a ledger knows.
func TestListEffectsByCode(t *testing.T) {
	t.Parallel()
	for code, want := range map[string][]string{
		"T0006": {"order.capture", "authorization.capture"}, "T1107": {"capture.refund"}, "T1300": {"order.authorize", "authorization.reauthorize"},
		"T0001": nil, "T0002": nil, "T1106": nil, "T0400": nil,
	} {
		shown, coverage, err := effectsOf(t, (&searchable{rows: []string{row("1AB", code, "", "")}, account: "M"}).get, time.Hour)
		if err != nil || coverage[0].Incomplete != "" || coverage[1].Incomplete != "" {
			t.Fatalf("%s: %+v, %v", code, coverage, err)
		}
		switch {
		case want == nil && len(shown) > 0, want != nil && (len(shown) != 1 || !slices.Equal(shown[0].Operations, want)):
			t.Errorf("%s is shown as %+v", code, shown)
		}
	}
}

// A mark that several rows show is the refund's own only where the refund itself
// bears it, and tells the orders of payments apart.
func TestListEffectsOfOneMark(t *testing.T) {
	t.Parallel()
	const other = "2JU08902781691411"
	s := &searchable{account: "M", answers: answers{
		refundPath: ourRefund, refundsPath + other: `{"id":"` + other + `","status":"COMPLETED","custom_id":"` + foreignMark + `"}`,
		capturesPath + "1CA": `{"id":"1CA","supplementary_data":{"related_ids":{"order_id":"ORDER1"}}}`,
		capturesPath + "2CA": `{"id":"2CA","supplementary_data":{"related_ids":{"order_id":"ORDER2"}}}`,
	}, rows: []string{
		row("1JU08902781691411", "T1107", "x", testMark), row(other, "T1107", "x", testMark), row("3JU", "T1107", "x", foreignMark),
		row("1CA", "T0006", "", testMark), row("2CA", "T0006", "", testMark), row("3CA", "T0006", "", foreignMark),
	}}
	shown, coverage, err := effectsOf(t, s.get, time.Hour)
	if err != nil || coverage[1].Incomplete != "" {
		t.Fatalf("%+v, %v", coverage, err)
	}
	for ref, want := range map[string]int{"1JU08902781691411": 1, other: 0, "3JU": 1, "ORDER1": 1, "ORDER2": 1} {
		if got := marks(shown, ref); len(got) != want {
			t.Errorf("%s is shown with the marks %v, want %d", ref, got, want)
		}
	}
	delete(s.answers, refundPath)
	if _, coverage, err = effectsOf(t, s.get, time.Hour); err != nil || !strings.Contains(coverage[1].Incomplete, "answered 404") {
		t.Errorf("without the refund: %+v, %v", coverage, err)
	}
	s.answers[refundPath], s.rows = ourRefund, nil
	for i := range maxShown + 1 {
		s.rows = append(s.rows, row(fmt.Sprint(i, "CA"), "T0006", "", testMark))
		s.answers[capturesPath+fmt.Sprint(i, "CA")] = `{"id":"1CA"}`
	}
	if _, coverage, err = effectsOf(t, s.get, time.Hour); err != nil || !strings.Contains(coverage[1].Incomplete, "ask for a shorter time") {
		t.Errorf("with more than are read: %+v, %v", coverage, err)
	}
}

// A long time is searched in spans of 31 days, and what a search does not show whole
// in halves, within bounds.
func TestListEffectsSpans(t *testing.T) {
	t.Parallel()
	s := &searchable{account: "M"}
	if _, coverage, err := effectsOf(t, s.get, 40*day); err != nil || coverage[0].Incomplete != "" || s.searches != 2 {
		t.Errorf("40 days: %+v, %v, %d searches", coverage, err, s.searches)
	}
	busy := &searchable{account: "M", perPage: 1, rows: slicesOf(row("1AB", "T0006", "", ""), maxPages+1)}
	if _, coverage, err := effectsOf(t, busy.get, 30*day); err != nil || !strings.Contains(coverage[0].Incomplete, "PayPal shows no more of it") || busy.searches > 20*maxPages {
		t.Errorf("a busy account: %+v, %v, %d searches", coverage, err, busy.searches)
	}
	wide := 0
	refusing := func(ctx context.Context, target string, query url.Values) (*httpadapter.Exchange, error) {
		from, err1 := time.Parse(time.RFC3339, query.Get("start_date"))
		until, err2 := time.Parse(time.RFC3339, query.Get("end_date"))
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		if until.Sub(from) > 10*time.Hour {
			wide++
			return &httpadapter.Exchange{Status: http.StatusBadRequest, Header: http.Header{}, Body: []byte(`{"name":"RESULTSET_TOO_LARGE"}`)}, nil
		}
		return s.get(ctx, target, query)
	}
	s.searches = 0
	if _, coverage, err := effectsOf(t, refusing, 30*time.Hour); err != nil || coverage[0].Incomplete != "" || wide != 3 || s.searches != 4 {
		t.Errorf("in halves: %+v, %v, %d refused, %d searches", coverage, err, wide, s.searches)
	}
}

// What is not a whole, fresh list of the account proves nothing, and another account's
// is an error.
func TestListEffectsProves(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]*searchable{
		"no clock":            {account: "M", undated: true},
		"a clock far ahead":   {account: "M", ahead: 3 * time.Hour},
		"more than are shown": {account: "M", claim: 1},
	} {
		if _, coverage, err := effectsOf(t, s.get, time.Hour); err != nil || coverage[0].Incomplete == "" {
			t.Errorf("%s: %+v, %v", name, coverage, err)
		}
	}
	if _, _, err := effectsOf(t, (&searchable{account: "OTHER"}).get, time.Hour); err == nil || !strings.Contains(err.Error(), "another account") {
		t.Errorf("another account: %v", err)
	}
	_, coverage, err := effectsOf(t, (&searchable{account: "M", lag: 3 * time.Hour}).get, time.Hour)
	if want := time.Now().Add(-3*time.Hour - lateness); err != nil || coverage[0].UpTo.Sub(want).Abs() > time.Minute {
		t.Errorf("it is as fresh as %v, want %v (%v)", coverage[0].UpTo, want, err)
	}
	full := errors.New("full")
	_, err = codec{}.ListEffects(t.Context(), (&searchable{account: "M", rows: []string{row("1AB", "T0006", "", "")}}).get,
		httpadapter.EffectQuery{Account: "M", From: time.Now().Add(-time.Hour), Until: time.Now()}, func(httpadapter.ListedEffect) error { return full })
	if !errors.Is(err, full) {
		t.Errorf("the one who is shown them had enough: %v", err)
	}
}

// No search asks for times to come, and what a clock ahead by two hours would date
// after its end is not promised.
func TestListEffectsAsksForNoFuture(t *testing.T) {
	t.Parallel()
	fresh, now := &searchable{account: "M"}, time.Now()
	get := func(ctx context.Context, target string, query url.Values) (*httpadapter.Exchange, error) {
		if until, err := time.Parse(time.RFC3339, query.Get("end_date")); err != nil || until.After(time.Now()) {
			t.Errorf("asked until %s, %v", until, err)
		}
		return fresh.get(ctx, target, query)
	}
	coverage, err := codec{}.ListEffects(t.Context(), get, httpadapter.EffectQuery{Account: "M", From: now.Add(-time.Hour), Until: now.Add(2 * time.Hour)},
		func(httpadapter.ListedEffect) error { return nil })
	if err != nil || coverage[0].Incomplete != "" || coverage[0].UpTo.Sub(now.Add(-listMargin)).Abs() > time.Minute {
		t.Errorf("it covers %+v, %v", coverage, err)
	}
}
