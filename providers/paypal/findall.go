package paypal

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
)

// maxShared bounds what one batch of look-ups keeps of PayPal's answers, in
// bytes.
const maxShared = 16 << 20

// FindAll looks several effects of one operation and account up. What the
// look-ups have in common is read once: the order of several payments, the
// subscriptions of a plan, the account's transactions. One that fails is
// unknown, and so are those after it where PayPal wants to be asked less. An
// error is returned if nothing was found out.
func (codec) FindAll(ctx context.Context, get httpadapter.Get, ls []*outbound.Lookup) ([]outbound.Finding, error) {
	findings := make([]outbound.Finding, len(ls))
	var failure error
	known := false
	for i, s := range together(shared(get), ls) {
		f, err := s.find(ctx)
		if err == nil {
			findings[i] = f
			known = known || f != outbound.Finding{}
			continue
		}
		failure = err
		if status, ok := errors.AsType[answered](err); ok && status.overloaded() || ctx.Err() != nil {
			break
		}
	}
	if known {
		return findings, nil
	}
	return findings, failure
}

// together makes searches that list one period, so that their lists are the
// same, unless the sends are too far apart for that.
func together(get httpadapter.Get, ls []*outbound.Lookup) []search {
	searches := make([]search, len(ls))
	var all period
	var began time.Time
	for i, l := range ls {
		if i == 0 {
			began = l.Now()
		}
		made := madeIn(l)
		searches[i] = search{get, l, made.within(statusMargin), made.within(listMargin), began}
		if !made.known() {
			continue
		}
		if !all.known() || made.from.Before(all.from) {
			all.from = made.from
		}
		if made.until.After(all.until) {
			all.until = made.until
		}
	}
	if all = all.within(listMargin); all.until.Sub(all.from) > searchRange {
		return searches
	}
	for i := range searches {
		searches[i].listed = all
	}
	return searches
}

// shared keeps successful answers for the length of one batch. It is not safe
// for concurrent use.
func shared(get httpadapter.Get) httpadapter.Get {
	answered := make(map[string]*httpadapter.Exchange)
	kept := 0
	return func(ctx context.Context, target string, query url.Values) (*httpadapter.Exchange, error) {
		name := target + "?" + query.Encode()
		if x := answered[name]; x != nil {
			return x, nil
		}
		x, err := get(ctx, target, query)
		if err == nil && x.Status == http.StatusOK && kept+len(x.Body) <= maxShared {
			answered[name] = x
			kept += len(x.Body)
		}
		return x, err
	}
}
