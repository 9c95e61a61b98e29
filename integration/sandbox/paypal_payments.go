package main

import (
	"context"
	"fmt"
	"net/http"
)

// payByCard makes an order that a test card pays at once.
func (p *paypalRun) payByCard(ctx context.Context, id, intent string) (answer, error) {
	r, err := p.send(ctx, http.MethodPost, ordersPath, id, p.cardOrder(intent))
	if err != nil {
		return r, err
	}
	if s := r.text("status"); r.status >= 300 || s != "COMPLETED" {
		return r, fmt.Errorf("pay by card: the answer is %s %s; the app needs advanced card payments", issues(r), word(s))
	}
	return r, nil
}

func payments(r answer, kind string) answer {
	return answer{json: r.at("purchase_units", "0", "payments", kind, "0")}
}

// captures pays by card, refunds in parts, and asks again after each.
func (p *paypalRun) captures(ctx context.Context, n *notes) error {
	paid, err := p.payByCard(ctx, "card", "CAPTURE")
	if err != nil {
		return err
	}
	order := paid.text("id")
	p.capture = payments(paid, "captures").text("id")
	again, err := p.send(ctx, http.MethodPost, ordersPath+"/"+order+"/capture", "capture", m{})
	if err != nil {
		return err
	}
	n.saw("captured", "%s", issues(again))
	path := "/v2/payments/captures/" + p.capture + "/refund"
	refund := m{"amount": dollars("1.00")}
	first, err := p.send(ctx, http.MethodPost, path, "refund", refund)
	if err != nil {
		return err
	}
	if err := first.want("refund a part", issues(first), http.StatusCreated, http.StatusOK); err != nil {
		return err
	}
	second, err := p.send(ctx, http.MethodPost, path, "refund", refund)
	if err != nil {
		return err
	}
	n.saw("refund", "%d", first.status)
	n.saw("refund.replay", "%s, same refund %t", issues(second), second.text("id") == first.text("id"))
	late, err := p.send(ctx, http.MethodPost, ordersPath, "card", p.cardOrder("CAPTURE"))
	if err != nil {
		return err
	}
	n.saw("latest", "%d %s", late.status, word(payments(late, "captures").text("status")))
	much, err := p.send(ctx, http.MethodPost, path, "much", m{"amount": dollars("9.00")})
	if err != nil {
		return err
	}
	n.saw("refund.much", "%s", issues(much))
	rest, err := p.send(ctx, http.MethodPost, path, "rest", m{})
	if err != nil {
		return err
	}
	n.saw("refund.rest", "%d %s", rest.status, word(rest.text("amount", "value")))
	over, err := p.send(ctx, http.MethodPost, path, "over", m{})
	n.saw("refund.over", "%s", issues(over))
	return err
}

// authorizations captures a part of an authorization twice under one id, and
// voids another.
func (p *paypalRun) authorizations(ctx context.Context, n *notes) error {
	held, err := p.payByCard(ctx, "held", "AUTHORIZE")
	if err != nil {
		return err
	}
	path := "/v2/payments/authorizations/" + payments(held, "authorizations").text("id")
	part := m{"amount": dollars("1.00"), "final_capture": true}
	first, err := p.send(ctx, http.MethodPost, path+"/capture", "part", part)
	if err != nil {
		return err
	}
	if err := first.want("capture the authorization", issues(first), http.StatusCreated, http.StatusOK); err != nil {
		return err
	}
	again, err := p.send(ctx, http.MethodPost, path+"/capture", "part", part)
	if err != nil {
		return err
	}
	n.saw("authorization.capture", "%d, same capture %t", first.status, again.text("id") == first.text("id"))
	n.saw("authorization.replay", "%d", again.status)
	_, _ = p.send(ctx, http.MethodPost, "/v2/payments/captures/"+first.text("id")+"/refund", "part-refund", m{}) // leaves nothing open

	other, err := p.payByCard(ctx, "void", "AUTHORIZE")
	if err != nil {
		return err
	}
	path = "/v2/payments/authorizations/" + payments(other, "authorizations").text("id") + "/void"
	var statuses [2]int
	for i := range statuses {
		r, err := p.send(ctx, http.MethodPost, path, "void", nil)
		if err != nil {
			return err
		}
		statuses[i] = r.status
	}
	n.saw("void", "%d, then %d", statuses[0], statuses[1])
	over, err := p.send(ctx, http.MethodPost, path, "void-2", nil)
	n.saw("void.over", "%s", issues(over))
	return err
}

