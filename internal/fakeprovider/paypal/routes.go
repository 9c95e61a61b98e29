package paypal

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// keying says where the provider finds the key of a call.
type keying int

const (
	keyNone    keying = iota // the call takes no request id
	keyHeader                // PayPal-Request-Id
	keyBatchID               // sender_batch_id in the body
)

// bodyKind says what body a call takes.
type bodyKind int

const (
	noBody bodyKind = iota
	objectBody
	arrayBody
)

// How long PayPal keeps request ids, by API. Orders has a setting.
const (
	vaultWindow    = 3 * time.Hour
	billingWindow  = 72 * time.Hour
	payoutsWindow  = 30 * 24 * time.Hour
	paymentsWindow = 45 * 24 * time.Hour
)

// The longest request ids. Where PayPal names no limit, the one of Payments v2
// stands.
const (
	ordersKeyMax   = 108
	payoutsKeyMax  = 1000
	paymentsKeyMax = 10000
)

// route is one endpoint.
type route struct {
	method string
	path   string // "{id}" stands for any one segment
	op     string
	write  bool
	do     func(*exec) (reply, *failure)
	view   func(x *exec, id string) object // what it shows of an object
	body   bodyKind

	status int // of a success
	replay int // of a replay; 0 where there is no key

	key      keying
	keyMax   int
	window   time.Duration
	compares bool // another body under a known key is refused

	// outcomes are the statuses that PayPal-Mock-Response can give to what the
	// call makes.
	outcomes []string

	segments []string
}

// keyed makes a route take request ids.
func (r route) keyed(k keying, limit int, window time.Duration, replay int) route {
	r.key, r.keyMax, r.window, r.replay = k, limit, window, replay
	return r
}

func (r route) comparing() route { r.compares = true; return r }

func (r route) ending(outcomes ...string) route { r.outcomes = outcomes; return r }

func read(path, op string, do func(*exec) (reply, *failure), view func(*exec, string) object) route {
	return route{method: http.MethodGet, path: path, op: op, do: do, view: view, status: http.StatusOK}
}

func post(path, op string, status int, do func(*exec) (reply, *failure), view func(*exec, string) object) route {
	return route{method: http.MethodPost, path: path, op: op, write: true, body: objectBody, status: status, do: do, view: view}
}

func routes(cfg Config) []route {
	all := append(paymentRoutes(cfg), otherRoutes()...)
	for i := range all {
		all[i].segments = segments(all[i].path)
	}
	return all
}

// paymentRoutes are OAuth, Orders v2 and Payments v2.
func paymentRoutes(cfg Config) []route {
	orders := func(r route) route { return r.keyed(keyHeader, ordersKeyMax, cfg.OrderWindow, http.StatusOK) }
	payments := func(r route, replay int) route { return r.keyed(keyHeader, paymentsKeyMax, paymentsWindow, replay) }
	patch := post("/v2/checkout/orders/{id}", "order.patch", http.StatusNoContent, patchOrder, nil)
	patch.method, patch.body = http.MethodPatch, arrayBody
	token := post("/v1/oauth2/token", "token", http.StatusOK, issueToken, nil)
	token.write = false
	return []route{
		token,

		orders(post("/v2/checkout/orders", "order.create", 201, createOrder, viewOrder)).ending("DECLINED", "PENDING", "FAILED"),
		read("/v2/checkout/orders/{id}", "order.get", getOrder, viewOrder),
		patch,
		post("/v2/checkout/orders/{id}/confirm-payment-source", "order.confirm_payment_source", 200, confirmPaymentSource, viewOrder),
		orders(post("/v2/checkout/orders/{id}/authorize", "order.authorize", 201, authorizeOrder, viewOrder)).ending("DENIED", "PENDING"),
		orders(post("/v2/checkout/orders/{id}/capture", "order.capture", 201, captureOrder, viewOrder)).ending("DECLINED", "PENDING", "FAILED"),

		read("/v2/payments/authorizations/{id}", "authorization.get", getAuthorization, viewAuthorization),
		payments(post("/v2/payments/authorizations/{id}/capture", "authorization.capture", 201, captureAuthorization, viewCapture), 201).
			ending("DECLINED", "PENDING", "FAILED"),
		payments(post("/v2/payments/authorizations/{id}/reauthorize", "authorization.reauthorize", 201, reauthorize, viewAuthorization), 201).
			ending("DENIED", "PENDING"),
		payments(post("/v2/payments/authorizations/{id}/void", "authorization.void", 204, voidAuthorization, viewAuthorization), 204),
		read("/v2/payments/captures/{id}", "capture.get", getCapture, viewCapture),
		payments(post("/v2/payments/captures/{id}/refund", "capture.refund", 201, refundCapture, viewRefund), 200).
			ending("CANCELLED", "FAILED", "PENDING"),
		read("/v2/payments/refunds/{id}", "refund.get", getRefund, viewRefund),
	}
}

