package pagerduty_test

import (
	"context"
	"time"

	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/pagerduty"
)

// A consumer of alerts. The same alert, delivered twice or to two workers, opens one
// incident.
func Example() {
	consume := func(ctx context.Context, incidents *outbound.Client, alertID string, raised time.Time) error {
		id, err := keyderive.Event{Consumer: "on-call", ID: alertID, Version: 1, OccurredAt: raised}.CommandID()
		if err != nil {
			return err
		}
		_, err = incidents.Do(ctx, pagerduty.AlertTrigger(outbound.Command{ID: id}, pagerduty.Alert{
			Summary: "disk full", Source: "db1", Severity: "critical",
		}))
		return err
	}
	_ = consume
}
