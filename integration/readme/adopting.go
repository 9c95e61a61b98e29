package readme

import (
	"context"
	"time"

	"github.com/stripe/stripe-go/v86"

	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/outbound"
)

// Name gives a row that is about to be written its command.
func Name(row *Row) {
	row.CommandID = outbound.NewCommandID() // a UUIDv7, stored before the first call
}

// Order is a row that has no place for a command's ID.
type Order struct {
	ID        string
	CreatedAt time.Time
}

// RefundOf names the refund of an order.
func RefundOf(order Order) (string, error) {
	id, err := keyderive.CommandID(order.CreatedAt, "refund", order.ID)
	return id, err
}

// Message is a message of a broker.
type Message struct {
	ID   string
	Time time.Time
}

// RefundFor names the refund that an event asks for.
func RefundFor(event Message) (string, error) {
	id, err := keyderive.Event{Consumer: "billing-refunds", ID: event.ID, OccurredAt: event.Time}.CommandID()
	return id, err
}

// KeyOnly sets the derived key under stripe-go alone, without a ledger.
func KeyOnly(row Row, params *stripe.RefundCreateParams) error {
	key, err := keyderive.Derive(keyderive.Input{
		Provider: "stripe", Account: "acct_1Nv0FG/live", Operation: "refund.create", CommandID: row.CommandID,
	})
	if err != nil {
		return err
	}
	params.SetIdempotencyKey(key.Raw())
	params.AddMetadata("samekey_command", key.Mark())
	return nil
}

// Outage is the switch for a ledger that is down, by a flag that people turn.
func Outage(flag func(ctx context.Context, name string) bool) *outbound.Options {
	return &outbound.Options{KeysOnly: func(ctx context.Context) bool { return flag(ctx, "ledger-outage") }}
}
