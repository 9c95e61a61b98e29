package providertest

import (
	"github.com/seed-6b5e302b/samekey/internal/fakeprovider/paypal"
	"github.com/seed-6b5e302b/samekey/internal/fakeprovider/stripe"
)

// engineSeed turns a seed of this package into the fake's own type.
func engineSeed(seed any) any {
	switch s := seed.(type) {
	case PaymentIntent:
		return stripe.PaymentIntent(s)
	case Charge:
		return stripe.Charge(s)
	case Customer:
		return stripe.Customer(s)
	case SetupIntent:
		return stripe.SetupIntent(s)
	case StripeInvoice:
		return stripe.Invoice(s)
	case StripeSubscription:
		return stripe.Subscription(s)
	case CheckoutSession:
		return stripe.CheckoutSession(s)
	case Transfer:
		return stripe.Transfer(s)
	case StripePayout:
		return stripe.Payout(s)
	case EventDestination:
		return stripe.EventDestination(s)
	case Account:
		return stripe.Account(s)
	case InAccount:
		return stripe.In{Account: s.Account, Live: s.Live, Object: engineSeed(s.Object)}
	case ApprovedOrder:
		return paypal.ApprovedOrder(s)
	case CreatedAuthorization:
		return paypal.CreatedAuthorization(s)
	case CompletedCapture:
		return paypal.CompletedCapture(s)
	case ActivePlan:
		return paypal.ActivePlan(s)
	case ActiveSubscription:
		return paypal.ActiveSubscription(s)
	case ApprovedSetupToken:
		return paypal.ApprovedSetupToken(s)
	case Approval:
		return paypal.Approval(s)
	case RevokedTokens:
		return paypal.RevokedTokens(s)
	}
	return seed
}