// otherRoutes are Payouts, Subscriptions, Vault, Invoicing and Transaction
// Search.
func otherRoutes() []route {
	billing := func(r route) route {
		return r.keyed(keyHeader, paymentsKeyMax, billingWindow, http.StatusCreated).comparing()
	}
	vault := func(r route) route {
		return r.keyed(keyHeader, paymentsKeyMax, vaultWindow, http.StatusOK).comparing()
	}
	search := post("/v2/invoicing/search-invoices", "invoice.search", http.StatusOK, searchInvoices, nil)
	number := post("/v2/invoicing/generate-next-invoice-number", "invoice.next_number", http.StatusOK, nextInvoiceNumber, nil)
	verify := post("/v1/notifications/verify-webhook-signature", "webhook.verify", http.StatusOK, verifyWebhook, nil)
	search.write, number.write, verify.write = false, false, false
	return []route{
		post("/v1/payments/payouts", "payout.create", 201, createPayout, viewBatchHeader).
			keyed(keyBatchID, payoutsKeyMax, payoutsWindow, 400).ending("DENIED"),
		read("/v1/payments/payouts/{id}", "payout.get", getPayout, viewBatch),
		read("/v1/payments/payouts-item/{id}", "payout_item.get", getPayoutItem, viewBatchItem),

		billing(post("/v1/catalogs/products", "product.create", 201, createProduct, viewProduct)),
		read("/v1/catalogs/products", "product.list", listProducts, nil),
		read("/v1/catalogs/products/{id}", "product.get", getProduct, viewProduct),
		billing(post("/v1/billing/plans", "plan.create", 201, createPlan, viewPlan)),
		read("/v1/billing/plans", "plan.list", listPlans, nil),
		read("/v1/billing/plans/{id}", "plan.get", getPlan, viewPlan),
		billing(post("/v1/billing/subscriptions", "subscription.create", 201, createSubscription, viewSubscription)),
		read("/v1/billing/subscriptions", "subscription.list", listSubscriptions, nil),
		read("/v1/billing/subscriptions/{id}", "subscription.get", getSubscription, viewSubscription),
		post("/v1/billing/subscriptions/{id}/activate", "subscription.activate", 204, activateSubscription, nil),
		post("/v1/billing/subscriptions/{id}/suspend", "subscription.suspend", 204, suspendSubscription, nil),
		post("/v1/billing/subscriptions/{id}/cancel", "subscription.cancel", 204, cancelSubscription, nil),

		vault(post("/v3/vault/setup-tokens", "setup_token.create", 201, createSetupToken, viewSetupToken)),
		read("/v3/vault/setup-tokens/{id}", "setup_token.get", getSetupToken, viewSetupToken),
		vault(post("/v3/vault/payment-tokens", "payment_token.create", 201, createPaymentToken, viewPaymentToken)),
		read("/v3/vault/payment-tokens", "payment_token.list", listPaymentTokens, nil),
		read("/v3/vault/payment-tokens/{id}", "payment_token.get", getPaymentToken, viewPaymentToken),

		post("/v2/invoicing/invoices", "invoice.create", 201, createInvoice, viewInvoice),
		read("/v2/invoicing/invoices", "invoice.list", listInvoices, nil),
		read("/v2/invoicing/invoices/{id}", "invoice.get", getInvoice, viewInvoice),
		post("/v2/invoicing/invoices/{id}/send", "invoice.send", 200, sendInvoice, nil),
		post("/v2/invoicing/invoices/{id}/cancel", "invoice.cancel", 204, cancelInvoice, nil),
		search,
		number,
		verify,

		read("/v1/identity/oauth2/userinfo", "user.get", userInfo, nil),
		read("/v1/reporting/transactions", "transaction.search", searchTransactions, nil),
	}
}

// find returns the route and the segments that its wildcards stand for.
func (d *dialect) find(method, path string) (*route, []string) {
	got := segments(path)
	for i := range d.routes {
		r := &d.routes[i]
		if r.method != method || len(r.segments) != len(got) {
			continue
		}
		if ids, ok := match(r.segments, got); ok {
			return r, ids
		}
	}
	return nil, nil
}

func match(want, got []string) (ids []string, ok bool) {
	for i, w := range want {
		switch {
		case w == "{id}" && got[i] != "":
			ids = append(ids, got[i])
		case w != got[i]:
			return nil, false
		}
	}
	return ids, true
}

// maxSegments bounds the work that a hostile path makes.
const maxSegments = 8

func segments(path string) []string {
	return strings.SplitN(strings.Trim(path, "/"), "/", maxSegments)
}

func itoa(n int) string { return strconv.Itoa(n) }
