package ietf_test

import (
	"context"
	"net/http"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	"github.com/seed-6b5e302b/samekey/providers/ietf"
	"github.com/seed-6b5e302b/samekey/recordstore"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// A service of one's own that takes Idempotency-Key and keeps it for a day.
func Example() {
	create := ietf.Operation("order.create", http.MethodPost, "/v1/orders", 24*time.Hour)
	connect := func(ledger recordstore.Store, token string) (*outbound.Client, error) {
		return outbound.New(ietf.New(httpadapter.Config{
			Provider: "orders", Account: "eu", Mode: "live", BaseURL: "https://orders.example.com",
			Operations: []rs.Operation{create},
			Authorize:  httpadapter.Credential("Authorization", "Bearer ", token),
		}, nil), ledger, nil)
	}
	order := func(ctx context.Context, orders *outbound.Client, cmd outbound.Command) (*outbound.Reply, error) {
		return orders.Do(ctx, httpadapter.JSONCall(create, cmd, nil, map[string]any{"sku": "chair", "quantity": 4}))
	}
	_, _ = connect, order
}
