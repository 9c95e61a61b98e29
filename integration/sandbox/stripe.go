package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/stripe/stripe-go/v86"
)

type stripeSettings struct {
	base      string
	transport http.RoundTripper
	key       string
	connected string        // an account below the key's own; "" for none
	patience  time.Duration // with events and searches, which lag
}

// stripeRun is the state of a run against Stripe.
type stripeRun struct {
	*api
	stripeSettings

	customers, destinations []string // to be deleted
	spare                   string   // a customer that other scenarios use
	payment                 string   // a payment intent that succeeded
}

func stripeSuite(cfg stripeSettings) suite {
	s := &stripeRun{api: newAPI(cfg.base, cfg.transport, cfg.key), stripeSettings: cfg}
	connected := ""
	if cfg.connected == "" {
		connected = "set STRIPE_CONNECTED_ACCOUNT to the id of a connected test account"
	}
	return suite{
		provider: "stripe", api: s.api, prepare: s.prepare, clean: s.clean,
		scenarios: []scenario{
			{facts: stripeReplayFacts, run: s.replays},
			{facts: stripeMismatchFacts, run: s.mismatches},
			{facts: stripeLimitFacts, run: s.limits},
			{facts: stripeFailureFacts, run: s.failures},
			{facts: stripeFlightFacts, run: s.inFlight},
			{facts: stripeRefundFacts, run: s.refunds},
			{facts: stripeReadFacts, run: s.reads},
			{facts: stripeAccountFacts, needs: connected, run: s.accounts},
			{facts: stripeV2Facts, run: s.v2},
		},
	}
}

// post is a keyed write of API v1. "" sends no key.
func (s *stripeRun) post(ctx context.Context, path, key string, pairs ...string) (answer, error) {
	form := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	header := s.headers(key)
	header["Content-Type"] = "application/x-www-form-urlencoded"
	return s.do(ctx, call{http.MethodPost, path, header, []byte(form.Encode())})
}

func (s *stripeRun) get(ctx context.Context, path string) (answer, error) {
	return s.do(ctx, call{http.MethodGet, path, s.headers(""), nil})
}

func (s *stripeRun) headers(key string) map[string]string {
	h := map[string]string{"Authorization": "Bearer " + s.stripeSettings.key, "Stripe-Version": stripe.APIVersion}
	if key != "" {
		h["Idempotency-Key"] = s.api.key(key)
	}
	return h
}

// told is what an answer of Stripe's says, in codes.
func told(r answer) string {
	kind, code := r.text("error", "type"), r.text("error", "code")
	switch {
	case kind == "" && code == "":
		return fmt.Sprint(r.status)
	case code == "":
		return fmt.Sprintf("%d %s", r.status, word(kind))
	case kind == "":
		return fmt.Sprintf("%d %s", r.status, word(code))
	}
	return fmt.Sprintf("%d %s %s", r.status, word(kind), word(code))
}

func replayed(r answer) bool { return r.header.Get("Idempotent-Replayed") == "true" }

// kept says whether an answer was stored with the key.
func kept(r answer) string {
	if replayed(r) {
		return "replayed"
	}
	return "executed"
}

// customer makes a customer that clean deletes.
func (s *stripeRun) customer(ctx context.Context, key string, pairs ...string) (answer, error) {
	pairs = append([]string{"description", s.api.run}, pairs...)
	r, err := s.post(ctx, "/v1/customers", key, pairs...)
	if id := r.text("id"); id != "" && !replayed(r) {
		s.customers = append(s.customers, id)
	}
	return r, err
}

func (s *stripeRun) prepare(ctx context.Context) error {
	r, err := s.customer(ctx, "spare", "metadata[samekey_sandbox]", s.api.run)
	if err != nil {
		return err
	}
	s.spare = r.text("id")
	return r.want("make a customer", told(r), http.StatusOK)
}

// clean deletes the customers and event destinations. Payments stay: Stripe
// deletes none.
func (s *stripeRun) clean(ctx context.Context) {
	for _, id := range s.customers {
		_, _ = s.do(ctx, call{http.MethodDelete, "/v1/customers/" + id, s.headers(""), nil})
	}
	for _, id := range s.destinations {
		_, _ = s.do(ctx, call{http.MethodDelete, "/v2/core/event_destinations/" + id, s.headers(""), nil})
	}
}

