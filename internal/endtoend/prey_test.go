package endtoend

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
	fakepaypal "github.com/seed-6b5e302b/samekey/internal/fakeprovider/paypal"
	fakestripe "github.com/seed-6b5e302b/samekey/internal/fakeprovider/stripe"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	"github.com/seed-6b5e302b/samekey/providers/paypal"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
	"github.com/seed-6b5e302b/samekey/replaysemantics"
)

// marked is a call whose body holds the marker.
func (p *prey) marked(c outbound.Command) (outbound.Call, error) {
	if p.name == "stripe" {
		charge, err := p.fake.Seed(fakestripe.Charge{Amount: 5000, Currency: "eur"})
		return stripe.RefundCreate(c, url.Values{"charge": {charge}, "amount": {"7"}, "metadata[note]": {bodyMarker}}), err
	}
	capture, err := p.fake.Seed(fakepaypal.CompletedCapture{Value: "50.00"})
	return paypal.CaptureRefund(c, capture, paypal.RefundRequest{Amount: paypal.Money{Currency: "USD", Value: "1.00"}, NoteToPayer: bodyMarker}), err
}

// twice makes a call, and again, as a caller would who was told that nobody knows.
func (p *prey) twice(call outbound.Call) {
	p.call(call)
	p.call(call)
}

// faults meets every kind of fault, once on its own and once stored or applied.
func (p *prey) faults() error {
	for _, kind := range append(stormKinds(), providertest.Fault{Kind: providertest.Status500, Stored: true}) {
		if kind.Delay > time.Second {
			continue
		}
		for _, times := range []int{1, 3} {
			f := fakeprovider.Fault{
				Kind: fakeprovider.Kind(kind.Kind), Times: times, Delay: kind.Delay, Size: kind.Size,
				Applied: kind.Applied, Stored: kind.Stored, Running: kind.Running,
			}
			if err := p.fake.Inject(f); err != nil {
				f.Stored = false // PayPal stores no failure
				if err = p.fake.Inject(f); err != nil {
					return err
				}
			}
			call, err := p.marked(p.next("fault-" + string(f.Kind)))
			if err != nil {
				return err
			}
			p.twice(call)
			p.fake.ClearFaults()
		}
	}
	return nil
}

// refusals are declines, conflicts, duplicates and what the provider does not
// take.
func (p *prey) refusals() error {
	call, err := p.marked(p.next("conflict"))
	if err != nil {
		return err
	}
	p.call(call)
	other := call
	other.Message.Body = []byte(strings.ReplaceAll(string(call.Message.Body), bodyMarker, bodyMarker+"-changed"))
	p.call(other)
	for _, c := range []string{"", "a\x00b", strings.Repeat("x", 300)} {
		bad := call
		bad.Command = cmd(c)
		p.call(bad)
	}
	if p.name == "stripe" {
		declined := pay("x", declinedCard)
		declined.Command = p.next("declined")
		declined.Message.Body = append(declined.Message.Body, "&metadata[note]="+bodyMarker...)
		p.twice(declined)
		p.twice(stripe.RefundCreate(p.next("wrong"), url.Values{"charge": {bodyMarker}, "amount": {"x"}}))
		p.twice(stripe.MeterEventCreate(p.next("meter"), url.Values{"event_name": {"calls"}, "payload[value]": {bodyMarker}}))
		p.twice(stripe.V2AccountCreate(p.next("v2"), map[string]any{"display_name": bodyMarker}))
		return nil
	}
	order, err := p.fake.Seed(fakepaypal.ApprovedOrder{Outcome: "DECLINED"})
	if err != nil {
		return err
	}
	p.twice(paypal.OrderCapture(p.next("declined"), order, nil))
	p.twice(paypal.OrderCapture(p.next("wrong"), bodyMarker, map[string]any{"note": bodyMarker}))
	if err := p.fake.Inject(fakeprovider.Fault{Kind: fakeprovider.DropAfterApply, Operation: "payout.create"}); err != nil {
		return err
	}
	paid := payout("x")
	paid.Command = p.next("payout")
	p.twice(paid)
	p.twice(paypal.PayoutCreate(p.next("wrong"), map[string]any{"sender_batch_header": bodyMarker}))
	return nil
}

