package paypal

import (
	"testing"

	"github.com/seed-6b5e302b/samekey/outbound"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// The id that leads to an object may be an event's: an object that shows another
// command's mark, or none where ours was sent, is not this command's.
func TestReferenceIsChecked(t *testing.T) {
	t.Parallel()
	unit := func(mark string) string {
		return `{"id":"5O190127TN364715T","status":"CREATED","purchase_units":[{"custom_id":"` + mark + `"}]}`
	}
	for name, c := range map[string]struct {
		op     rs.Operation
		ref    string
		holds  answers
		body   string
		effect outbound.Effect
	}{
		"refund, ours":                {captureRefund, "1JU08902781691411", answers{refundPath: ourRefund}, markedBody, outbound.EffectApplied},
		"refund, another's":           {captureRefund, "1JU08902781691411", answers{refundPath: theirRefund}, markedBody, outbound.EffectUnknown},
		"refund, unmarked":            {captureRefund, "1JU08902781691411", answers{refundPath: bareRefund}, markedBody, outbound.EffectUnknown},
		"refund, marked by caller":    {captureRefund, "1JU08902781691411", answers{refundPath: bareRefund}, `{"custom_id":"mine"}`, outbound.EffectApplied},
		"refund, request gone":        {captureRefund, "1JU08902781691411", answers{refundPath: theirRefund}, "", outbound.EffectUnknown},
		"refund, request gone, ours":  {captureRefund, "1JU08902781691411", answers{refundPath: ourRefund}, "", outbound.EffectApplied},
		"order, ours":                 {orderCreate, "5O190127TN364715T", answers{orderPath: unit(testMark)}, markedBody, outbound.EffectApplied},
		"order, another's":            {orderCreate, "5O190127TN364715T", answers{orderPath: unit(foreignMark)}, markedBody, outbound.EffectUnknown},
		"subscription, another's":     {subscriptionCreate, "I-BW452GLLEP1G", answers{subPath: `{"id":"I-BW452GLLEP1G","custom_id":"` + foreignMark + `"}`}, markedBody, outbound.EffectUnknown},
		"capture, its order's mark":   {authorizationCapture, "2GG279541U471931P", answers{"/v2/payments/captures/2GG279541U471931P": `{"id":"2GG279541U471931P","status":"COMPLETED","custom_id":"` + foreignMark + `"}`}, "{}", outbound.EffectApplied},
		"another object than it says": {captureRefund, "1JU08902781691411", answers{refundPath: `{"id":"2JU","custom_id":"` + testMark + `"}`}, markedBody, outbound.EffectUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, err := codec{}.Find(t.Context(), c.holds.get, lookup(t, c.op, "", all(known(c.ref), asked(c.body))))
			if err != nil || f.Effect != c.effect {
				t.Errorf("finding %+v, %v; want %v", f, err, c.effect)
			}
		})
	}
}