// replays shows what a first answer and its replay look like.
func (s *stripeRun) replays(ctx context.Context, n *notes) error {
	first, err := s.customer(ctx, "replay", "metadata[a]", "1")
	if err != nil {
		return err
	}
	if err := first.want("make a customer", told(first), http.StatusOK); err != nil {
		return err
	}
	h := first.header
	equal := h.Get("Request-Id") != "" && h.Get("Request-Id") == h.Get("Original-Request")
	n.saw("first", "key echoed %t, Original-Request equal %t, replay header %t", h.Get("Idempotency-Key") == s.api.key("replay"), equal, replayed(first))
	n.saw("should_retry", "%s", word(orAbsent(h.Get("Stripe-Should-Retry"))))
	again, err := s.customer(ctx, "replay", "metadata[a]", "1")
	if err != nil {
		return err
	}
	n.saw("replay", "%d %s, same body %t, Original-Request of the first %t, new Request-Id %t", again.status, kept(again),
		string(again.body) == string(first.body), again.header.Get("Original-Request") == h.Get("Request-Id"), again.header.Get("Request-Id") != h.Get("Request-Id"))
	header := s.headers("replay")
	header["Stripe-Version"] = "2024-06-20"
	header["Content-Type"] = "application/x-www-form-urlencoded"
	older, err := s.do(ctx, call{http.MethodPost, "/v1/customers", header, []byte(url.Values{"description": {s.api.run}, "metadata[a]": {"1"}}.Encode())})
	if err != nil {
		return err
	}
	n.saw("version", "%s, %s", told(older), kept(older))
	more, err := s.post(ctx, "/v1/customers/"+first.text("id"), "metadata", "metadata[b]", "2")
	if err != nil {
		return err
	}
	n.saw("metadata", "a=%s b=%s", word(more.text("metadata", "a")), word(more.text("metadata", "b")))
	gone, err := s.do(ctx, call{http.MethodDelete, "/v1/customers/" + first.text("id"), s.headers("replay"), nil})
	if err != nil {
		return err
	}
	n.saw("delete", "%s, deleted %v", told(gone), gone.at("deleted"))
	return nil
}

func orAbsent(s string) string {
	if s == "" {
		return "absent"
	}
	return s
}

// mismatches uses a key for something else.
func (s *stripeRun) mismatches(ctx context.Context, n *notes) error {
	for _, x := range []struct {
		id, path string
		pairs    []string
	}{
		{"parameters", "/v1/customers", []string{"description", "other", "metadata[samekey_sandbox]", s.api.run}},
		{"metadata_added", "/v1/customers", []string{"description", s.api.run, "metadata[samekey_sandbox]", s.api.run, "metadata[more]", "1"}},
		{"path", "/v1/customers/" + s.spare, []string{"description", s.api.run, "metadata[samekey_sandbox]", s.api.run}},
	} {
		r, err := s.post(ctx, x.path, "spare", x.pairs...)
		if err != nil {
			return err
		}
		if id := r.text("id"); id != "" && id != s.spare {
			s.customers = append(s.customers, id)
		}
		n.saw(x.id, "%s", told(r))
	}
	return nil
}

// limits uses keys of the greatest length and of one more, and asks without a
// credential.
func (s *stripeRun) limits(ctx context.Context, n *notes) error {
	long := strings.Repeat("k", 255-len(s.api.key("")))
	fits, err := s.customer(ctx, long)
	if err != nil {
		return err
	}
	over, err := s.customer(ctx, long+"k")
	if err != nil {
		return err
	}
	n.saw("length", "255: %d, 256: %d", fits.status, over.status)
	header := s.headers("spare")
	header["Authorization"] = "Bearer samekey-is-no-key"
	r, err := s.do(ctx, call{http.MethodPost, "/v1/customers", header, nil})
	if err != nil {
		return err
	}
	n.saw("credential", "%s, %s", told(r), kept(r))
	return nil
}
