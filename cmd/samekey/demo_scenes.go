package main

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
	fakepaypal "github.com/seed-6b5e302b/samekey/internal/fakeprovider/paypal"
	fakestripe "github.com/seed-6b5e302b/samekey/internal/fakeprovider/stripe"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/paypal"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
)

func (d *demo) stripeScenes(ctx context.Context) error {
	s := d.sides[0]
	refund := func(cmd, charge string, amount int) outbound.Call {
		return stripe.RefundCreate(outbound.Command{ID: cmd}, url.Values{"charge": {charge}, "amount": {strconv.Itoa(amount)}})
	}
	charge, err := s.fake.Seed(fakestripe.Charge{Amount: 9000, Currency: "eur"})
	if err != nil {
		return err
	}
	plain := refund("refund-1", charge, 1000)
	d.show(ctx, s, "an ordinary refund", plain)
	if err := d.lostAnswer(ctx, s, refund("refund-2", charge, 1000)); err != nil {
		return err
	}
	d.show(ctx, s, "asked once more: the ledger answers", plain)
	d.show(ctx, s, "the same command with another amount", refund("refund-1", charge, 2000))
	d.show(ctx, s, "a card is declined", stripe.PaymentIntentCreate(outbound.Command{ID: "payment-1"}, url.Values{
		"amount": {"5000"}, "currency": {"eur"}, "confirm": {"true"}, "payment_method": {"pm_card_chargeDeclined"},
	}))
	if err := d.race(ctx, s, refund("refund-3", charge, 1000)); err != nil {
		return err
	}
	if err := d.killed(ctx, s, refund("refund-4", charge, 1000), charge); err != nil {
		return err
	}
	d.show(ctx, s, "a customer is created", stripe.CustomerCreate(outbound.Command{ID: "customer-1"}, url.Values{"description": {"demo"}}))
	return nil
}

func (d *demo) paypalScenes(ctx context.Context) error {
	s := d.sides[1]
	orders := make([]string, 4)
	for i := range orders {
		var err error
		if orders[i], err = s.fake.Seed(fakepaypal.ApprovedOrder{Value: "12.50", Currency: "EUR"}); err != nil {
			return err
		}
	}
	capture := func(cmd, order string) outbound.Call {
		return paypal.OrderCapture(outbound.Command{ID: cmd}, order, nil)
	}
	reply, err := d.call(ctx, s, "an ordinary capture", capture("capture-1", orders[0]))
	if err != nil {
		return err
	}
	if err := d.lostAnswer(ctx, s, capture("capture-2", orders[1])); err != nil {
		return err
	}
	d.show(ctx, s, "asked once more: the ledger answers", capture("capture-1", orders[0]))
	refund := func(value string) outbound.Call {
		return paypal.CaptureRefund(outbound.Command{ID: "refund-1"}, reply.ExternalRef,
			paypal.RefundRequest{Amount: paypal.Money{Currency: "EUR", Value: value}})
	}
	d.show(ctx, s, "a partial refund", refund("2.50"))
	d.show(ctx, s, "the same command with another amount", refund("5.00"))
	if err := d.decline(ctx, s); err != nil {
		return err
	}
	if err := d.race(ctx, s, capture("capture-3", orders[2])); err != nil {
		return err
	}
	return d.killed(ctx, s, capture("capture-4", orders[3]), orders[3])
}

// decline captures an order whose instrument is declined.
func (d *demo) decline(ctx context.Context, s *side) error {
	order, err := s.fake.Seed(fakepaypal.ApprovedOrder{Value: "12.50", Currency: "EUR", Outcome: "INSTRUMENT_DECLINED"})
	if err != nil {
		return err
	}
	d.show(ctx, s, "the payer's card is declined", paypal.OrderCapture(outbound.Command{ID: "capture-declined"}, order, nil))
	return nil
}

// lostAnswer lets the provider perform a request and lose its answer: the same
// key goes out again.
func (d *demo) lostAnswer(ctx context.Context, s *side, c outbound.Call) error {
	if err := s.fake.Inject(fakeprovider.Fault{Kind: fakeprovider.DropAfterApply, Operation: c.Operation}); err != nil {
		return err
	}
	d.show(ctx, s, "the answer is lost, the same key is sent again", c)
	return nil
}

// race sends one command twice at once: the second sender is blocked by the
// ledger before the wire.
func (d *demo) race(ctx context.Context, s *side, c outbound.Call) error {
	arrived := len(s.fake.Requests(c.Operation))
	if err := s.fake.Inject(fakeprovider.Fault{Kind: fakeprovider.SlowApply, Operation: c.Operation}); err != nil {
		return err
	}
	type result struct {
		reply *outbound.Reply
		err   error
	}
	effects := s.fake.Effects(c.Operation)
	first := make(chan result, 1)
	go func() {
		reply, err := s.client.Do(ctx, c)
		first <- result{reply, err}
	}()
	if err := s.fake.Await(ctx, c.Operation, func(now fakeprovider.Snapshot) bool { return now.Held == 1 }); err != nil {
		return err
	}
	inside := len(s.fake.Requests(c.Operation))
	reply, err := s.client.Do(ctx, c)
	d.add(line{
		Provider: s.name, Operation: c.Operation, Command: c.Command.ID, What: "a second sender while the first is on its way",
		Deliveries: len(s.fake.Requests(c.Operation)) - inside,
	}, reply, err)
	s.fake.Release()
	r := <-first
	d.add(line{
		Provider: s.name, Operation: c.Operation, Command: c.Command.ID, What: "the first sender",
		Deliveries: len(s.fake.Requests(c.Operation)) - arrived, Effects: s.fake.Effects(c.Operation) - effects,
	}, r.reply, r.err)
	return nil
}

// killed lets a worker process die between delivery and settling. Its lease
// ends, and this process finishes the command.
func (d *demo) killed(ctx context.Context, s *side, c outbound.Call, target string) error {
	effects := s.fake.Effects(c.Operation)
	arrived := len(s.fake.Requests(c.Operation))
	err := s.fake.Inject(fakeprovider.Fault{Kind: fakeprovider.Hang, Operation: c.Operation, Applied: true})
	if err != nil {
		return err
	}
	worker, err := startWorker(ctx, workerOrder{Provider: s.name, URL: s.server.URL, Ledger: d.path, Command: c.Command.ID, Target: target})
	if err != nil {
		return err
	}
	wait, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	err = s.fake.Await(wait, c.Operation, func(now fakeprovider.Snapshot) bool { return now.Effects > effects })
	if killErr := worker.kill(); err == nil {
		err = killErr
	}
	s.fake.Release()
	if err != nil {
		return fmt.Errorf("the worker process: %w", err)
	}
	d.add(line{
		Provider: s.name, Operation: c.Operation, Command: c.Command.ID, What: "a worker process dies by SIGKILL after delivery",
		Deliveries: len(s.fake.Requests(c.Operation)) - arrived, Effects: s.fake.Effects(c.Operation) - effects,
	}, nil, errKilled)
	c.Wait = 10 * time.Second
	d.show(ctx, s, "its lease ends, another process finishes", c)
	return nil
}
