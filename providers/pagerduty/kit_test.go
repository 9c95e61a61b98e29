package pagerduty_test

import (
	"net/http"
	"testing"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/pagerduty"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

const routingKey = "R0123456789abcdef0123456789abcde"

func trigger(summary string) func(outbound.Command, string) outbound.Call {
	return func(cmd outbound.Command, _ string) outbound.Call {
		return pagerduty.AlertTrigger(cmd, pagerduty.Alert{Summary: summary, Source: "db1", Severity: "critical"})
	}
}

// fake merges events as PagerDuty's pages say. Its window stands for the time until
// an alert is resolved.
func fake() providertest.JSONProvider {
	return providertest.JSONProvider{
		Key: rs.JSON("/dedup_key"), KeyMax: 255, Latest: true,
		Credential: "User-Agent", // which every request has: credentials stand in the body
		ErrorBody: func(e providertest.JSONError) any {
			return map[string]any{"status": e.Code, "message": "no", "errors": []any{e.Code}}
		},
		Operations: []providertest.JSONOperation{
			{
				Name: "alert.trigger", Path: "/v2/enqueue", Status: http.StatusAccepted,
				Shape: func(o *providertest.JSONObject) any {
					return map[string]any{"status": "success", "message": "Event processed", "dedup_key": o.Key}
				},
				Handle: func(c *providertest.JSONCall) providertest.JSONAnswer {
					payload, _ := c.Body["payload"].(map[string]any)
					if c.Body["routing_key"] != routingKey || c.Body["event_action"] != "trigger" || payload["summary"] == "" {
						return c.Reject(http.StatusBadRequest, "invalid event")
					}
					return c.Create(nil)
				},
			},
			{
				Name: "incident.list", Path: "/incidents", Read: true,
				Handle: func(c *providertest.JSONCall) providertest.JSONAnswer {
					found := []any{}
					for _, o := range c.Objects() {
						if o.Key == c.Query.Get("incident_key") {
							found = append(found, map[string]any{"id": o.ID, "status": "triggered"})
						}
					}
					return c.Answer(map[string]any{"incidents": found})
				},
			},
		},
	}
}

func kit(token string) providertest.Kit {
	return providertest.Kit{
		New: func(_ testing.TB, baseURL string, rt http.RoundTripper) outbound.Adapter {
			return pagerduty.New(pagerduty.Config{Account: "PINTEGR", RoutingKey: routingKey, APIToken: token, BaseURL: baseURL, Transport: rt})
		},
		Provider: providertest.JSONDialect(fake()), Secrets: []string{routingKey},
		Samples: []providertest.Sample{{
			Call: trigger("disk full"), Other: trigger("disk very full"), Rejected: trigger(""), WeakLookup: token == "",
		}},
	}
}

func TestKit(t *testing.T) { providertest.Run(t, kit("token-of-the-rest-api")) }

func TestKitWithoutToken(t *testing.T) { providertest.Run(t, kit("")) }
