package stripe

import "strings"

// verdict is what the card network says of a payment method.
type verdict struct {
	code, decline string // a decline
	action        bool   // the customer must act first
	slow          bool   // a bank debit: processing, not yet paid
	pendingRefund bool   // a refund of it stays pending at first
}

// judge reads Stripe's published test tokens. Every other method is accepted.
// Source: Stripe's page "Testing".
func judge(pm string, offSession bool) verdict {
	name := strings.TrimPrefix(strings.TrimPrefix(pm, "pm_card_"), "tok_")
	name = strings.TrimPrefix(name, "visa_")
	switch name {
	case "chargeDeclined", "chargeCustomerFail":
		return verdict{code: "card_declined", decline: "generic_decline"}
	case "chargeDeclinedInsufficientFunds":
		return verdict{code: "card_declined", decline: "insufficient_funds"}
	case "chargeDeclinedLostCard":
		return verdict{code: "card_declined", decline: "lost_card"}
	case "chargeDeclinedStolenCard":
		return verdict{code: "card_declined", decline: "stolen_card"}
	case "chargeDeclinedFraudulent":
		return verdict{code: "card_declined", decline: "fraudulent"}
	case "chargeDeclinedVelocityLimitExceeded":
		return verdict{code: "card_declined", decline: "card_velocity_exceeded"}
	case "chargeDeclinedExpiredCard":
		return verdict{code: "expired_card"}
	case "chargeDeclinedIncorrectCvc":
		return verdict{code: "incorrect_cvc"}
	case "chargeDeclinedProcessingError":
		return verdict{code: "processing_error"}
	case "authenticationRequired":
		if offSession {
			return verdict{code: "authentication_required", decline: "authentication_required"}
		}
		return verdict{action: true}
	case "pendingRefund":
		return verdict{pendingRefund: true}
	}
	if strings.HasPrefix(pm, "pm_usBankAccount") || strings.HasPrefix(pm, "pm_sepaDebit") {
		return verdict{slow: true}
	}
	return verdict{}
}
