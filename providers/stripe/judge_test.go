package stripe

import (
	"net/http"
	"reflect"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// Bodies as Stripe shapes them, with our own words as messages.
const (
	succeededIntent = `{"id":"pi_1","object":"payment_intent","status":"succeeded","amount":2000,"currency":"eur"}`
	declinedCard    = `{"error":{"type":"card_error","code":"card_declined","decline_code":"insufficient_funds","message":"Declined.","payment_intent":{"id":"pi_1","object":"payment_intent","status":"requires_payment_method"}}}`
	missingParam    = `{"error":{"type":"invalid_request_error","code":"parameter_missing","param":"amount","message":"Missing."}}`
	noSuchObject    = `{"error":{"type":"invalid_request_error","code":"resource_missing","param":"intent","message":"No such intent."}}`
	badKey          = `{"error":{"type":"invalid_request_error","message":"Bad key."}}`
	keyMismatch     = `{"error":{"type":"idempotency_error","message":"Other parameters."}}`
	keyInUse        = `{"error":{"type":"invalid_request_error","code":"idempotency_key_in_use","message":"Running."}}`
	lockTimeout     = `{"error":{"type":"invalid_request_error","code":"lock_timeout","message":"Locked."}}`
	rateLimit       = `{"error":{"type":"invalid_request_error","code":"rate_limit","message":"Too many."}}`
	serverError     = `{"error":{"type":"api_error","message":"Sorry."}}`
	htmlPage        = `<html><body><h1>502 Bad Gateway</h1></body></html>`
)

var (
	fresh  = http.Header{"Request-Id": {"req_1"}, "Original-Request": {"req_1"}}
	replay = http.Header{"Request-Id": {"req_2"}, "Original-Request": {"req_1"}, "Idempotent-Replayed": {"true"}}
)

func with(h http.Header, pairs ...string) http.Header {
	h = h.Clone()
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return h
}

// TestJudge holds the rules of "Labels, v1" and "Errors" one by one (C01, C13, C14, C18).
func TestJudge(t *testing.T) {
	t.Parallel()
	const create, confirm = "payment_intent.create", "payment_intent.confirm"
	applied := outbound.Verdict{Effect: outbound.EffectApplied, Outcome: outbound.Done, ExternalRef: "pi_1", ObjectStatus: "succeeded"}
	none := func(code outbound.Code, provider string) outbound.Verdict {
		return outbound.Verdict{Effect: outbound.EffectNone, Code: code, ProviderCode: provider}
	}
	unknown := func(provider string) outbound.Verdict { return outbound.Verdict{ProviderCode: provider} }
	again := func(v outbound.Verdict) outbound.Verdict { v.Again = true; return v }
	look := func(v outbound.Verdict) outbound.Verdict { v.Look = true; return v }
	after := func(v outbound.Verdict, d time.Duration) outbound.Verdict { v.RetryAfter = d; return v }
	by := func(v outbound.Verdict, e rs.Evidence) outbound.Verdict { v.Evidence, v.Label = e, e.Label(); return v }

	for _, c := range []struct {
		name   string
		op     string
		status int
		header http.Header
		body   string
		want   outbound.Verdict
	}{
		// Executed: the header alone tells a replay.
		{"success", create, 200, fresh, succeededIntent, by(applied, rs.ByNoReplayHeader)},
		{"success replayed", create, 200, replay, succeededIntent, by(applied, rs.ByReplayHeader)},
		{"decline", create, 402, fresh, declinedCard, by(none(outbound.ErrRefused, "card_declined"), rs.ByNoReplayHeader)},
		{"decline replayed", create, 402, replay, declinedCard, by(none(outbound.ErrRefused, "card_declined"), rs.ByReplayHeader)},
		{"stored 400 replayed", create, 400, replay, missingParam, by(none(outbound.ErrRefused, "parameter_missing"), rs.ByReplayHeader)},
		{"stored 404 replayed", confirm, 404, replay, noSuchObject, by(none(outbound.ErrRefused, "resource_missing"), rs.ByReplayHeader)},
		{"stored 500 replayed", create, 500, replay, serverError, by(look(unknown("api_error")), rs.ByReplayHeader)},
		{"stored 500 replayed, retry asked for", create, 500, with(replay, "Stripe-Should-Retry", "true"), serverError, by(look(unknown("api_error")), rs.ByReplayHeader)},
		{"stored 424 replayed", create, 424, replay, serverError, by(look(unknown("api_error")), rs.ByReplayHeader)},
		{"stored 503 replayed", create, 503, replay, serverError, by(look(unknown("api_error")), rs.ByReplayHeader)},
		{"replay header in another case", create, 200, with(fresh, "Idempotent-Replayed", "True"), succeededIntent, by(applied, rs.ByReplayHeader)},
		{"replay header that denies", create, 200, with(fresh, "Idempotent-Replayed", "false"), succeededIntent, by(applied, rs.ByNoReplayHeader)},

		// Not executed by this attempt: no label.
		{"validation", create, 400, fresh, missingParam, none(outbound.ErrRejected, "parameter_missing")},
		{"bad key", create, 401, fresh, badKey, none(outbound.ErrAuth, "invalid_request_error")},
		{"forbidden", create, 403, fresh, badKey, none(outbound.ErrRejected, "invalid_request_error")},
		{"not found", confirm, 404, fresh, noSuchObject, none(outbound.ErrRejected, "resource_missing")},
		{"rate limit", create, 429, with(fresh, "Stripe-Rate-Limited-Reason", "global-rate"), rateLimit, again(none(outbound.ErrRateLimited, "rate_limit"))},
		{"rate limit, retry forbidden", create, 429, with(fresh, "Stripe-Should-Retry", "false"), rateLimit, none(outbound.ErrRateLimited, "rate_limit")},
		{"lock timeout", create, 429, fresh, lockTimeout, after(again(none(outbound.ErrRateLimited, "lock_timeout")), lockWait)},
		{"lock timeout with Retry-After", create, 429, with(fresh, "Retry-After", "2"), lockTimeout, again(none(outbound.ErrRateLimited, "lock_timeout"))},

		// Somebody used or uses the key: unknown, on a first delivery too.
		{"key in use", create, 409, fresh, keyInUse, again(unknown("idempotency_key_in_use"))},
		{"key in use, whatever the status", create, 400, fresh, keyInUse, again(unknown("idempotency_key_in_use"))},
		{"mismatch", create, 400, fresh, keyMismatch, look(unknown("idempotency_error"))},
		{"mismatch of v2", "v2.account.create", 409, fresh, `{"error":{"code":"idempotency_error","message":"Other."}}`, look(unknown("idempotency_error"))},
		{"conflict without a known code", create, 409, fresh, badKey, again(unknown("invalid_request_error"))},

		// The state refuses: perhaps our own earlier delivery reached it.
		{"unexpected state", confirm, 400, fresh, `{"error":{"type":"invalid_request_error","code":"payment_intent_unexpected_state"}}`, look(unknown("payment_intent_unexpected_state"))},
		{"unexpected state replayed", confirm, 400, replay, `{"error":{"type":"invalid_request_error","code":"payment_intent_unexpected_state"}}`, look(unknown("payment_intent_unexpected_state"))},
		{"setup intent's state", "setup_intent.confirm", 400, fresh, `{"error":{"type":"invalid_request_error","code":"setup_intent_unexpected_state"}}`, look(unknown("setup_intent_unexpected_state"))},
		{"already captured", "payment_intent.capture", 400, fresh, `{"error":{"type":"invalid_request_error","code":"charge_already_captured"}}`, look(unknown("charge_already_captured"))},
		{"already refunded", "refund.create", 400, fresh, `{"error":{"type":"invalid_request_error","code":"charge_already_refunded"}}`, look(unknown("charge_already_refunded"))},
		{"exists already", "customer.create", 400, fresh, `{"error":{"type":"invalid_request_error","code":"resource_already_exists"}}`, look(unknown("resource_already_exists"))},

		// Indeterminate.
		{"500", create, 500, fresh, serverError, unknown("api_error")},
		{"500, retry asked for", create, 500, with(fresh, "Stripe-Should-Retry", "true"), serverError, again(unknown("api_error"))},
		{"500 of v2 runs again", "v2.account.create", 500, fresh, serverError, again(unknown("api_error"))},
		{"424", create, 424, fresh, serverError, again(unknown("api_error"))},
		{"502", create, 502, fresh, serverError, again(unknown("api_error"))},
		{"503, retry forbidden", create, 503, with(fresh, "Stripe-Should-Retry", "false"), serverError, unknown("api_error")},
		{"504", create, 504, fresh, serverError, again(unknown("api_error"))},
		{"502 in HTML", create, 502, fresh, htmlPage, again(unknown(""))},
		{"400 in HTML", create, 400, fresh, htmlPage, again(unknown(""))},
		{"402 in HTML", create, 402, fresh, htmlPage, again(unknown(""))},
		{"200 in HTML", create, 200, fresh, htmlPage, again(unknown(""))},
		{"200 empty", create, 200, with(fresh, "Stripe-Should-Retry", "false"), "", again(unknown(""))},
		{"200 cut off", create, 200, fresh, succeededIntent[:40], again(unknown(""))},
		{"200 without an id", create, 200, fresh, `{}`, again(unknown(""))},
		{"200 with an error", create, 200, fresh, serverError, again(unknown(""))},
		{"204 of a POST", create, 204, fresh, "", again(unknown(""))},
		{"error without words", create, 402, fresh, `{"error":{}}`, again(unknown(""))},
		{"a status nobody documents", create, 418, fresh, badKey, again(unknown("invalid_request_error"))},

		// API v2 gives no header labels, and its failures run again.
		{"v2 success", "v2.account.create", 200, fresh, `{"id":"acct_2","object":"v2.core.account"}`,
			outbound.Verdict{Effect: outbound.EffectApplied, Outcome: outbound.Done, ExternalRef: "acct_2"}},
		{"v2 success with a replay header", "v2.account.create", 200, replay, `{"id":"acct_2","object":"v2.core.account"}`,
			outbound.Verdict{Effect: outbound.EffectApplied, Outcome: outbound.Done, ExternalRef: "acct_2"}},
		{"v2 delete", "v2.event_destination.delete", 200, fresh, `{"id":"ed_1"}`,
			outbound.Verdict{Effect: outbound.EffectApplied, Outcome: outbound.Done, ExternalRef: "ed_1"}},
		{"v2 validation", "v2.account.create", 400, fresh, missingParam, none(outbound.ErrRejected, "parameter_missing")},
		{"v2 refusal", "v2.account.create", 402, fresh, declinedCard, none(outbound.ErrRefused, "card_declined")},

		// Without a key: no header label, and never again by itself while unknown.
		{"cancelled subscription", "subscription.cancel", 200, fresh, `{"id":"sub_1","object":"subscription","status":"canceled"}`,
			outbound.Verdict{Effect: outbound.EffectApplied, Outcome: outbound.Done, ExternalRef: "sub_1", ObjectStatus: "canceled"}},
		{"cancelled without words", "subscription.cancel", 204, fresh, "", outbound.Verdict{Effect: outbound.EffectApplied}},
		{"503 without a key", "subscription.cancel", 503, fresh, serverError, unknown("api_error")},
		{"429 without a key", "subscription.cancel", 429, fresh, rateLimit, again(none(outbound.ErrRateLimited, "rate_limit"))},

		// A meter event's identifier is the key, and never leaves as a reference.
		{"meter event", "meter_event.create", 200, fresh, `{"object":"billing.meter_event","identifier":"secret","event_name":"calls"}`,
			by(outbound.Verdict{Effect: outbound.EffectApplied, Outcome: outbound.Done}, rs.ByNoReplayHeader)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			op, ok := operations[c.op]
			if !ok {
				t.Fatalf("no operation %q", c.op)
			}
			c.want.RequestID = c.header.Get("Request-Id")
			got := codec{}.Judge(&httpadapter.Exchange{Operation: op, Status: c.status, Header: c.header, Body: []byte(c.body)})
			if got.Err != nil || c.want.Err != nil {
				t.Errorf("errors %v and %v, want none", got.Err, c.want.Err)
			}
			if !reflect.DeepEqual(got, c.want) { //nolint:govet // neither holds an error
				t.Errorf("\n got %+v\nwant %+v", got, c.want)
			}
		})
	}
}

