package stripe

import "github.com/seed-6b5e302b/samekey/outbound"

// What a status means for the operation that gave it.
const (
	done    = outbound.Done
	pending = outbound.Pending
	partial = outbound.Partial

	// refused is no outcome of an applied effect: the object exists, and no money
	// moves by it.
	refused outbound.Outcome = "refused"
)

// meanings say what the status in a success means for an operation. A status
// that is not listed is pending: it is not known to be the end. An operation
// that is not listed has no status that matters, and is done.
// Source: the status attribute of each object at https://docs.stripe.com/api.
var meanings = map[string]map[string]outbound.Outcome{
	// A created intent waits for its payer by design; what is running is pending.
	"payment_intent.create": {
		"requires_payment_method": done, "requires_confirmation": done, "requires_capture": done, "succeeded": done,
		"canceled": refused,
	},
	"payment_intent.confirm": {
		"requires_capture": done, "succeeded": done,
		"requires_payment_method": refused, "canceled": refused,
	},
	// Of a multi-capture, an intent that can still be captured was captured in part.
	"payment_intent.capture": {"succeeded": done, "requires_capture": partial, "canceled": refused},
	"payment_intent.cancel":  {"canceled": done},

	"setup_intent.create": {
		"requires_payment_method": done, "requires_confirmation": done, "succeeded": done,
		"canceled": refused,
	},
	"setup_intent.confirm": {"succeeded": done, "requires_payment_method": refused, "canceled": refused},
	"setup_intent.cancel":  {"canceled": done},

	"refund.create":  {"succeeded": done, "failed": refused, "canceled": refused},
	"payout.create":  {"paid": done, "failed": refused, "canceled": refused},
	"payout.cancel":  {"canceled": done},
	"payout.reverse": {"paid": done, "failed": refused, "canceled": refused},

	"checkout_session.expire": {"expired": done},

	"subscription.create": {"active": done, "trialing": done, "paused": done, "incomplete_expired": refused, "canceled": refused},
	"subscription.cancel": {"canceled": done},

	"invoice.finalize": {"open": done, "paid": done, "uncollectible": done, "void": done},
	"invoice.pay":      {"paid": done, "void": refused, "uncollectible": refused},
	"invoice.void":     {"void": done},
}

// judgeObject judges a success by the object's status.
func judgeObject(operation string, a *answer) outbound.Verdict {
	v := outbound.Verdict{Effect: outbound.EffectApplied, ExternalRef: a.ID, ObjectStatus: a.Status, Outcome: done}
	if m, ok := meanings[operation]; ok {
		if v.Outcome, ok = m[a.Status]; !ok {
			v.Outcome = pending
		}
	}
	if operation == "payment_intent.capture" && a.Status == "canceled" && a.AmountReceived > 0 {
		v.Outcome = partial // captured in part, and the rest released
	}
	if a.Status == "requires_payment_method" && a.failure() != "" {
		v.Outcome = refused // confirmed by the same request, and declined
	}
	if v.Outcome == refused {
		v.Effect, v.Code, v.Outcome = outbound.EffectNone, outbound.ErrRefused, ""
		if v.ProviderCode = a.failure(); v.ProviderCode == "" {
			v.ProviderCode = a.Status
		}
	}
	return v
}

// failure is Stripe's code for why an object came to nothing; "" if it says none.
func (a *answer) failure() string {
	for _, e := range []*apiError{a.LastPaymentError, a.LastSetupError} {
		if e != nil && e.name() != "" {
			return e.name()
		}
	}
	if a.FailureCode != "" {
		return a.FailureCode
	}
	return a.FailureReason
}
