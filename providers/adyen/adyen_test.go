package adyen_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	"github.com/seed-6b5e302b/samekey/providers/adyen"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// What Adyen made of a payment, by its words.
func TestJudge(t *testing.T) {
	a := adyen.New(adyen.Config{Account: "ShopECOM", Test: true})
	row, _ := rs.Find(adyen.Operations(), "payment.create")
	for _, c := range []struct {
		status int
		body   string
		want   outbound.Verdict
	}{
		{200, `{"pspReference":"P1","resultCode":"Authorised"}`, outbound.Verdict{Effect: outbound.EffectApplied, Outcome: outbound.Done, ExternalRef: "P1", ObjectStatus: "Authorised"}},
		{200, `{"pspReference":"P1","resultCode":"PartiallyAuthorised"}`, outbound.Verdict{Effect: outbound.EffectApplied, Outcome: outbound.Partial, ExternalRef: "P1", ObjectStatus: "PartiallyAuthorised"}},
		{200, `{"resultCode":"RedirectShopper"}`, outbound.Verdict{Effect: outbound.EffectApplied, Outcome: outbound.Pending, ObjectStatus: "RedirectShopper"}},
		{200, `{"pspReference":"P1","resultCode":"Cancelled"}`, outbound.Verdict{Effect: outbound.EffectNone, Code: outbound.ErrRefused, ObjectStatus: "Cancelled"}},
		{200, `{"pspReference":"P1","resultCode":"Error","refusalReasonCode":4}`, outbound.Verdict{Look: true, ObjectStatus: "Error", ProviderCode: "4"}},
		{200, `{}`, outbound.Verdict{Again: true}},
		{422, `{"errorCode":"704"}`, outbound.Verdict{Again: true, ProviderCode: "704"}},
		{422, `{"errorCode":"999","message":"request already processed or in progress"}`, outbound.Verdict{Again: true, ProviderCode: "999"}},
		{422, `{"errorCode":"137","message":"Invalid amount specified"}`, outbound.Verdict{Effect: outbound.EffectNone, Code: outbound.ErrRejected, ProviderCode: "137"}},
		{422, `{}`, outbound.Verdict{Again: true}},
		{403, `{"errorCode":"010"}`, outbound.Verdict{Effect: outbound.EffectNone, Code: outbound.ErrRejected, ProviderCode: "010"}},
		{500, `{"errorCode":"000 with a message"}`, outbound.Verdict{Again: true}},
	} {
		got := a.Codec().Judge(&httpadapter.Exchange{Operation: row, Status: c.status, Header: http.Header{}, Body: []byte(c.body)})
		if got != c.want {
			t.Errorf("%d %s: %+v, want %+v", c.status, c.body, got, c.want)
		}
	}
}

// A live adapter without the merchant's own host could only reach another one's.
func TestLiveNeedsBaseURL(t *testing.T) {
	_, err := adyen.New(adyen.Config{Account: "ShopECOM", APIKey: apiKey}).Profile()
	if err == nil || !strings.Contains(err.Error(), "BaseURL is required in live mode") {
		t.Errorf("the error is %v", err)
	}
}
