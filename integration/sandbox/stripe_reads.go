package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
)

// reads looks for the spare customer in a list, in the events and by a search.
func (s *stripeRun) reads(ctx context.Context, n *notes) error {
	list, err := s.get(ctx, "/v1/customers?limit=20")
	if err != nil {
		return err
	}
	n.saw("list", "%s", found(list, func(o answer) bool { return o.text("id") == s.spare }))
	seen := false
	err = eventually(ctx, s.patience, func() (bool, error) {
		events, err := s.get(ctx, "/v1/events?type=customer.created&limit=50")
		for _, e := range events.list("data") {
			o := answer{json: e}
			if o.text("data", "object", "id") == s.spare {
				seen = true
				n.saw("event", "the key %t", o.text("request", "idempotency_key") == s.api.key("spare"))
			}
		}
		return seen, err
	})
	if err != nil {
		return err
	}
	if !seen {
		return fmt.Errorf("no event told of it in %v", s.patience)
	}
	query := url.QueryEscape("metadata['samekey_sandbox']:'" + s.api.run + "'")
	searched := false
	err = eventually(ctx, s.patience, func() (bool, error) {
		r, err := s.get(ctx, "/v1/customers/search?query="+query)
		searched = found(r, func(o answer) bool { return o.text("id") == s.spare }) == "found"
		return searched, err
	})
	if err != nil {
		return err
	}
	if !searched {
		return fmt.Errorf("the search did not find it in %v: its lag can be an hour", s.patience)
	}
	n.saw("search", "found")
	return nil
}

// found says whether a list has an object.
func found(list answer, is func(answer) bool) string {
	for _, o := range list.list("data") {
		if is(answer{json: o}) {
			return "found"
		}
	}
	return "not found"
}

// accounts uses one key under two accounts.
func (s *stripeRun) accounts(ctx context.Context, n *notes) error {
	header := s.headers("spare")
	header["Stripe-Account"] = s.connected
	header["Content-Type"] = "application/x-www-form-urlencoded"
	body := url.Values{"description": {s.api.run}, "metadata[samekey_sandbox]": {s.api.run}}.Encode()
	r, err := s.do(ctx, call{http.MethodPost, "/v1/customers", header, []byte(body)})
	if err != nil {
		return err
	}
	if err := r.want("make a customer of the connected account", told(r), http.StatusOK); err != nil {
		return err
	}
	n.saw("account", "%s", kept(r))
	if !replayed(r) {
		header := s.headers("")
		header["Stripe-Account"] = s.connected
		_, err = s.do(ctx, call{http.MethodDelete, "/v1/customers/" + r.text("id"), header, nil})
	}
	return err
}

// send is a write of API v2.
func (s *stripeRun) send(ctx context.Context, path, key string, body map[string]any) (answer, error) {
	encoded, err := json.Marshal(body)
	if err != nil {
		return answer{}, err
	}
	header := s.headers(key)
	header["Content-Type"] = "application/json"
	r, err := s.do(ctx, call{http.MethodPost, path, header, encoded})
	if id := r.text("id"); id != "" && r.text("object") == "v2.core.event_destination" {
		s.destinations = append(s.destinations, id)
	}
	return r, err
}

// v2 makes, changes and deletes an event destination, which is never called.
func (s *stripeRun) v2(ctx context.Context, n *notes) error {
	const path = "/v2/core/event_destinations"
	body := func(description string) map[string]any {
		return map[string]any{
			"name": s.api.run, "description": description, "type": "webhook_endpoint", "event_payload": "thin",
			"enabled_events":   []string{"v1.billing.meter.error_report_triggered"},
			"webhook_endpoint": map[string]any{"url": "https://example.com/samekey"},
		}
	}
	broken := body("first")
	broken["type"] = "samekey"
	failed, err := s.send(ctx, path, "v2", broken)
	if err != nil {
		return err
	}
	if err := failed.want("ask API v2 for an event destination of no known type", told(failed), http.StatusBadRequest); err != nil {
		return err
	}
	made, err := s.send(ctx, path, "v2", body("first"))
	if err != nil {
		return err
	}
	n.saw("v2.failure", "%d, then %d", failed.status, made.status)
	if err := made.want("make an event destination", told(made), http.StatusOK, http.StatusCreated); err != nil {
		return err
	}
	id := made.text("id")
	changed, err := s.send(ctx, path+"/"+id, "v2-change", map[string]any{"description": "second"})
	if err != nil {
		return err
	}
	if err := changed.want("change the event destination", told(changed), http.StatusOK); err != nil {
		return err
	}
	again, err := s.send(ctx, path, "v2", body("first"))
	if err != nil {
		return err
	}
	n.saw("v2.resend", "%s, same object %t, description %s", told(again), again.text("id") == id, word(again.text("description")))
	n.saw("v2.header", "replay header %t", replayed(again))
	other, err := s.send(ctx, path, "v2", body("other"))
	if err != nil {
		return err
	}
	n.saw("v2.mismatch", "%s, same object %t", told(other), other.text("id") == id)
	return s.v2Rest(ctx, n, path+"/"+id)
}

// v2Rest asks without a version, and deletes twice under one key.
func (s *stripeRun) v2Rest(ctx context.Context, n *notes, path string) error {
	header := s.headers("")
	delete(header, "Stripe-Version")
	unversioned, err := s.do(ctx, call{http.MethodGet, path, header, nil})
	if err != nil {
		return err
	}
	n.saw("v2.version", "%d", unversioned.status)
	first, err := s.do(ctx, call{http.MethodDelete, path, s.headers("v2-delete"), nil})
	if err != nil {
		return err
	}
	if err := first.want("delete the event destination", told(first), http.StatusOK); err != nil {
		return err
	}
	again, err := s.do(ctx, call{http.MethodDelete, path, s.headers("v2-delete"), nil})
	if err != nil {
		return err
	}
	n.saw("v2.delete", "%d", again.status)
	gone, err := s.get(ctx, path)
	n.saw("v2.gone", "%d", gone.status)
	return err
}
