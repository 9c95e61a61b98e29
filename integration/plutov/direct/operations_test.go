package direct_test

import (
	"net/http"
	"time"

	plutov "github.com/plutov/paypal/v4"

	fake "github.com/seed-6b5e302b/samekey/internal/fakeprovider/paypal"
)

// operation is one of the fake's as plutov/paypal calls it.
type operation struct {
	name string
	// ready puts in place what the call needs and returns its id; nil for nothing.
	ready func(*direct) string
	// call returns the id of what the answer is about, where it has one.
	call func(d *direct, id string) (string, error)
}

// without are the operations that plutov/paypal v4.17.0 has no method for. Its
// NewRequest and SendWithAuth call them all the same.
var without = map[string]string{
	"order.confirm_payment_source": "no method",
	"subscription.list":            "no method",
	"setup_token.create":           "no method: it knows the older /v1/vault only",
	"setup_token.get":              "no method: it knows the older /v1/vault only",
	"payment_token.create":         "no method: it knows the older /v1/vault only",
	"payment_token.list":           "no method: it knows the older /v1/vault only",
	"payment_token.get":            "no method: it knows the older /v1/vault only",
	"invoice.create":               "no method",
	"invoice.list":                 "no method",
	"invoice.send":                 "no method",
	"invoice.cancel":               "no method",
	"invoice.search":               "no method",
	"refund.get":                   "its GetRefund asks for /v2/payments/refund/{id}, a path that PayPal does not have",
	"user.get":                     "its GetUserInfo asks for the older /v1/identity/openidconnect/userinfo",
}

// unreachable are the operations that no client of the API calls.
var unreachable = map[string]string{
	"webhook.certificate": "a verifier of signatures fetches it, without a token",
}

func operations() []operation {
	all := append(orders(), payments()...)
	all = append(all, billing()...)
	return append(all, others()...)
}

func planted(object any) func(*direct) string {
	return func(d *direct) string { return d.seed(object) }
}

func euros(value string) *plutov.Money { return &plutov.Money{Currency: "EUR", Value: value} }

func units() []plutov.PurchaseUnitRequest {
	return []plutov.PurchaseUnitRequest{{Amount: &plutov.PurchaseUnitAmount{Currency: "EUR", Value: "12.50"}}}
}

func orders() []operation {
	order := fake.ApprovedOrder{Value: "12.50", Currency: "EUR"}
	return []operation{
		{"token", nil, func(d *direct, _ string) (string, error) {
			r, err := d.pp.GetAccessToken(d.Context())
			return r.Token, err
		}},
		{"order.create", nil, func(d *direct, _ string) (string, error) {
			r, err := d.pp.CreateOrderWithPaypalRequestID(d.Context(), plutov.OrderIntentCapture, units(), nil, nil, "id-1")
			return r.ID, err
		}},
		{"order.get", planted(order), func(d *direct, id string) (string, error) {
			r, err := d.pp.GetOrder(d.Context(), id)
			return r.ID, err
		}},
		{"order.patch", planted(order), func(d *direct, id string) (string, error) {
			return id, d.pp.UpdateOrder(d.Context(), id, "replace", "/purchase_units/@reference_id=='default'/amount",
				map[string]string{"currency_code": "EUR", "value": "13.00"})
		}},
		{"order.confirm_payment_source", freshOrder, func(d *direct, id string) (string, error) {
			return d.create("/v2/checkout/orders/"+id+"/confirm-payment-source", map[string]any{
				"payment_source": map[string]any{"paypal": map[string]any{"email_address": "buyer@example.com"}},
			})
		}},
		{"order.authorize", planted(fake.ApprovedOrder{Intent: "AUTHORIZE"}), func(d *direct, id string) (string, error) {
			r, err := d.pp.AuthorizeOrder(d.Context(), id, plutov.AuthorizeOrderRequest{})
			return r.ID, err
		}},
		{"order.capture", planted(order), func(d *direct, id string) (string, error) {
			r, err := d.pp.CaptureOrderWithPaypalRequestId(d.Context(), id, plutov.CaptureOrderRequest{}, "id-1", nil)
			return r.ID, err
		}},
	}
}

func freshOrder(d *direct) string {
	r, err := d.pp.CreateOrder(d.Context(), plutov.OrderIntentCapture, units(), nil, nil)
	if err != nil {
		d.Fatal(err)
	}
	return r.ID
}

