package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

type paypalSettings struct {
	base       string
	transport  http.RoundTripper
	id, secret string
	// The credentials of another app of the same account; "" for none.
	otherID, otherSecret string
}

// paypalRun is the state of a run against PayPal.
type paypalRun struct {
	*api
	paypalSettings

	token   string
	order   string   // without a payer
	silent  int      // answers without a debug id
	drafts  []string // invoices to be deleted
	capture string   // of a card
}

func paypalSuite(cfg paypalSettings) suite {
	p := &paypalRun{api: newAPI(cfg.base, cfg.transport, cfg.secret, cfg.otherSecret, cfg.id, cfg.otherID), paypalSettings: cfg}
	other := ""
	if cfg.otherID == "" || cfg.otherSecret == "" {
		other = "set PAYPAL_OTHER_CLIENT_ID and PAYPAL_OTHER_CLIENT_SECRET to those of another sandbox app of the account"
	}
	return suite{
		provider: "paypal", api: p.api, prepare: p.prepare, clean: p.clean,
		scenarios: []scenario{
			{facts: paypalOrderFacts, run: p.orders},
			{facts: paypalLimitFacts, run: p.limits},
			{facts: paypalRefusalFacts, run: p.refusals},
			{facts: paypalFlightFacts, run: p.inFlight},
			{facts: paypalAppFacts, needs: other, run: p.apps},
			{facts: paypalCaptureFacts, run: p.captures},
			{facts: paypalAuthorizationFacts, run: p.authorizations},
			{facts: paypalPayoutFacts, run: p.payouts},
			{facts: paypalVaultFacts, run: p.vault},
			{facts: paypalInvoiceFacts, run: p.invoices},
			{facts: paypalAccountFacts, run: p.account},
		},
	}
}

// send makes a call with the run's token. "" sends no request id.
func (p *paypalRun) send(ctx context.Context, method, path, id string, body any) (answer, error) {
	return p.as(ctx, p.token, method, path, id, body)
}

func (p *paypalRun) as(ctx context.Context, token, method, path, id string, body any) (answer, error) {
	header := map[string]string{"Authorization": "Bearer " + token, "Prefer": "return=representation"}
	if id != "" {
		header["PayPal-Request-Id"] = p.key(id)
	}
	var encoded []byte
	if body != nil {
		var err error
		if encoded, err = json.Marshal(body); err != nil {
			return answer{}, err
		}
		header["Content-Type"] = "application/json"
	}
	r, err := p.do(ctx, call{method, path, header, encoded})
	if err == nil && r.header.Get("Paypal-Debug-Id") == "" {
		p.silent++
	}
	return r, err
}

func (p *paypalRun) login(ctx context.Context, id, secret string) (answer, error) {
	return p.do(ctx, call{http.MethodPost, "/v1/oauth2/token", map[string]string{
		"Authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte(id+":"+secret)),
		"Content-Type":  "application/x-www-form-urlencoded",
	}, []byte("grant_type=client_credentials")})
}

func (p *paypalRun) prepare(ctx context.Context) error {
	r, err := p.login(ctx, p.id, p.secret)
	if err != nil {
		return err
	}
	p.token = r.text("access_token")
	p.secrets = append(p.secrets, p.token)
	return r.want("get an access token", issues(r), http.StatusOK)
}

// issues is what an answer of PayPal's says, in names.
func issues(r answer) string {
	words := []string{fmt.Sprint(r.status)}
	for _, name := range []string{"name", "error"} {
		if s := r.text(name); s != "" {
			words = append(words, word(s))
		}
	}
	for _, d := range r.list("details") {
		if s := (answer{json: d}).text("issue"); s != "" {
			words = append(words, word(s))
		}
	}
	return strings.Join(words, " ")
}

type m = map[string]any

func dollars(value string) m { return m{"currency_code": "USD", "value": value} }

// card is a number of the card networks' for tests.
func card() m { return m{"card": m{"number": "4111111111111111", "expiry": "2034-12"}} }

func (p *paypalRun) orderOf(intent, value string) m {
	return m{"intent": intent, "purchase_units": []m{{"amount": dollars(value), "custom_id": p.run}}}
}

func (p *paypalRun) cardOrder(intent string) m {
	o := p.orderOf(intent, "3.00")
	o["payment_source"] = card()
	return o
}

const ordersPath = "/v2/checkout/orders"

// orders shows what an order's request id does. No payer ever approves these
// orders: they move no money, and PayPal forgets them.
func (p *paypalRun) orders(ctx context.Context, n *notes) error {
	first, err := p.send(ctx, http.MethodPost, ordersPath, "order", p.orderOf("CAPTURE", "2.00"))
	if err != nil {
		return err
	}
	p.order = first.text("id")
	if err := first.want("create an order", issues(first), http.StatusCreated, http.StatusOK); err != nil {
		return err
	}
	n.saw("order", "%d %s", first.status, word(first.text("status")))
	again, err := p.send(ctx, http.MethodPost, ordersPath, "order", p.orderOf("CAPTURE", "2.00"))
	if err != nil {
		return err
	}
	n.saw("order.replay", "%s, same order %t", issues(again), again.text("id") == p.order)
	other, err := p.send(ctx, http.MethodPost, ordersPath, "order", p.orderOf("CAPTURE", "2.50"))
	if err != nil {
		return err
	}
	n.saw("order.body", "%s, same order %t", issues(other), other.text("id") == p.order)
	one, err := p.send(ctx, http.MethodPost, ordersPath, "", p.orderOf("CAPTURE", "2.00"))
	if err != nil {
		return err
	}
	two, err := p.send(ctx, http.MethodPost, ordersPath, "", p.orderOf("CAPTURE", "2.00"))
	if err != nil {
		return err
	}
	n.saw("order.without", "%d %d, same order %t", one.status, two.status, one.text("id") == two.text("id"))
	// The id of the creation, in another type of call, is another id.
	capture, err := p.send(ctx, http.MethodPost, ordersPath+"/"+p.order+"/capture", "order", m{})
	if err != nil {
		return err
	}
	n.saw("order.type", "%s", issues(capture))
	read, err := p.send(ctx, http.MethodGet, ordersPath+"/"+p.order, "", nil)
	if err != nil {
		return err
	}
	n.saw("order.payee", "named %t", read.text("purchase_units", "0", "payee", "merchant_id") != "")
	missing, err := p.send(ctx, http.MethodGet, ordersPath+"/0AA00000AA000000A", "", nil)
	n.saw("order.missing", "%s", issues(missing))
	return err
}

