package atmostonce_test

import (
	"context"
	"net/http"
	"net/url"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	"github.com/seed-6b5e302b/samekey/providers/atmostonce"
	"github.com/seed-6b5e302b/samekey/recordstore"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// Text messages over Twilio, which takes no key: a customer gets none twice.
func Example() {
	send := atmostonce.Operation("message.send", http.MethodPost, "/2010-04-01/Accounts/{sid}/Messages.json")
	connect := func(ledger recordstore.Store, sid, basic string) (*outbound.Client, error) {
		return outbound.New(atmostonce.New(httpadapter.Config{
			Provider: "twilio", Account: sid, Mode: "live", BaseURL: "https://api.twilio.com",
			Operations: []rs.Operation{send},
			Authorize:  httpadapter.Credential("Authorization", "Basic ", basic),
		}, nil), ledger, nil)
	}
	tell := func(ctx context.Context, messages *outbound.Client, cmd outbound.Command, sid, to string) error {
		_, err := messages.Do(ctx, httpadapter.FormCall(send, cmd, []string{sid}, url.Values{"To": {to}, "Body": {"Your order is on its way."}}))
		return err
	}
	_, _ = connect, tell
}
