package stripe

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
)

// apiVersion is the version that events are worded in.
const apiVersion = "2026-06-24.dahlia"

// eventObject is an event as GET /v1/events and webhooks show it.
func eventObject(e fakeprovider.Event, live bool) object {
	o := object{
		"id": e.ID, "object": "event", "api_version": apiVersion, "created": e.At.Unix(),
		"data": object{"object": e.Object}, "livemode": live, "pending_webhooks": int64(0), "type": e.Type,
		"request": object{"id": e.RequestID, "idempotency_key": orNull(e.Key)},
	}
	if id, _, connected := strings.Cut(e.Account, "/"); connected {
		o["account"] = id
	}
	return o
}

// Register implements fakeprovider.Notifier.
func (d *dialect) Register(e *fakeprovider.Endpoint, random func(int, string) string) error {
	e.ID = "we_" + random(24, base62)
	if e.Secret == "" {
		e.Secret = "whsec_" + random(32, base62)
	}
	if !strings.HasPrefix(e.Secret, "whsec_") || len(e.Secret) > 255 {
		return errors.New("secret: write one as whsec_…, or none")
	}
	return nil
}

// Webhook implements fakeprovider.Notifier. Each delivery is signed anew, over
// its time and its body.
// Source: https://docs.stripe.com/webhooks#verify-manually.
func (d *dialect) Webhook(e fakeprovider.Event, to fakeprovider.Endpoint, at time.Time) (fakeprovider.Webhook, error) {
	live := e.Account == "live" || strings.HasSuffix(e.Account, "/live")
	body := encode(eventObject(e, live))
	stamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(to.Secret))
	mac.Write([]byte(stamp + "."))
	mac.Write(body)
	return fakeprovider.Webhook{Body: body, Header: http.Header{
		"Content-Type":     {"application/json; charset=utf-8"},
		"User-Agent":       {"Stripe/1.0 (+https://stripe.com/docs/webhooks)"},
		"Stripe-Signature": {"t=" + stamp + ",v1=" + hex.EncodeToString(mac.Sum(nil))},
	}}, nil
}
