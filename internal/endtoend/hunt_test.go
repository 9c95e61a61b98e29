package endtoend

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
	fakepaypal "github.com/seed-6b5e302b/samekey/internal/fakeprovider/paypal"
	fakestripe "github.com/seed-6b5e302b/samekey/internal/fakeprovider/stripe"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/dropin"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	"github.com/seed-6b5e302b/samekey/providers/paypal"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/replaysemantics"
)

const (
	bodyMarker = "body-marker-7f3a91"
	codeMarker = "cvc-marker-55d2"
	cardNumber = "4000056655665556"
)

// secrets is what must be found nowhere.
type secrets struct {
	Keys        []string // raw, as they went over the wire
	Credentials []string
}

// hunter runs calls of every kind in a process of its own, and keeps what that
// process says of them.
type hunter struct {
	job     job
	seen    *seen
	ledger  recordstore.Store
	wires   []*wire
	errors  strings.Builder
	panics  strings.Builder
	serial  int
	through door
}

// hunt makes the calls of a hunt and writes its report.
func (j job) hunt() error {
	ledger, _, err := j.ledger() // left open: its files are looked at as they are
	if err != nil {
		return err
	}
	h := &hunter{job: j, seen: openSeen(), ledger: ledger}
	for _, h.through = range []door{native, sdk} {
		for _, provider := range []string{"stripe", "paypal"} {
			if err := h.provider(provider); err != nil {
				return err
			}
		}
	}
	return h.report()
}

func (h *hunter) provider(provider string) error {
	dialect := fakestripe.New(fakestripe.Config{})
	if provider == "paypal" {
		dialect = fakepaypal.New(fakepaypal.Config{ClientID: paypalClient, Secret: paypalSecret})
	}
	fake := fakeprovider.New(dialect, nil)
	server, err := fakeprovider.Listen(fake)
	if err != nil {
		return err
	}
	defer server.Close()
	p := &prey{hunter: h, name: provider, fake: fake, url: server.URL}
	if err := p.connect(adapterOf, server.Transport()); err != nil {
		return err
	}
	for _, step := range []func() error{p.faults, p.refusals, p.cards, p.echoes, p.dyingCodecs, p.unreachable, p.badCredentials, p.deadLedger} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// prey is one client before one provider.
type prey struct {
	*hunter
	name   string
	fake   *fakeprovider.Fake
	url    string
	client *outbound.Client
	caller *caller
}

func (p *prey) connect(adapter func(provider, base string, rt http.RoundTripper) *httpadapter.Adapter, rt http.RoundTripper) error {
	w := &wire{base: rt}
	p.wires = append(p.wires, w)
	opts := quick()
	opts.Telemetry, opts.MaxBody = p.seen.telemetry(), 64<<10
	if p.job.Plant {
		opts.Bodies = outbound.PlainBodies()
	}
	a := adapter(p.name, p.url, w)
	var err error
	if p.client, err = outbound.New(a, p.ledger, opts); err != nil {
		return err
	}
	transport, err := dropin.New(p.client, nil)
	if err != nil {
		return err
	}
	fmt.Fprintf(&p.errors, "%+v %+v %+v\n", p.client, a, transport)
	p.caller = &caller{provider: p.name, base: p.url, http: transport.Client()}
	return nil
}

// call makes a call and keeps all that its failure says, in every form.
func (p *prey) call(call outbound.Call) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	defer func() {
		if v := recover(); v != nil {
			fmt.Fprintf(&p.panics, "%v\n%#v\n", v, v)
		}
	}()
	var err error
	if p.through == native {
		_, err = p.client.Do(ctx, call)
	} else {
		var a answered
		if a, err = p.caller.send(ctx, call); err == nil {
			err = a.err
		}
	}
	if err != nil {
		fmt.Fprintf(&p.errors, "%v\n%+v\n%#v\n%q\n", err, err, err, err)
	}
}

func (p *prey) next(what string) outbound.Command {
	p.serial++
	return cmd(fmt.Sprintf("%s-%d", what, p.serial))
}

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