func payments() []operation {
	authorization := fake.CreatedAuthorization{Value: "12.50", Currency: "EUR", Age: 4 * 24 * time.Hour}
	capture := fake.CompletedCapture{Value: "12.50", Currency: "EUR"}
	return []operation{
		{"authorization.get", planted(authorization), func(d *direct, id string) (string, error) {
			r, err := d.pp.GetAuthorization(d.Context(), id)
			return r.ID, err
		}},
		{"authorization.capture", planted(authorization), func(d *direct, id string) (string, error) {
			r, err := d.pp.CaptureAuthorizationWithPaypalRequestId(d.Context(), id, &plutov.PaymentCaptureRequest{Amount: euros("5.00")}, "id-1")
			return r.ID, err
		}},
		{"authorization.reauthorize", planted(authorization), func(d *direct, id string) (string, error) {
			r, err := d.pp.ReauthorizeAuthorization(d.Context(), id, &plutov.Amount{Currency: "EUR", Total: "12.50"})
			return r.ID, err
		}},
		{"authorization.void", planted(authorization), func(d *direct, id string) (string, error) {
			d.pp.SetReturnRepresentation() // without it a void is a 204, which the SDK reports as EOF
			r, err := d.pp.VoidAuthorization(d.Context(), id)
			return r.ID, err
		}},
		{"capture.get", planted(capture), func(d *direct, id string) (string, error) {
			r, err := d.pp.CapturedDetail(d.Context(), id)
			return r.ID, err
		}},
		{"capture.refund", planted(capture), func(d *direct, id string) (string, error) {
			r, err := d.pp.RefundCaptureWithPaypalRequestId(d.Context(), id, plutov.RefundCaptureRequest{Amount: euros("5.00")}, "id-1")
			return r.ID, err
		}},
		{"refund.get", refund, func(d *direct, id string) (string, error) {
			var r struct{ ID string }
			err := d.send(http.MethodGet, "/v2/payments/refunds/"+id, nil, &r)
			return r.ID, err
		}},
		{"payout.create", nil, func(d *direct, _ string) (string, error) {
			r, err := pay(d)
			if err != nil {
				return "", err
			}
			return r.BatchHeader.PayoutBatchID, nil
		}},
		{"payout.get", batch, func(d *direct, id string) (string, error) {
			r, err := d.pp.GetPayout(d.Context(), id)
			if err != nil {
				return "", err
			}
			return r.BatchHeader.PayoutBatchID, nil
		}},
		{"payout_item.get", batchItem, func(d *direct, id string) (string, error) {
			r, err := d.pp.GetPayoutItem(d.Context(), id)
			return r.PayoutItemID, err
		}},
		{"transaction.search", planted(capture), func(d *direct, _ string) (string, error) {
			d.fake.Advance(4 * time.Hour) // the search lags
			r, err := d.pp.ListTransactions(d.Context(), &plutov.TransactionSearchRequest{
				StartDate: d.fake.Now().Add(-24 * time.Hour), EndDate: d.fake.Now().Add(time.Hour),
			})
			if err != nil || len(r.TransactionDetails) == 0 {
				return "", err
			}
			return r.TransactionDetails[0].TransactionInfo.TransactionID, nil
		}},
	}
}

func refund(d *direct) string {
	capture := d.seed(fake.CompletedCapture{Value: "12.50", Currency: "EUR"})
	r, err := d.pp.RefundCapture(d.Context(), capture, plutov.RefundCaptureRequest{Amount: euros("5.00")})
	if err != nil {
		d.Fatal(err)
	}
	return r.ID
}

func pay(d *direct) (*plutov.PayoutResponse, error) {
	return d.pp.CreatePayout(d.Context(), plutov.Payout{
		SenderBatchHeader: &plutov.SenderBatchHeader{SenderBatchID: "batch-1", EmailSubject: "Your share"},
		Items:             []plutov.PayoutItem{{RecipientType: "EMAIL", Receiver: "seller@example.com", Amount: &plutov.AmountPayout{Currency: "EUR", Value: "9.00"}}},
	})
}

func batch(d *direct) string {
	r, err := pay(d)
	if err != nil {
		d.Fatal(err)
	}
	return r.BatchHeader.PayoutBatchID
}

func batchItem(d *direct) string {
	r, err := d.pp.GetPayout(d.Context(), batch(d))
	if err != nil || len(r.Items) != 1 {
		d.Fatalf("the batch has %+v and %v, want one item", r, err)
	}
	return r.Items[0].PayoutItemID
}