// limits goes to and beyond the greatest lengths.
func (p *paypalRun) limits(ctx context.Context, n *notes) error {
	long := strings.Repeat("k", 108-len(p.key("")))
	fits, err := p.send(ctx, http.MethodPost, ordersPath, long, p.orderOf("CAPTURE", "2.00"))
	if err != nil {
		return err
	}
	over, err := p.send(ctx, http.MethodPost, ordersPath, long+"k", p.orderOf("CAPTURE", "2.00"))
	if err != nil {
		return err
	}
	n.saw("id.length", "108: %d, 109: %d", fits.status, over.status)
	var mark [2]int
	for i, length := range []int{127, 128} {
		o := m{"intent": "CAPTURE", "purchase_units": []m{{"amount": dollars("2.00"), "custom_id": strings.Repeat("c", length)}}}
		r, err := p.send(ctx, http.MethodPost, ordersPath, "", o)
		if err != nil {
			return err
		}
		mark[i] = r.status
	}
	n.saw("custom.length", "127: %d, 128: %d", mark[0], mark[1])
	source, err := p.send(ctx, http.MethodPost, ordersPath, "", p.cardOrder("CAPTURE"))
	if err != nil {
		return err
	}
	n.saw("id.required", "%s", issues(source))
	return nil
}

// refusals asks again for what was refused, with what was wrong put right.
func (p *paypalRun) refusals(ctx context.Context, n *notes) error {
	bad, err := p.send(ctx, http.MethodPost, ordersPath, "zero", p.orderOf("CAPTURE", "0.00"))
	if err != nil {
		return err
	}
	n.saw("zero", "%s", issues(bad))
	good, err := p.send(ctx, http.MethodPost, ordersPath, "zero", p.orderOf("CAPTURE", "2.00"))
	if err != nil {
		return err
	}
	if good.status < 300 {
		n.saw("zero.kept", "it runs again")
	} else {
		n.saw("zero.kept", "it is kept")
	}
	wrong, err := p.as(ctx, "samekey-is-no-token", http.MethodPost, ordersPath, "token", p.orderOf("CAPTURE", "2.00"))
	if err != nil {
		return err
	}
	n.saw("token", "%s", issues(wrong))
	client, err := p.login(ctx, p.id, "samekey-is-no-secret")
	n.saw("client", "%s", issues(client))
	return err
}

// inFlight sends one order several times at once.
func (p *paypalRun) inFlight(ctx context.Context, n *notes) error {
	header := map[string]string{"Authorization": "Bearer " + p.token, "Content-Type": "application/json", "PayPal-Request-Id": p.key("crowd")}
	body, err := json.Marshal(p.orderOf("CAPTURE", "2.00"))
	if err != nil {
		return err
	}
	answers, err := together(crowd, func() (answer, error) { return p.do(ctx, call{http.MethodPost, ordersPath, header, body}) })
	if err != nil {
		return err
	}
	ids, met := map[string]bool{}, ""
	for _, r := range answers {
		if id := r.text("id"); id != "" {
			ids[id] = true
		} else {
			met = issues(r)
		}
	}
	n.saw("one", "%d", len(ids))
	if met == "" {
		return errNoMeeting
	}
	n.saw("conflict", "%s", met)
	return nil
}

// apps uses one request id in two apps of one merchant.
func (p *paypalRun) apps(ctx context.Context, n *notes) error {
	r, err := p.login(ctx, p.otherID, p.otherSecret)
	if err != nil {
		return err
	}
	if err := r.want("get an access token of the other app", issues(r), http.StatusOK); err != nil {
		return err
	}
	token := r.text("access_token")
	p.secrets = append(p.secrets, token)
	made, err := p.as(ctx, token, http.MethodPost, ordersPath, "order", p.orderOf("CAPTURE", "2.00"))
	n.saw("apps", "same order %t", made.text("id") == p.order)
	return err
}

// account reads whose the credentials are.
func (p *paypalRun) account(ctx context.Context, n *notes) error {
	r, err := p.send(ctx, http.MethodGet, "/v1/identity/oauth2/userinfo?schema=paypalv1.1", "", nil)
	if err != nil {
		return err
	}
	if r.status == http.StatusOK {
		n.saw("payer_id", "named %t", r.text("payer_id") != "")
	}
	n.saw("debug_id", "%d answers without", p.silent)
	return r.want("read whose the credentials are", issues(r), http.StatusOK)
}

// clean deletes the drafts of invoices.
func (p *paypalRun) clean(ctx context.Context) {
	for _, id := range p.drafts {
		_, _ = p.send(ctx, http.MethodDelete, "/v2/invoicing/invoices/"+id, "", nil)
	}
}
