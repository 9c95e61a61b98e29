// Package pagerduty adapts PagerDuty's Events API v2 to package outbound, for services
// that must open one alert for one event, however often the event is delivered.
//
// The command comes from the event, as keyderive.Event makes it, and so does the
// dedup_key: whichever worker sends it, and over whichever way the event came,
// PagerDuty sees the same one. It merges triggers while an alert with their
// dedup_key is open. Once that was resolved the same trigger opens another: a
// trigger is resent inside one call only, and afterwards looked up.
//
// To acknowledge or resolve is idempotent by itself and needs no ledger. The
// dedup_key that it takes is that of the trigger: Client.Key(command,
// "alert.trigger", "").
package pagerduty

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// Config is what an adapter needs to know. Account and RoutingKey are required.
type Config struct {
	// Account names the integration that RoutingKey belongs to, as by its id. It is
	// part of every key. PagerDuty merges the events of one routing key only.
	Account    string
	RoutingKey string // The integration key. It is stored nowhere.

	// APIToken reads incidents over the REST API, which is how a lost trigger is found.
	// Defaults to none: then a person decides.
	APIToken string

	EU        bool              // The account is in PagerDuty's European region. Defaults to no.
	BaseURL   string            // Of both APIs. Defaults to PagerDuty's.
	Transport http.RoundTripper // Defaults to httpadapter.DefaultTransport.
}

// New returns an adapter. What is wrong with cfg is an error of outbound.New.
func New(cfg Config) *httpadapter.Adapter {
	region := ""
	if cfg.EU {
		region = "eu."
	}
	incidents := cmp.Or(cfg.BaseURL, "https://api."+region+"pagerduty.com") + "/incidents"
	var wrong error
	if cfg.RoutingKey == "" {
		wrong = errors.New("pagerduty.Config: RoutingKey is required")
	}
	return httpadapter.New(codec{incidents: incidents, reads: cfg.APIToken != ""}, httpadapter.Config{
		Provider: "pagerduty", Account: cfg.Account, Mode: "live", Transport: cfg.Transport,
		BaseURL: cmp.Or(cfg.BaseURL, "https://events."+region+"pagerduty.com"), Hosts: []string{"api." + region + "pagerduty.com"},
		Operations: Operations(), SettingsErr: wrong,
		BodyCredential: &httpadapter.BodyCredential{
			Place: rs.JSON("/routing_key"),
			Value: func(context.Context, string) (string, error) { return cfg.RoutingKey, nil },
		},
		Authorize: func(_ context.Context, _ string, _ []outbound.Field, r *http.Request) error {
			if r.Method == http.MethodGet {
				r.Header.Set("Authorization", "Token token="+cfg.APIToken)
				r.Header.Set("Accept", "application/vnd.pagerduty+json;version=2")
			}
			return nil
		},
	})
}

// Alert is the payload of a trigger. Summary, Source and Severity are required.
type Alert struct {
	Summary   string `json:"summary"`             // At most 1,024 characters.
	Source    string `json:"source"`              // What has the problem, as a host's name.
	Severity  string `json:"severity"`            // "critical", "error", "warning" or "info".
	Timestamp string `json:"timestamp,omitempty"` // ISO 8601; of the event, never of the call.
	Component string `json:"component,omitempty"`
	Group     string `json:"group,omitempty"`
	Class     string `json:"class,omitempty"`
	Details   any    `json:"custom_details,omitempty"`
}

// AlertTrigger opens an alert. Applied means that PagerDuty has accepted the event.
func AlertTrigger(cmd outbound.Command, a Alert) outbound.Call {
	return httpadapter.JSONCall(alertTrigger, cmd, nil, struct {
		Action  string `json:"event_action"`
		Payload Alert  `json:"payload"`
	}{"trigger", a})
}

type codec struct {
	incidents string // where incidents are read
	reads     bool   // there is a token for it
}

// Judge says what one answer teaches, taken alone. The dedup_key of an answer is the
// key, and no reference.
func (codec) Judge(x *httpadapter.Exchange) outbound.Verdict {
	var a struct{ Status string }
	if err := json.Unmarshal(x.Body, &a); err == nil && x.Status == http.StatusAccepted && a.Status == "success" {
		return outbound.Verdict{Effect: outbound.EffectApplied}
	}
	return httpadapter.ByStatus(x.Status)
}

// Find looks for the incident whose alert has the key. One that is not there proves
// nothing: events are worked on later, and rules may drop or hide them.
func (c codec) Find(ctx context.Context, get httpadapter.Get, l *outbound.Lookup) (outbound.Finding, error) {
	if !c.reads || l.Key.IsZero() {
		return outbound.Finding{}, nil
	}
	x, err := get(ctx, c.incidents, url.Values{"incident_key": {l.Key.Raw()}, "date_range": {"all"}, "limit": {"1"}})
	if err != nil {
		return outbound.Finding{}, err
	}
	var list struct {
		Incidents []struct{ ID, Status httpadapter.JSONWord }
	}
	if err := json.Unmarshal(x.Body, &list); err != nil || x.Status != http.StatusOK {
		return outbound.Finding{}, fmt.Errorf("pagerduty: the look-up was answered with status %d", x.Status)
	}
	if len(list.Incidents) == 0 {
		return outbound.Finding{}, nil
	}
	found := list.Incidents[0]
	return outbound.Finding{Effect: outbound.EffectApplied, ExternalRef: string(found.ID), ObjectStatus: string(found.Status)}, nil
}