// others are invoices, the vault, webhooks and the user.
func others() []operation {
	invoice := map[string]any{
		"detail": map[string]any{"currency_code": "EUR"},
		"items":  []any{map[string]any{"name": "Box", "quantity": "1", "unit_amount": euros("9.00")}},
	}
	bill := func(d *direct) string { return d.made(d.create("/v2/invoicing/invoices", invoice)) }
	sent := func(d *direct) string {
		id := bill(d)
		d.made(id, d.send(http.MethodPost, "/v2/invoicing/invoices/"+id+"/send", map[string]any{}, nil))
		return id
	}
	return append(vault(), []operation{
		{"invoice.create", nil, func(d *direct, _ string) (string, error) { return d.create("/v2/invoicing/invoices", invoice) }},
		{"invoice.get", bill, func(d *direct, id string) (string, error) {
			r, err := d.pp.GetInvoiceDetails(d.Context(), id)
			return r.ID, err
		}},
		{"invoice.send", bill, func(d *direct, id string) (string, error) {
			return id, d.send(http.MethodPost, "/v2/invoicing/invoices/"+id+"/send", map[string]any{}, nil)
		}},
		{"invoice.cancel", sent, func(d *direct, id string) (string, error) {
			return id, d.send(http.MethodPost, "/v2/invoicing/invoices/"+id+"/cancel", map[string]any{}, nil)
		}},
		{"invoice.list", bill, func(d *direct, _ string) (string, error) {
			return d.only(http.MethodGet, "/v2/invoicing/invoices", nil, "items")
		}},
		{"invoice.search", bill, func(d *direct, _ string) (string, error) {
			return d.only(http.MethodPost, "/v2/invoicing/search-invoices", map[string]any{"status": []string{"DRAFT"}}, "items")
		}},
		{"invoice.next_number", nil, func(d *direct, _ string) (string, error) {
			r, err := d.pp.GenerateInvoiceNumber(d.Context())
			return r.InvoiceNumberValue, err
		}},
		{"user.get", nil, func(d *direct, _ string) (string, error) {
			var r plutov.UserInfo
			err := d.send(http.MethodGet, "/v1/identity/oauth2/userinfo?schema=paypalv1.1", nil, &r)
			return r.ID, err
		}},
		{"webhook.verify", nil, verify},
	}...)
}

func vault() []operation {
	card := map[string]any{"payment_source": map[string]any{"card": map[string]any{"number": "4111111111111111", "expiry": "2034-12"}}}
	token := func(setup string) any {
		return map[string]any{"payment_source": map[string]any{"token": map[string]any{"id": setup, "type": "SETUP_TOKEN"}}}
	}
	kept := func(d *direct) string {
		return d.made(d.create("/v3/vault/payment-tokens", token(d.seed(fake.ApprovedSetupToken{CustomerID: "customer-1"}))))
	}
	read := func(path string) func(d *direct, id string) (string, error) {
		return func(d *direct, id string) (string, error) {
			var got struct{ ID string }
			err := d.send(http.MethodGet, path+id, nil, &got)
			return got.ID, err
		}
	}
	return []operation{
		{"setup_token.create", nil, func(d *direct, _ string) (string, error) { return d.create("/v3/vault/setup-tokens", card) }},
		{"setup_token.get", planted(fake.ApprovedSetupToken{}), read("/v3/vault/setup-tokens/")},
		{"payment_token.create", planted(fake.ApprovedSetupToken{}), func(d *direct, id string) (string, error) {
			return d.create("/v3/vault/payment-tokens", token(id))
		}},
		{"payment_token.get", kept, read("/v3/vault/payment-tokens/")},
		{"payment_token.list", kept, func(d *direct, _ string) (string, error) {
			return d.only(http.MethodGet, "/v3/vault/payment-tokens?customer_id=customer-1", nil, "payment_tokens")
		}},
	}
}

// made returns the id of what was put in place.
func (d *direct) made(id string, err error) string {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
	return id
}

// only returns the id of the one object in a list.
func (d *direct) only(method, path string, body any, member string) (string, error) {
	list := map[string]any{}
	if err := d.send(method, path, body, &list); err != nil {
		return "", err
	}
	items, _ := list[member].([]any)
	if len(items) != 1 {
		d.Errorf("%s lists %v, want one object", path, list)
		return "", nil
	}
	item, _ := items[0].(map[string]any)
	id, _ := item["id"].(string)
	return id, nil
}
