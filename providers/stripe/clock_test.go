package stripe_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
)

// dated is a Stripe whose answers tell another time.
type dated struct {
	base  http.RoundTripper
	ahead time.Duration
	none  bool
	from  int // the answers from this one on, counted from 1
	n     int
}

func (d *dated) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := d.base.RoundTrip(r)
	if err != nil || r.Method != http.MethodGet {
		return resp, err
	}
	if d.n++; d.n >= d.from {
		resp.Header.Set("Date", time.Now().Add(d.ahead).UTC().Format(http.TimeFormat))
		if d.none {
			resp.Header.Del("Date")
		}
	}
	return resp, nil
}

// TestAbsenceNeedsClocksThatAgree holds that a list by times proves nothing where
// Stripe's clock and the ledger's differ by more than the list is widened, on any
// of its pages, and that such a list still finds.
func TestAbsenceNeedsClocksThatAgree(t *testing.T) {
	for name, c := range map[string]struct {
		dated
		absent bool
	}{
		"one clock":        {absent: true},
		"two hours ahead":  {dated: dated{ahead: 2 * time.Hour}, absent: true},
		"two hours behind": {dated: dated{ahead: -2 * time.Hour}, absent: true},
		"further ahead":    {dated: dated{ahead: 2*time.Hour + time.Minute}},
		"further behind":   {dated: dated{ahead: -2*time.Hour - time.Minute}},
		"no clock":         {dated: dated{none: true}},
		"the second page":  {dated: dated{ahead: 3 * time.Hour, from: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			var clock *dated
			probing(t, func(cfg *stripe.Config) {
				clock = &c.dated
				clock.base, cfg.Transport = cfg.Transport, clock
			}, func(p *probe) {
				made, id := p.sent(stripe.PayoutCreate(outbound.Command{ID: "cmd_made"}, values("amount", "500", "currency", "eur")))
				never := p.asks(stripe.PayoutCreate(outbound.Command{ID: "cmd_never"}, values("amount", "500", "currency", "eur")))
				for range 150 {
					p.fake.Seed(providertest.StripePayout{Amount: 700})
				}
				if c.absent {
					p.wantAbsent(never)
				} else {
					p.wantUnknown(never)
				}
				p.wantFound(made, id)
			})
		})
	}
}

// TestFakeTellsItsOwnTime holds that a fake whose clock was moved on tells so, as
// Stripe would: the ledger's clock is then three hours behind.
func TestFakeTellsItsOwnTime(t *testing.T) {
	probing(t, nil, func(p *probe) {
		never := p.asks(stripe.PayoutCreate(outbound.Command{ID: "cmd_never"}, values("amount", "500", "currency", "eur")))
		p.wantAbsent(never)
		p.fake.Advance(3 * time.Hour)
		p.wantUnknown(never)
	})
}
