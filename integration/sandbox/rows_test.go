package main

import (
	"strings"
	"testing"

	"github.com/seed-6b5e302b/samekey/providers/paypal"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// The reasons why a run cannot show a fact of a row.
const (
	takesDays  = "it takes hours or days to show"
	noFailure  = "a failure of the provider cannot be asked for"
	aboutPages = "it is about the documentation: method, path or a parameter's absence"
	needsPayer = "a payer has to approve something"
	leavesMuch = "it would leave objects that cannot be deleted"
	hooks      = "it is about webhooks, which reach no run"
)

// beyond are the facts of the rows that no run checks, by how they begin.
var beyond = map[string]string{
	"window 24h":                          takesDays,
	"a 500 is indeterminate":              noFailure,
	"429 lock_timeout":                    noFailure,
	"method, path and parameters":         aboutPages,
	"takes no metadata":                   aboutPages,
	"a resend that no key stops any more": takesDays,
	"the object cannot be deleted, and stays listed in every state":           aboutPages,
	"the account's owner can change metadata":                                 aboutPages,
	"a list below an object is consistent at once":                            "seen once, it would prove nothing",
	"canceled subscriptions are listed with status=all only":                  leavesMuch,
	"a draft invoice can be deleted":                                          aboutPages,
	"an invoice item can be deleted":                                          aboutPages,
	"window 30d":                                                              takesDays,
	"a closed account is not listed":                                          leavesMuch,
	"the id is kept for":                                                      takesDays,
	"a payment is shown after 3 hours at most":                                takesDays,
	"the answer names the account and when it was refreshed":                  takesDays,
	"204; no PayPal-Request-Id":                                               needsPayer,
	"200; no PayPal-Request-Id":                                               needsPayer,
	"a 5xx may have had an effect":                                            noFailure,
	"the request takes invoice_id and no custom_id":                           aboutPages,
	"201; 200 is documented beside it":                                        "a reauthorization needs an authorization of three days",
	"PAYMENT.CAPTURE.REFUNDED holds":                                          hooks,
	"PAYMENT.PAYOUTSBATCH.SUCCESS and .DENIED hold":                           hooks,
	"after a 5xx the same sender_batch_id":                                    noFailure,
	"sender_batch_id: at most 256 characters":                                 leavesMuch,
	"ids of more than 38 characters failed":                                   leavesMuch,
	"the list filters by plan_ids":                                            leavesMuch,
	"201 or 200; no replay signal":                                            leavesMuch,
	"a setup token that became a payment token is VAULTED":                    leavesMuch,
	"200, or 202 for a date to come; no PayPal-Request-Id; sent again it wri": "it would write to a payer",
}

// Every fact that the operation rows rest on is checked, or cannot be, with the
// reason; and no check is for a fact that no row has.
func TestRowsAreChecked(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, x := range []struct {
		rows  []rs.Operation
		suite suite
	}{
		{stripe.Operations(), stripeSuite(stripeSettings{})},
		{paypal.Operations(), paypalSuite(paypalSettings{})},
	} {
		checked, stated := map[string]bool{}, map[string]bool{}
		for _, f := range x.suite.facts() {
			for _, row := range f.rows {
				checked[row] = true
			}
		}
		for _, row := range x.rows {
			for _, f := range row.Facts {
				stated[f.States] = true
			}
		}
		for states := range stated {
			why, beginning := reasonFor(states)
			used[beginning] = true
			if !checked[states] && why == "" {
				t.Errorf("%s: nothing checks %q", x.suite.provider, states)
			}
		}
		for row := range checked {
			if !stated[row] {
				t.Errorf("%s: no row states %q any more", x.suite.provider, row)
			}
		}
	}
	for beginning := range beyond {
		if !used[beginning] {
			t.Errorf("no row has a fact that begins with %q", beginning)
		}
	}
}

func reasonFor(states string) (why, beginning string) {
	for beginning, why := range beyond {
		if strings.HasPrefix(states, beginning) {
			return why, beginning
		}
	}
	return "", ""
}

// Facts have ids of their own within a suite, something to hold to, and a source.
func TestFactsAreWhole(t *testing.T) {
	t.Parallel()
	for _, s := range []suite{stripeSuite(stripeSettings{}), paypalSuite(paypalSettings{})} {
		for _, sc := range s.scenarios {
			ids, states := map[string]bool{}, map[string]bool{}
			for _, f := range sc.facts {
				if f.id == "" || f.states == "" || len(f.want) == 0 || ids[f.id] || states[f.states] || f.setting != "" && f.grade != rs.Unverified {
					t.Errorf("%s: %+v is not whole, or not the only one", s.provider, f)
				}
				ids[f.id], states[f.states] = true, true
			}
		}
	}
}
