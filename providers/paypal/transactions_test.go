package paypal

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// searchable is an account's Transaction Search beside its other objects. It is
// strict about the dates and shows rows after the lag.
type searchable struct {
	answers
	rows     []string
	account  string
	lag      time.Duration
	perPage  int
	claim    int // more rows than there are
	ahead    time.Duration
	undated  bool
	searches int
}

func (s *searchable) get(ctx context.Context, target string, query url.Values) (*httpadapter.Exchange, error) {
	if target != "/v1/reporting/transactions" {
		return s.answers.get(ctx, target, query)
	}
	s.searches++
	from, err1 := time.Parse(time.RFC3339, query.Get("start_date"))
	until, err2 := time.Parse(time.RFC3339, query.Get("end_date"))
	if err1 != nil || err2 != nil || until.Sub(from) > 31*24*time.Hour || until.Before(from) || query.Get("balance_affecting_records_only") != "N" {
		return &httpadapter.Exchange{Status: http.StatusBadRequest, Header: http.Header{}, Body: []byte(withIssue("INVALID_REQUEST"))}, nil
	}
	size := s.perPage
	if size == 0 {
		size = 500
	}
	page, _ := strconv.Atoi(query.Get("page"))
	total := len(s.rows)
	pages := (total + s.claim + size - 1) / size
	rows := s.rows[min(total, (page-1)*size):min(total, page*size)]
	body := fmt.Sprintf(`{"transaction_details":[%s],"account_number":%q,"last_refreshed_datetime":%q,"total_items":%d,"total_pages":%d}`,
		strings.Join(rows, ","), s.account, time.Now().Add(-s.lag).UTC().Format("2006-01-02T15:04:05-0700"), total+s.claim, pages)
	header := http.Header{}
	if !s.undated {
		header.Set("Date", time.Now().Add(s.ahead).UTC().Format(http.TimeFormat))
	}
	return &httpadapter.Exchange{Status: http.StatusOK, Header: header, Body: []byte(body)}, nil
}

func row(id, code, reference, custom string) string {
	return fmt.Sprintf(`{"transaction_info":{"transaction_id":%q,"transaction_event_code":%q,"paypal_reference_id":%q,"custom_field":%q,"transaction_amount":{"currency_code":"EUR","value":"-5.00"}}}`, id, code, reference, custom)
}

const (
	lonelyCapture = `{"id":"3C679366HH908993F","status":"PARTIALLY_REFUNDED","amount":{"currency_code":"EUR","value":"12.50"}}`
	ourRefund     = `{"id":"1JU08902781691411","status":"COMPLETED","custom_id":"` + testMark + `"}`
	theirRefund   = `{"id":"1JU08902781691411","status":"COMPLETED","custom_id":"` + foreignMark + `"}`
	bareRefund    = `{"id":"1JU08902781691411","status":"COMPLETED"}`
	refundPath    = "/v2/payments/refunds/1JU08902781691411"
)

