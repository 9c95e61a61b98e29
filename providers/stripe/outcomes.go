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
	// A created intent waits for its payer by design; what is running is pending. One
	// that was canceled since was created all the same.
	"payment_intent.create": {
		"requires_payment_method": done, "requires_confirmation": done, "requires_capture": done, "succeeded": done,
		"canceled": done,
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
		"canceled": done,
	},
	"setup_intent.confirm": {"succeeded": done, "requires_payment_method": refused, "canceled": refused},
	"setup_intent.cancel":  {"canceled": done},

	"refund.create":  {"succeeded": done, "failed": refused, "canceled": refused},
	"payout.create":  {"paid": done, "failed": refused, "canceled": refused},
	"payout.cancel":  {"canceled": done},
	"payout.reverse": {"paid": done, "failed": refused, "canceled": refused},

	"checkout_session.expire": {"expired": done},

	"subscription.create": {"active": done, "trialing": done, "paused": done, "canceled": done, "incomplete_expired": refused},
	"subscription.cancel": {"canceled": done},

	"invoice.finalize": {"open": done, "paid": done, "uncollectible": done, "void": done},
	"invoice.pay":      {"paid": done, "void": refused, "uncollectible": refused},
	"invoice.void":     {"void": done},
}

// judgeObject judges an object that an operation made or changed by its status.
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
	if v.Outcome == refused {
		return declined(a)
	}
	return v
}

// declined is the verdict on an object that came to nothing.
func declined(a *answer) outbound.Verdict {
	code := a.failure()
	if code == "" {
		code = a.Status
	}
	return outbound.Verdict{
		Effect: outbound.EffectNone, Code: outbound.ErrRefused, ProviderCode: code,
		ExternalRef: a.ID, ObjectStatus: a.Status,
	}
}

// unpaid reports whether the last try to confirm an intent was declined.
func (a *answer) unpaid() bool { return a.Status == "requires_payment_method" && a.failure() != "" }

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
