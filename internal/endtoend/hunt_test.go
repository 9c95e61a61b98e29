package endtoend

import (
	"context"
	"encoding/json"
	"fmt"
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
	"github.com/seed-6b5e302b/samekey/providers/stripe"
	"github.com/seed-6b5e302b/samekey/recordstore"
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
