package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
	"github.com/seed-6b5e302b/samekey/internal/fakeprovider/stripe"
	"github.com/seed-6b5e302b/samekey/outbound"
)

// fakeProvider measures the fake of Stripe that tests run against: how soon it
// answers, and how many writes under new keys it takes in a second.
func fakeProvider(ctx context.Context, b *bench) error {
	var fastest time.Duration
	for range 5 {
		took, err := b.startFake(ctx)
		if err != nil {
			return err
		}
		if fastest == 0 || took < fastest {
			fastest = took
		}
	}
	b.result.figure("fake_start", millis(fastest), "ms", "until the first answer over loopback, best of 5")
	server, err := fakeprovider.Listen(fakeprovider.New(stripe.New(stripe.Config{}), &fakeprovider.Options{MaxKeys: 1_000_000}))
	if err != nil {
		return err
	}
	defer server.Close()
	client := &http.Client{Transport: server.Transport()}
	during := *b
	during.rounds, during.window = 1, min(b.window, time.Second)
	_, err = during.compare(ctx, "fake", []int{1, 64}, calling("POST to the fake of Stripe", func(ctx context.Context) error {
		return intent(ctx, client, server.URL)
	}))
	return err
}

func (b *bench) startFake(ctx context.Context) (time.Duration, error) {
	start := time.Now()
	server, err := fakeprovider.Listen(fakeprovider.New(stripe.New(stripe.Config{}), nil))
	if err != nil {
		return 0, err
	}
	defer server.Close()
	err = intent(ctx, &http.Client{Transport: server.Transport()}, server.URL)
	return time.Since(start), err
}

// intent creates a PaymentIntent under a new key.
func intent(ctx context.Context, client *http.Client, base string) error {
	form := url.Values{"amount": {"1250"}, "currency": {"eur"}}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/v1/payment_intents", strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+secretKey)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Idempotency-Key", outbound.NewCommandID())
	if err := answered(client.Do(r)); err != nil {
		return fmt.Errorf("the fake of Stripe: %w", err)
	}
	return nil
}