// payouts pays a cent out, and asks again in three ways.
func (p *paypalRun) payouts(ctx context.Context, n *notes) error {
	const path = "/v1/payments/payouts"
	pay := func(batch, id string) (answer, error) {
		return p.send(ctx, http.MethodPost, path, id, m{
			"sender_batch_header": m{"sender_batch_id": p.key(batch)},
			"items":               []m{{"recipient_type": "EMAIL", "receiver": "samekey-sandbox@example.com", "amount": m{"currency": "USD", "value": "0.01"}}},
		})
	}
	first, err := pay("batch", "payout")
	if err != nil {
		return err
	}
	if err := first.want("create a payout", issues(first), http.StatusCreated); err != nil {
		return err
	}
	id := first.text("batch_header", "payout_batch_id")
	again, err := pay("batch", "payout")
	if err != nil {
		return err
	}
	detail := answer{json: again.at("details", "0")}
	n.saw("batch", "%d %s, field %s", again.status, word(again.text("name")), word(detail.text("field")))
	n.saw("batch.link", "to the first batch %t", linked(again, id))
	other, err := pay("batch-2", "payout")
	if err != nil {
		return err
	}
	n.saw("batch.header", "%d, same batch %t", other.status, other.text("batch_header", "payout_batch_id") == id)
	return nil
}

// linked reports whether an answer links to a payout batch.
func linked(r answer, batch string) bool {
	links := r.list("links")
	for _, d := range r.list("details") {
		links = append(links, answer{json: d}.list("link")...)
	}
	for _, l := range links {
		href := answer{json: l}.text("href")
		if batch != "" && len(href) >= len(batch) && href[len(href)-len(batch):] == batch {
			return true
		}
	}
	return false
}

// vault asks for a setup token, which nobody uses and PayPal forgets.
func (p *paypalRun) vault(ctx context.Context, n *notes) error {
	const path = "/v3/vault/setup-tokens"
	first, err := p.send(ctx, http.MethodPost, path, "setup", m{"payment_source": card()})
	if err != nil {
		return err
	}
	if err := first.want("make a setup token", issues(first), http.StatusCreated, http.StatusOK); err != nil {
		return err
	}
	again, err := p.send(ctx, http.MethodPost, path, "setup", m{"payment_source": card()})
	if err != nil {
		return err
	}
	n.saw("vault", "%d, then %d, same token %t", first.status, again.status, first.text("id") == again.text("id"))
	other := card()
	other["card"].(m)["expiry"] = "2033-11"
	r, err := p.send(ctx, http.MethodPost, path, "setup", m{"payment_source": other})
	n.saw("vault.body", "%s", issues(r))
	return err
}

// invoices makes two drafts of one number.
func (p *paypalRun) invoices(ctx context.Context, n *notes) error {
	const path = "/v2/invoicing/invoices"
	draft := func() (answer, error) {
		r, err := p.send(ctx, http.MethodPost, path, "invoice", m{
			"detail": m{"currency_code": "USD", "invoice_number": p.key("1")},
			"items":  []m{{"name": "Test", "quantity": "1", "unit_amount": dollars("2.00")}},
		})
		if id := r.text("id"); id != "" {
			p.drafts = append(p.drafts, id)
		}
		return r, err
	}
	first, err := draft()
	if err != nil {
		return err
	}
	if err := first.want("make a draft of an invoice", issues(first), http.StatusCreated); err != nil {
		return err
	}
	again, err := draft()
	n.saw("invoice.number", "%s", issues(again))
	return err
}