// cards are requests with a card number, answered, declined, lost and refused.
func (p *prey) cards() error {
	for _, kind := range []fakeprovider.Kind{"", fakeprovider.DropAfterApply, fakeprovider.HTML502, fakeprovider.Unauthorized, fakeprovider.Truncate} {
		if kind != "" {
			if err := p.fake.Inject(fakeprovider.Fault{Kind: kind, Times: 2}); err != nil {
				return err
			}
		}
		card, c := map[string]any{"number": cardNumber, "expiry": "2031-01", "security_code": codeMarker}, p.next("card")
		if p.name == "stripe" {
			form := url.Values{
				"amount": {"700"}, "currency": {"eur"}, "confirm": {"true"}, "return_url": {"https://shop.example"},
				"payment_method_data[type]": {"card"}, "payment_method_data[card][number]": {cardNumber}, "payment_method_data[card][cvc]": {codeMarker},
			}
			p.twice(stripe.PaymentIntentCreate(c, form))
			form.Set("amount", "701")
			p.call(stripe.PaymentIntentCreate(c, form))
		} else {
			p.twice(paypal.SetupTokenCreate(c, map[string]any{"payment_source": map[string]any{"card": card}}))
			p.call(paypal.SetupTokenCreate(c, map[string]any{"payment_source": map[string]any{"card": card}, "customer": map[string]any{"id": "c1"}}))
		}
		p.fake.ClearFaults()
	}
	return nil
}

// echoes meets a provider that repeats the whole request in its answers: in
// messages, in codes and ids, and in what is no HTTP at all.
func (p *prey) echoes() error {
	saved := *p
	defer func() { p.client, p.caller, p.url = saved.client, saved.caller, saved.url }()
	for _, answer := range echoAnswers(p.name) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		server := &http.Server{Handler: echo(answer), ReadHeaderTimeout: 5 * time.Second}
		go func() { _ = server.Serve(l) }() // ends with Close
		p.url = "http://" + l.Addr().String()
		if err := p.connect(adapterOf, &http.Transport{}); err != nil {
			return err
		}
		call, err := saved.marked(p.next("echo"))
		if err != nil {
			return err
		}
		p.twice(call)
		if err := server.Close(); err != nil {
			return err
		}
	}
	return nil
}

func echoAnswers(provider string) []string {
	if provider == "stripe" {
		return []string{
			`400 {"error":{"type":"invalid_request_error","code":"%s"}}`,
			`402 {"error":{"type":"%s"}}`,
			`200 {"id":"%s","object":"refund","status":"%[1]s"}`,
			`200 {"id":"%[2]s","object":"refund","status":"%[3]s"}`,
			`400 {"error":{"type":"invalid_request_error","code":"parameter_unknown","message":"%s"}}`,
			`402 {"error":{"type":"card_error","code":"card_declined","decline_code":"%s","message":"%[1]s"}}`,
			`500 {"error":{"type":"api_error","message":"%s"}}`,
			`200 {"id":"re_1","object":"refund","status":"succeeded","reason":"%s"}`,
			`200 no JSON: %s`,
			`0 %s`,
		}
	}
	return []string{
		`400 {"name":"%s","details":[]}`,
		`422 {"name":"UNPROCESSABLE_ENTITY","details":[{"issue":"%s"}]}`,
		`201 {"id":"%s","status":"%[1]s"}`,
		`201 {"id":"%[2]s","status":"%[3]s"}`,
		`400 {"name":"INVALID_REQUEST","message":"%s","details":[{"issue":"a sentence about %[1]s","description":"%[1]s"}]}`,
		`422 {"name":"UNPROCESSABLE_ENTITY","details":[{"issue":"INSTRUMENT_DECLINED","description":"%s"}]}`,
		`500 {"name":"INTERNAL_SERVER_ERROR","message":"%s"}`,
		`201 {"id":"R1","status":"COMPLETED","note_to_payer":"%s"}`,
		`200 no JSON: %s`,
		`0 %s`,
	}
}

