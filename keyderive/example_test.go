package keyderive_test

import (
	"fmt"
	"net/http"
	"time"

	"github.com/seed-6b5e302b/samekey/keyderive"
)

// Stable keys under the SDK that a service has today, with no ledger: the command
// ID comes from the service's own row, so every retry of every process sends the
// same key.
func ExampleDerive() {
	key, err := keyderive.Derive(keyderive.Input{
		Provider:  "stripe",
		Account:   "acct_1Nv0FG/live",
		Operation: "refund.create",
		CommandID: "01997a3c-5e00-7abc-8def-0123456789ab", // stored with the refund
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := http.NewRequest("POST", "https://api.stripe.com/v1/refunds", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	r.Header.Set("Idempotency-Key", key.Raw()) // or params.SetIdempotencyKey(key.Raw())

	fmt.Println(len(key.Raw()), "characters, logged as", key)
	// Output: 36 characters, logged as key:9023bd9b
}

// A secret keeps guessable command IDs from being confirmed by somebody who sees
// keys. It is chosen once for a ledger and never changed.
func ExampleNewSecret() {
	secret, err := keyderive.NewSecret([]byte("32 random bytes from a key store")) // not a text, as here
	if err != nil {
		fmt.Println(err)
		return
	}
	key, err := secret.Derive(keyderive.Input{
		Provider: "paypal", Account: "MERCHANT1/live", Operation: "order.capture", CommandID: "cap_1",
	})
	fmt.Println(key, err, secret)
	// Output: key:4b659569 <nil> secret:014b41763db7555f
}

// The same intent has the same ID in every process, made from stored facts.
func ExampleCommandID() {
	createdAt := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) // the order's, read from its row
	id, err := keyderive.CommandID(createdAt, "refund", "ord_1")
	fmt.Println(id, err)
	// Output: 01a229c0-5400-7517-9058-294c5c5fa970 <nil>
}

// A consumer of events: every delivery of the event gives the same ID, and
// another consumer of it another one.
func ExampleEvent_CommandID() {
	occurred := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	id, err := keyderive.Event{Consumer: "billing-refunds", ID: "evt_1", OccurredAt: occurred}.CommandID()
	fmt.Println(id, err)
	// Output: 01a229c0-5400-72ed-a304-7a2d47dc8950 <nil>
}

// One order, several sellers: one effect for each step.
func ExampleStep() {
	for _, seller := range []string{"seller-7", "seller-9"} {
		id, err := keyderive.Step("ord_1", seller)
		fmt.Println(id, err)
	}
	// Output:
	// ord_1/seller-7 <nil>
	// ord_1/seller-9 <nil>
}

// A provider's event carries the key: it leads to the ledger's row.
func ExampleParse() {
	key, err := keyderive.Parse("4f8398e6-9b04-85fa-a0d4-8efdb31b4e2a")
	fmt.Printf("day %d, hash %x, %v\n", key.Day(), key.Hash(), err)
	// Output: day 20355, hash 9023bd9b0d33ac8ecf1f4c001f49a8fd, <nil>
}
