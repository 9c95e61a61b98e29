package paypal_test

import (
	"strings"
	"testing"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider/paypal"
)

func TestVault(t *testing.T) {
	a := open(t, paypal.Config{})
	wallet := a.post("/v3/vault/setup-tokens", "s", m{"payment_source": m{"paypal": m{"usage_type": "MERCHANT"}}, "customer": m{"id": "customer1"}}).
		want(201).says("status", "PAYER_ACTION_REQUIRED").says("customer/id", "customer1")
	id := wallet.text("id")
	if wallet.link("approve") == "" {
		t.Error("there is no approve link")
	}
	convert := m{"payment_source": m{"token": m{"id": id, "type": "SETUP_TOKEN"}}}
	a.post("/v3/vault/payment-tokens", "p", convert).want(422, "SETUP_TOKEN_NOT_APPROVED")
	a.seed(paypal.Approval{ID: id})
	a.get("/v3/vault/setup-tokens/"+id).want(200).says("status", "APPROVED")
	token := a.post("/v3/vault/payment-tokens", "p", convert).want(201).says("customer/id", "customer1")
	a.post("/v3/vault/payment-tokens", "p", convert).want(200).says("id", token.text("id"))
	a.effects("payment_token.create", 1)
	a.get("/v3/vault/setup-tokens/"+id).want(200).says("status", "VAULTED")

	card := a.post("/v3/vault/payment-tokens", "c", m{"payment_source": m{"card": m{"number": "4111111111111111", "security_code": "987"}}}).
		want(201).says("payment_source/card/last_digits", "1111")
	if strings.Contains(card.raw, "411111") || strings.Contains(card.raw, "987") {
		t.Error("a card number came back")
	}
	a.get("/v3/vault/payment-tokens/" + card.text("id")).want(200)
	got := a.get("/v3/vault/payment-tokens?customer_id=customer1").want(200).says("payment_tokens/0/id", token.text("id"))
	if len(got.list("payment_tokens")) != 1 {
		t.Errorf("the customer's tokens are %s", got.raw)
	}
	a.get("/v3/vault/payment-tokens").want(400, "MISSING_REQUIRED_PARAMETER")
	a.get("/v3/vault/payment-tokens/NONE").want(404)
	a.get("/v3/vault/setup-tokens/NONE").want(404)
	for _, bad := range []any{nil, m{}, m{"payment_source": 7}, m{"payment_source": m{}}, m{"payment_source": m{"paypal": 7}},
		m{"payment_source": m{"token": m{"id": id, "type": "OTHER"}}}} {
		a.post("/v3/vault/payment-tokens", "bad", bad).want(400)
	}
	a.post("/v3/vault/payment-tokens", "none", m{"payment_source": m{"token": m{"id": "NONE", "type": "SETUP_TOKEN"}}}).want(404)
}