// A refund of a capture that names no order is looked for by Transaction Search:
// by the mark and never by an amount; absent once the search has caught up and
// every refund of the capture is known to be another's.
func TestRefundByTransaction(t *testing.T) {
	t.Parallel()
	const refund, unknown = "1JU08902781691411", outbound.EffectUnknown
	for name, c := range map[string]struct {
		rows    []string
		refund  string
		account string
		wait    time.Duration
		perPage int
		claim   int
		ahead   time.Duration
		undated bool
		how     func(*outbound.Lookup)
		effect  outbound.Effect
	}{
		"by its mark":                             {rows: []string{row(refund, "T1107", "3C679366HH908993F", testMark)}, refund: ourRefund, effect: outbound.EffectApplied},
		"the field is the capture's":              {rows: []string{row(refund, "T1107", "3C679366HH908993F", foreignMark)}, refund: ourRefund, effect: outbound.EffectApplied},
		"the field is ours, the refund another's": {rows: []string{row(refund, "T1107", "3C679366HH908993F", testMark)}, refund: theirRefund, effect: outbound.EffectNone},
		"none":                     {effect: outbound.EffectNone},
		"another's":                {rows: []string{row(refund, "T1107", "3C679366HH908993F", "")}, refund: theirRefund, effect: outbound.EffectNone},
		"another capture's":        {rows: []string{row("9JU", "T1107", "4C679366HH908993F", "")}, effect: outbound.EffectNone},
		"a payment":                {rows: []string{row("9JU", "T0006", "", testMark)}, effect: outbound.EffectNone},
		"a refund without a mark":  {rows: []string{row(refund, "T1107", "3C679366HH908993F", "")}, refund: bareRefund, effect: unknown},
		"a refund of nothing":      {rows: []string{row(refund, "T1107", "", "")}, refund: bareRefund, effect: unknown},
		"too early":                {wait: 3*time.Hour + 59*time.Minute, effect: unknown},
		"another account":          {account: "OTHER", effect: unknown},
		"more than is shown":       {claim: 1, effect: unknown},
		"on the third page":        {perPage: 1, rows: []string{row("8JU", "T1107", "x", ""), row("9JU", "T1107", "x", ""), row(refund, "T1107", "3C679366HH908993F", testMark)}, refund: ourRefund, effect: outbound.EffectApplied},
		"more pages than are read": {perPage: 1, rows: slicesOf(row("9JU", "T1107", "x", ""), maxPages+1), effect: unknown},
		"over many weeks":          {wait: 40 * day, how: func(l *outbound.Lookup) { l.SentUntil = l.FirstSentAt.Add(35 * day) }, effect: outbound.EffectNone},
		"longer than is searched":  {wait: 500 * day, how: func(l *outbound.Lookup) { l.SentUntil = l.FirstSentAt.Add(450 * day) }, effect: unknown},
		"a clock two hours ahead":  {ahead: 2 * time.Hour, effect: outbound.EffectNone},
		"a clock two hours behind": {ahead: -2 * time.Hour, effect: outbound.EffectNone},
		"a clock further ahead":    {ahead: 2*time.Hour + time.Minute, effect: unknown},
		"a clock further behind":   {ahead: -2*time.Hour - time.Minute, effect: unknown},
		"no clock":                 {undated: true, effect: unknown},
		"found by any clock":       {undated: true, rows: []string{row(refund, "T1107", "3C679366HH908993F", testMark)}, refund: ourRefund, effect: outbound.EffectApplied},
		"sent nobody knows when":   {how: func(l *outbound.Lookup) { l.FirstSentAt = time.Time{} }, effect: unknown},
		"until nobody knows when":  {how: func(l *outbound.Lookup) { l.SentUntil = time.Time{} }, effect: unknown},
		"the caller's own mark":    {how: asked(`{"amount":{"currency_code":"EUR","value":"5.00"},"custom_id":"mine"}`), effect: unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &searchable{answers: answers{capturePath: lonelyCapture}, rows: c.rows, account: "M", lag: searchLag, perPage: c.perPage, claim: c.claim, ahead: c.ahead, undated: c.undated}
				if c.refund != "" {
					s.answers[refundPath] = c.refund
				}
				if c.account != "" {
					s.account = c.account
				}
				l := lookup(t, captureRefund, "3C679366HH908993F", asked(markedBody))
				l.FirstSentAt, l.SentUntil = time.Now(), time.Now()
				if c.how != nil {
					c.how(l)
				}
				time.Sleep(cmp.Or(c.wait, 4*time.Hour))
				f, err := codec{}.Find(t.Context(), s.get, l)
				if err != nil {
					t.Fatal(err)
				}
				if f.Effect != c.effect || f.Code != "" {
					t.Errorf("finding %+v, want %v", f, c.effect)
				}
				if f.Effect == outbound.EffectApplied && (f.Evidence != rs.ByLookup || f.ExternalRef != refund) {
					t.Errorf("finding %+v", f)
				}
			})
		})
	}
}

func slicesOf(s string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = s
	}
	return list
}

// A full refund needs no search: its state is the goal.
func TestFullRefundOfLonelyCapture(t *testing.T) {
	t.Parallel()
	s := &searchable{answers: answers{capturePath: strings.Replace(lonelyCapture, "PARTIALLY_REFUNDED", "REFUNDED", 1)}}
	l := lookup(t, captureRefund, "3C679366HH908993F", all(sentAt, asked(`{"amount":{"currency_code":"EUR","value":"12.50"}}`)))
	f, err := codec{}.Find(t.Context(), s.get, l)
	if err != nil || f.Effect != outbound.EffectApplied || f.Evidence != rs.ByStateGuard || s.searches != 0 {
		t.Errorf("finding %+v, %v after %d searches", f, err, s.searches)
	}
}

// A capture of an authorization that names no order is found by the mark in its
// invoice_id, and never proved absent.
func TestCaptureByTransaction(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &searchable{answers: answers{
			authPath: `{"id":"0AW2184448108334S","status":"PARTIALLY_CAPTURED","amount":{"currency_code":"EUR","value":"12.50"}}`,
			"/v2/payments/captures/2GG279541U471931P": captureUnder("2GG279541U471931P", testMark, "5.00"),
		}, account: "M", lag: searchLag}
		l := lookup(t, authorizationCapture, "0AW2184448108334S", asked(markedBody))
		l.FirstSentAt, l.SentUntil = time.Now(), time.Now()
		time.Sleep(4 * time.Hour)
		if f, err := (codec{}).Find(t.Context(), s.get, l); err != nil || f != (outbound.Finding{}) {
			t.Errorf("finding %+v, %v; want unknown", f, err)
		}
		s.rows = []string{row("2GG279541U471931P", "T0006", "", testMark)}
		f, err := codec{}.Find(t.Context(), s.get, l)
		if err != nil || f.Effect != outbound.EffectApplied || f.ExternalRef != "2GG279541U471931P" || f.Evidence != rs.ByLookup {
			t.Errorf("finding %+v, %v", f, err)
		}
		holdsShape(t, authorizationCapture, f.Answer)
	})
}