// TestJudgeStatus holds what a status inside a success means. Applied is not
// paid, and a failed object moved no money.
func TestJudgeStatus(t *testing.T) {
	t.Parallel()
	const applied, none = outbound.EffectApplied, outbound.EffectNone
	for _, c := range []struct {
		op, body string
		effect   outbound.Effect
		outcome  outbound.Outcome
		code     string
	}{
		{"payment_intent.create", `"status":"requires_payment_method"`, applied, outbound.Done, ""},
		{"payment_intent.create", `"status":"requires_payment_method","last_payment_error":{"type":"card_error","code":"card_declined"}`, none, "", "card_declined"},
		{"payment_intent.create", `"status":"requires_action"`, applied, outbound.Pending, ""},
		{"payment_intent.create", `"status":"processing"`, applied, outbound.Pending, ""},
		{"payment_intent.create", `"status":"requires_capture"`, applied, outbound.Done, ""},
		{"payment_intent.confirm", `"status":"succeeded","last_payment_error":null`, applied, outbound.Done, ""},
		{"payment_intent.confirm", `"status":"requires_action"`, applied, outbound.Pending, ""},
		{"payment_intent.confirm", `"status":"requires_confirmation"`, applied, outbound.Pending, ""},
		{"payment_intent.confirm", `"status":"requires_payment_method"`, none, "", "requires_payment_method"},
		{"payment_intent.capture", `"status":"succeeded"`, applied, outbound.Done, ""},
		{"payment_intent.capture", `"status":"requires_capture"`, applied, outbound.Partial, ""},
		{"payment_intent.cancel", `"status":"canceled"`, applied, outbound.Done, ""},
		{"payment_intent.cancel", `"status":"processing"`, applied, outbound.Pending, ""},
		{"setup_intent.confirm", `"status":"requires_payment_method","last_setup_error":{"type":"card_error","code":"expired_card"}`, none, "", "expired_card"},
		{"setup_intent.confirm", `"status":"succeeded"`, applied, outbound.Done, ""},
		{"refund.create", `"status":"succeeded"`, applied, outbound.Done, ""},
		{"refund.create", `"status":"pending"`, applied, outbound.Pending, ""},
		{"refund.create", `"status":null`, applied, outbound.Pending, ""},
		{"refund.create", `"status":"failed","failure_reason":"lost_or_stolen_card"`, none, "", "lost_or_stolen_card"},
		{"refund.create", `"status":"canceled"`, none, "", "canceled"},
		{"payout.create", `"status":"in_transit"`, applied, outbound.Pending, ""},
		{"payout.create", `"status":"paid","failure_code":null`, applied, outbound.Done, ""},
		{"payout.create", `"status":"failed","failure_code":"account_closed"`, none, "", "account_closed"},
		{"payout.cancel", `"status":"canceled"`, applied, outbound.Done, ""},
		{"transfer.create", `"reversed":false`, applied, outbound.Done, ""},
		{"invoice.create", `"status":"draft"`, applied, outbound.Done, ""},
		{"invoice.pay", `"status":"open"`, applied, outbound.Pending, ""},
		{"invoice.pay", `"status":"paid"`, applied, outbound.Done, ""},
		{"invoice.void", `"status":"void"`, applied, outbound.Done, ""},
		{"subscription.create", `"status":"active"`, applied, outbound.Done, ""},
		{"subscription.create", `"status":"incomplete"`, applied, outbound.Pending, ""},
		{"subscription.update", `"status":"past_due"`, applied, outbound.Done, ""},
		{"checkout_session.create", `"status":"open"`, applied, outbound.Done, ""},
		{"checkout_session.expire", `"status":"expired"`, applied, outbound.Done, ""},
	} {
		got := codec{}.Judge(&httpadapter.Exchange{
			Operation: operations[c.op], Status: 200, Header: fresh,
			Body: []byte(`{"id":"x_1",` + c.body + `}`),
		})
		if got.Effect != c.effect || got.Outcome != c.outcome || got.ProviderCode != c.code || got.ExternalRef != "x_1" {
			t.Errorf("%s %s: got %v %q %q, ref %q", c.op, c.body, got.Effect, got.Outcome, got.ProviderCode, got.ExternalRef)
		}
		if (got.Effect == none) != (got.Code == outbound.ErrRefused) {
			t.Errorf("%s %s: code %q", c.op, c.body, got.Code)
		}
	}
	for op, m := range meanings {
		if _, ok := operations[op]; !ok || len(m) == 0 {
			t.Errorf("meanings name %q, which is no operation or has no status", op)
		}
	}
}

