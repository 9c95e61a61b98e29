package endtoend

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
)

// A codec that panics, wherever it is called, ends in an error of Do, and what
// it panics with is shown by no way of printing that error.
func TestAPanickingCodecStaysInside(t *testing.T) {
	for at, want := range map[string]outbound.Code{
		"judge": outbound.ErrUncertain, // sent, and nobody could read the answer
		"find":  outbound.ErrUncertain,
		"check": outbound.ErrInvalid, // before anything was stored or sent
	} {
		t.Run(at, func(t *testing.T) {
			b := newBench(t, "stripe", native, false, nil)
			client := newClient(t, httpadapter.New(panicking{at}, httpadapter.Config{
				Provider: "stripe", Account: stripeAccount, Mode: "test", BaseURL: b.fake.URL,
				Operations: stripe.Operations(), Transport: &http.Transport{},
			}), b.store, quick())
			defer func() {
				if v := recover(); v != nil {
					t.Fatalf("Do panics with a %T", v)
				}
			}()
			call := b.refund("panic")
			call.Message.Body = append(call.Message.Body, "&metadata[note]="+bodyMarker...)
			call.Credentials = []outbound.Field{{Name: "Authorization", Value: "Bearer " + stripeSecret}}
			_, err := client.Do(t.Context(), call)
			wantError(t, err, want, outbound.EffectUnknown)
			for _, form := range []string{"%v", "%+v", "%#v", "%q"} {
				if strings.Contains(fmt.Sprintf(form, err), bodyMarker) {
					t.Errorf("printed as %s the error shows what the codec panicked with", form)
				}
			}
		})
	}
}

// A provider, or something in between, that repeats key and credential where its
// codes and ids belong does not bring them into what is logged and stored.
func TestEchoedKeysAreNoCodes(t *testing.T) {
	b := newBench(t, "stripe", native, false, nil)
	b.wire.base = answering(func(r *http.Request) string {
		key, credential := r.Header.Get("Idempotency-Key"), strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		return `{"id":"` + key + `","object":"refund","status":"` + credential + `"}`
	})
	reply := b.must(b.refund("echoed"))
	rec := b.record(b.refund("echoed"))
	for what, text := range map[string]string{
		"reply": reply.ExternalRef + reply.ObjectStatus + reply.RequestID,
		"row":   rec.ExternalRef + rec.ObjectStatus + rec.RequestID + rec.ErrorCode,
		"log":   b.seen.logs.String(),
	} {
		for _, secret := range append(b.wire.rawKeys(), stripeSecret) {
			if strings.Contains(text, secret) {
				t.Errorf("the %s holds a key or a credential", what)
			}
		}
	}
}

// answering is a transport that answers by itself, and echoes in a header too.
type answering func(r *http.Request) string

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	body := a(r)
	return &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header:        http.Header{"Content-Type": {"application/json"}, "Request-Id": {r.Header.Get("Idempotency-Key")}},
		ContentLength: int64(len(body)), Body: readable(body),
	}, nil
}
