package main

import (
	"context"
	"fmt"
	"net/http"
)

// pay makes a payment of one dollar by one of Stripe's test cards.
func (s *stripeRun) pay(ctx context.Context, key, card string) (answer, error) {
	return s.post(ctx, "/v1/payment_intents", key, "amount", "100", "currency", "usd", "confirm", "true",
		"payment_method", card, "payment_method_types[0]", "card", "description", s.api.run)
}

// failures shows which failures a key keeps.
func (s *stripeRun) failures(ctx context.Context, n *notes) error {
	bad, err := s.customer(ctx, "invalid", "samekey_unknown", "1")
	if err != nil {
		return err
	}
	good, err := s.customer(ctx, "invalid")
	if err != nil {
		return err
	}
	n.saw("validation", "%s, then %s, %s", told(bad), told(good), kept(good))

	declined, err := s.pay(ctx, "decline", "pm_card_chargeDeclined")
	if err != nil {
		return err
	}
	n.saw("decline", "%s", told(declined))
	again, err := s.pay(ctx, "decline", "pm_card_chargeDeclined")
	if err != nil {
		return err
	}
	n.saw("decline_kept", "%s, %s", told(again), kept(again))
	if err := s.guard(ctx, n, declined.text("error", "payment_intent", "id")); err != nil {
		return err
	}

	missing, err := s.post(ctx, "/v1/refunds", "missing", "charge", "ch_samekey_missing")
	if err != nil {
		return err
	}
	n.saw("missing", "%s", told(missing))
	again, err = s.post(ctx, "/v1/refunds", "missing", "charge", "ch_samekey_missing")
	if err != nil {
		return err
	}
	n.saw("missing_kept", "%s", kept(again))
	return nil
}

// guard cancels a payment intent twice, and asks for the refusal again.
func (s *stripeRun) guard(ctx context.Context, n *notes, id string) error {
	if id == "" {
		return fmt.Errorf("the decline names no payment intent")
	}
	first, err := s.post(ctx, "/v1/payment_intents/"+id+"/cancel", "cancel")
	if err != nil {
		return err
	}
	if err := first.want("cancel the declined payment intent", told(first), http.StatusOK); err != nil {
		return err
	}
	refused, err := s.post(ctx, "/v1/payment_intents/"+id+"/cancel", "cancel-2")
	if err != nil {
		return err
	}
	again, err := s.post(ctx, "/v1/payment_intents/"+id+"/cancel", "cancel-2")
	if err != nil {
		return err
	}
	n.saw("guard", "%s", told(refused))
	n.saw("guard_kept", "%s, %s", told(again), kept(again))
	return nil
}

// inFlight sends one keyed payment several times at once.
func (s *stripeRun) inFlight(ctx context.Context, n *notes) error {
	answers, err := together(crowd, func() (answer, error) { return s.pay(ctx, "crowd", "pm_card_visa") })
	if err != nil {
		return err
	}
	ids, met := map[string]bool{}, ""
	for _, r := range answers {
		switch id := r.text("id"); {
		case id != "":
			ids[id], s.payment = true, id
		case r.status != http.StatusOK:
			met = told(r)
		}
	}
	n.saw("one", "%d", len(ids))
	if met == "" {
		return errNoMeeting
	}
	n.saw("conflict", "%s", met)
	return nil
}

// refunds refunds the payment in parts, the same part twice under two keys, and
// then more than there is.
func (s *stripeRun) refunds(ctx context.Context, n *notes) error {
	if s.payment == "" {
		return fmt.Errorf("no payment has succeeded")
	}
	ids := map[string]bool{}
	for _, key := range []string{"part-1", "part-2"} {
		r, err := s.post(ctx, "/v1/refunds", key, "payment_intent", s.payment, "amount", "40")
		if err != nil {
			return err
		}
		if err := r.want("refund a part", told(r), http.StatusOK); err != nil {
			return err
		}
		ids[r.text("id")] = true
	}
	n.saw("partial", "%d refunds", len(ids))
	rest, err := s.post(ctx, "/v1/refunds", "rest", "payment_intent", s.payment)
	if err != nil {
		return err
	}
	if err := rest.want("refund the rest", told(rest), http.StatusOK); err != nil {
		return err
	}
	over, err := s.post(ctx, "/v1/refunds", "over", "payment_intent", s.payment)
	if err != nil {
		return err
	}
	n.saw("full", "%s", told(over))
	return nil
}