// echoes meets a provider that repeats the whole request in its answers: in an
// error's message, in what should be an answer, and in what is no HTTP at all.
func (p *prey) echoes() error {
	real := *p
	defer func() { p.client, p.caller, p.url = real.client, real.caller, real.url }()
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
		call, err := real.marked(p.next("echo"))
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
			`400 {"error":{"type":"invalid_request_error","code":"parameter_unknown","message":"%s"}}`,
			`402 {"error":{"type":"card_error","code":"card_declined","decline_code":"%s","message":"%[1]s"}}`,
			`500 {"error":{"type":"api_error","message":"%s"}}`,
			`200 {"id":"re_1","object":"refund","status":"succeeded","reason":"%s"}`,
			`200 no JSON: %s`,
			`0 %s`,
		}
	}
	return []string{
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
				_, _ = fmt.Fprintf(conn, text+"\r\n\r\n", all)
				_ = conn.Close()
			}
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Echo", all)
		var n int
		_, _ = fmt.Sscan(status, &n)
		w.WriteHeader(n)
		_, _ = fmt.Fprintf(w, text, all)
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
	real := *p
	defer func() { p.client, p.caller = real.client, real.caller }()
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
	real := *p
	defer func() { p.client, p.caller, p.url = real.client, real.caller, real.url }()
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
	call, err := real.marked(p.next("unreachable"))
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
	opts := quick()
	opts.Telemetry = p.seen.telemetry()
	w := &wire{base: http.DefaultTransport}
	p.wires = append(p.wires, w)
	client, err := outbound.New(adapterOf(p.name, p.url, w), dying{p.ledger}, func() *outbound.Options { opts.Bodies = sealed(); return opts }())
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

// report writes what was said, one file a channel, and what must not be in it.
func (h *hunter) report() error {
	found := secrets{Credentials: []string{stripeSecret, paypalSecret, tokenMarker, credentialMarker}}
	for _, w := range h.wires {
		found.Keys = append(found.Keys, w.rawKeys()...)
		found.Credentials = append(found.Credentials, w.credentials()...)
	}
	if h.job.Plant {
		if err := h.plant(found.Keys[0]); err != nil {
			return err
		}
	}
	said, err := h.seen.all()
	if err != nil {
		return err
	}
	said["errors"], said["panics"] = h.errors.String(), h.panics.String()
	for name, text := range said {
		if err := os.WriteFile(filepath.Join(h.job.Folder, name+".txt"), []byte(text), 0o600); err != nil {
			return err
		}
	}
	list, err := json.Marshal(found)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(h.job.Folder, "secrets.json"), list, 0o600)
}

// plant leaks a key into every channel and into the ledger, so that the hunt
// proves that it would find one.
func (h *hunter) plant(key string) error {
	h.seen.logger().Info("planted", "key", key)
	_, s := h.seen.tracer.Tracer("planted").Start(context.Background(), "planted")
	s.SetAttributes(attribute.String("key", key))
	s.End()
	counter, err := h.seen.meter.Meter("planted").Int64Counter("planted")
	if err != nil {
		return err
	}
	counter.Add(context.Background(), 1, metric.WithAttributes(attribute.String("key", key)))
	fmt.Fprintln(&h.errors, key)
	fmt.Fprintln(&h.panics, key)
	fmt.Fprintln(os.Stderr, key)
	fmt.Fprintln(os.Stdout, key)
	client, err := outbound.New(adapterOf("stripe", "http://127.0.0.1:1", nil), h.ledger, &outbound.Options{Bodies: outbound.PlainBodies(), Retry: outbound.Retry{Attempts: 1}})
	if err != nil {
		return err
	}
	for _, id := range []string{key, cardNumber} {
		if _, err := client.Do(context.Background(), stripe.RefundCreate(cmd(id), url.Values{"charge": {bodyMarker}})); err == nil {
			return fmt.Errorf("nobody listens, and the call succeeded")
		}
	}
	return nil
}

// credentials are those that went over the wire.
func (w *wire) credentials() (list []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.sent {
		if _, value, ok := strings.Cut(s.header.Get("Authorization"), " "); ok {
			list = append(list, value)
		}
	}
	return list
}