// FuzzJudge shows that no answer makes the codec panic or claim an effect that
// it cannot name, and that what is unreadable stays unknown (C18).
func FuzzJudge(f *testing.F) {
	for _, body := range []string{succeededIntent, declinedCard, keyMismatch, htmlPage, "", "null", "[]", `{"id":1}`} {
		f.Add(200, body, false)
		f.Add(402, body, true)
		f.Add(500, body, true)
	}
	f.Fuzz(func(t *testing.T, status int, body string, isReplay bool) {
		h := fresh
		if isReplay {
			h = replay
		}
		for _, name := range []string{"payment_intent.create", "subscription.cancel", "v2.account.create", "meter_event.create"} {
			op := operations[name]
			v := codec{}.Judge(&httpadapter.Exchange{Operation: op, Status: status, Header: h, Body: []byte(body)})
			if v.Label != v.Evidence.Label() {
				t.Errorf("%s: label %q on evidence %q", name, v.Label, v.Evidence)
			}
			if v.Effect == outbound.EffectApplied && status/100 != 2 {
				t.Errorf("%s: applied by status %d", name, status)
			}
			if (v.Effect == outbound.EffectNone) != (v.Code != "") {
				t.Errorf("%s: effect %v with code %q", name, v.Effect, v.Code)
			}
			if v.Effect == outbound.EffectNone && status >= 500 {
				t.Errorf("%s: status %d proves nothing, but was judged None", name, status)
			}
		}
	})
}