// echo answers tokens as PayPal does and everything else with what it was sent.
// The status 0 is an answer that is no HTTP.
func echo(answer string) http.HandlerFunc {
	status, text, _ := strings.Cut(answer, " ")
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20)) // what came of it is enough
		if strings.HasSuffix(r.URL.Path, "/token") {
			_, _ = io.WriteString(w, `{"access_token":"`+tokenMarker+`","expires_in":3600,"token_type":"Bearer"}`)
			return
		}
		all := strings.NewReplacer(`"`, "", `\`, "", "\n", " ").Replace(fmt.Sprint(r.Header, string(body)))
		if status == "0" {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_, _ = io.WriteString(conn, strings.ReplaceAll(text, "%s", all)+"\r\n\r\n")
				_ = conn.Close()
			}
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Echo", all)
		w.Header().Set("Request-Id", all)
		w.Header().Set("Paypal-Debug-Id", all)
		var n int
		_, _ = fmt.Sscan(status, &n)
		w.WriteHeader(n)
		key := keyOf(sent{header: r.Header})
		_, credential, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		_, _ = io.WriteString(w, strings.NewReplacer("%s", all, "%[1]s", all, "%[2]s", key, "%[3]s", credential).Replace(text))
	}
}

const tokenMarker = "A21AA-token-marker-90c4"

// panicking is a codec that dies in one of its methods with a body in its hands.
type panicking struct{ at string }

func (c panicking) Judge(x *httpadapter.Exchange) outbound.Verdict {
	if c.at == "judge" {
		panic(fmt.Sprintf("cannot read %s of %s", x.Body, bodyMarker))
	}
	return outbound.Verdict{Look: true}
}

func (c panicking) Find(_ context.Context, _ httpadapter.Get, l *outbound.Lookup) (outbound.Finding, error) {
	panic(fmt.Sprintf("cannot find %s of %s with %s", l.Message.Body, bodyMarker, l.Key.Raw()))
}

func (c panicking) Check(_ replaysemantics.Operation, m outbound.Message) error {
	if c.at == "check" {
		panic(fmt.Sprintf("cannot check %s of %s", m.Body, bodyMarker))
	}
	return nil
}

func (p *prey) dyingCodecs() error {
	saved := *p
	defer func() { p.client, p.caller = saved.client, saved.caller }()
	rows := stripe.Operations()
	if p.name == "paypal" {
		rows = paypal.Operations()
	}
	for _, at := range []string{"judge", "find", "check"} {
		err := p.connect(func(provider, base string, rt http.RoundTripper) *httpadapter.Adapter {
			return httpadapter.New(panicking{at}, httpadapter.Config{
				Provider: provider, Account: "acct_p", Mode: "test", BaseURL: base, Operations: rows, Transport: rt, Untouched: []string{"POST /v1/oauth2/token"},
				Authorize: func(_ context.Context, _ string, _ []outbound.Field, r *http.Request) error {
					r.Header.Set("Authorization", "Bearer "+stripeSecret)
					return nil
				},
			})
		}, &http.Transport{})
		if err != nil {
			return err
		}
		call, err := p.marked(p.next("panic-" + at))
		if err != nil {
			return err
		}
		p.twice(call)
	}
	return nil
}

// unreachable asks a port where nobody is, with the marker in the query too.
func (p *prey) unreachable() error {
	saved := *p
	defer func() { p.client, p.caller, p.url = saved.client, saved.caller, saved.url }()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	p.url = "http://" + l.Addr().String()
	if err := l.Close(); err != nil {
		return err
	}
	if err := p.connect(adapterOf, &http.Transport{}); err != nil {
		return err
	}
	p.caller.token = tokenMarker
	call, err := saved.marked(p.next("unreachable"))
	if err != nil {
		return err
	}
	call.Message.Target += "?note=" + bodyMarker
	p.twice(call)
	return nil
}

// badCredentials are refused by the provider, or before.
func (p *prey) badCredentials() error {
	for _, authorization := range []string{"Bearer sk_live_" + credentialMarker, "Bearer " + credentialMarker, "Basic " + credentialMarker} {
		call, err := p.marked(p.next("credential"))
		if err != nil {
			return err
		}
		call.Credentials = []outbound.Field{{Name: "Authorization", Value: authorization}}
		_, err = p.client.Do(context.Background(), call)
		fmt.Fprintf(&p.errors, "%v\n%+v\n%#v\n", err, err, err)
	}
	_, err := outbound.New(stripe.New(stripe.Config{Account: "acct_1", SecretKey: "sk_test_" + credentialMarker}), p.ledger, nil)
	fmt.Fprintf(&p.errors, "%v\n", err)
	return nil
}

const credentialMarker = "credential-marker-2be8"

// deadLedger loses the ledger between the claim and the settlement.
func (p *prey) deadLedger() error {
	w := &wire{base: http.DefaultTransport}
	p.wires = append(p.wires, w)
	client, err := outbound.New(adapterOf(p.name, p.url, w), dying{p.ledger}, &outbound.Options{Bodies: sealed(), Telemetry: p.seen.telemetry()})
	if err != nil {
		return err
	}
	call, err := p.marked(p.next("dying"))
	if err != nil {
		return err
	}
	reply, err := client.Do(context.Background(), call)
	if err != nil {
		return fmt.Errorf("an applied effect that the ledger was not told of: %w", err)
	}
	fmt.Fprintf(&p.errors, "%v\n%+v\n", reply.Unrecorded, reply.Unrecorded)
	return nil
}
