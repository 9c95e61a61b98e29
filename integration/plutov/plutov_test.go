package plutov_test

import (
	"crypto/sha256"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	plutov "github.com/plutov/paypal/v4"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/dropin"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

func (b *bench) order() string {
	return b.fake.Seed(providertest.ApprovedOrder{Value: "12.50", Currency: "EUR"})
}

// PayPal gives the latest status back, never the first answer: a capture that is
// resent after its refund reads REFUNDED (R12).
func TestLatestStatus(t *testing.T) {
	t.Parallel()
	b := newBench(t, setting{retry: outbound.Retry{Attempts: 1}})
	order := b.order()
	b.fake.Inject(providertest.Fault{Kind: providertest.DropAfterApply, Operation: "order.capture"})
	ctx, call := b.track("cmd_1")
	_, err := b.pp.CaptureOrder(ctx, order, plutov.CaptureOrderRequest{})
	b.wantError(call, err, 500, outbound.ErrUncertain, outbound.EffectUnknown)

	seen, err := b.pp.GetOrder(t.Context(), order)
	if err != nil {
		t.Fatal(err)
	}
	ctx, call = b.track("cmd_2")
	_, err = b.pp.RefundCapture(ctx, seen.PurchaseUnits[0].Payments.Captures[0].ID, plutov.RefundCaptureRequest{Amount: euros("12.50")})
	b.wantLabel(call, err, "first_delivery", outbound.FromProvider)

	ctx, call = b.track("cmd_1")
	got, err := b.pp.CaptureOrder(ctx, order, plutov.CaptureOrderRequest{})
	b.wantLabel(call, err, "status_code", outbound.FromProvider)
	if s := got.PurchaseUnits[0].Payments.Captures[0].Status; s != "REFUNDED" {
		t.Errorf("the capture reads %s, want REFUNDED", s)
	}
	b.wantSent("cmd_1", "order.capture", 1, 2, true)
}

// withoutPrefer takes the header Prefer away, so that PayPal answers a void with
// 204.
type withoutPrefer struct{ base http.RoundTripper }

func (w withoutPrefer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Del("Prefer")
	return w.base.RoundTrip(r)
}

// C19: plutov reports EOF for a void that PayPal answers with 204. The void is
// applied, recorded and replayed all the same.
func TestVoidTrap(t *testing.T) {
	t.Parallel()
	b := newBench(t, setting{wire: func(rt http.RoundTripper) http.RoundTripper { return withoutPrefer{rt} }})
	id := b.fake.Seed(providertest.CreatedAuthorization{Value: "12.50", Currency: "EUR"})
	for _, want := range []struct {
		evidence outbound.Evidence
		origin   outbound.Origin
	}{{"first_delivery", outbound.FromProvider}, {"own_record", outbound.FromLedger}} {
		ctx, call := b.track("cmd_1")
		if _, err := b.pp.VoidAuthorization(ctx, id); !errors.Is(err, io.EOF) {
			t.Fatalf("plutov returned %v, want its EOF", err)
		}
		if reply := b.wantLabel(call, nil, want.evidence, want.origin); reply.StatusCode != http.StatusNoContent || reply.Outcome != outbound.Done {
			t.Errorf("got %+v, want 204 and done", reply)
		}
	}
	status, err := b.client.Status(t.Context(), outbound.Command{ID: "cmd_1"}, "authorization.void")
	if err != nil || status.State != recordstore.Succeeded {
		t.Errorf("got %+v, %v, want succeeded", status, err)
	}
	b.wantSent("cmd_1", "authorization.void", 1, 1, true)
}

// Token fetches and reads pass untouched; the SDK's own token is what is sent.
func TestTokensAndReadsPass(t *testing.T) {
	t.Parallel()
	b := newBench(t, setting{dropin: &dropin.Options{Strict: true}})
	order := b.order()
	token, err := b.pp.GetAccessToken(t.Context())
	if err != nil || token.Token == "" {
		t.Fatalf("no token: %v", err)
	}
	ctx, _ := b.track("cmd_1")
	for range 2 {
		if got, err := b.pp.GetOrder(ctx, order); err != nil || got.ID != order {
			t.Errorf("got %v", err)
		}
	}
	if _, err := b.pp.CaptureOrder(ctx, order, plutov.CaptureOrderRequest{}); err != nil {
		t.Error(err)
	}
	if n := len(b.fake.Requests("token")); n != 1 {
		t.Errorf("%d tokens were fetched, want the SDK's 1", n)
	}
	if n := b.transport.Unnamed(); n != 0 {
		t.Errorf("%d of these counted as writes without a command", n)
	}
}

// A page of a proxy, which plutov would report as a JSON syntax error, reaches
// its caller as PayPal's error; the same command finds what happened (C18).
func TestHTML502(t *testing.T) {
	t.Parallel()
	b := newBench(t, setting{retry: outbound.Retry{Attempts: 1}})
	order := b.order()
	b.fake.Inject(providertest.Fault{Kind: providertest.HTML502, Operation: "order.capture", Applied: true})
	ctx, call := b.track("cmd_1")
	_, err := b.pp.CaptureOrder(ctx, order, plutov.CaptureOrderRequest{})
	e := b.wantError(call, err, 500, outbound.ErrUncertain, outbound.EffectUnknown)
	if !strings.Contains(e.Message, "do not treat it as failed") {
		t.Errorf("message %q does not say what to do", e.Message)
	}
	b.wantTrips(1)
	ctx, call = b.track("cmd_1")
	_, err = b.pp.CaptureOrder(ctx, order, plutov.CaptureOrderRequest{})
	b.wantLabel(call, err, "status_code", outbound.FromProvider)
	b.wantSent("cmd_1", "order.capture", 1, 2, true)
}

// The error text of plutov needs the request of a response: every answer that
// samekey makes up has one. wantError prints each.
func TestSyntheticAnswers(t *testing.T) {
	t.Parallel()
	b := newBench(t, setting{})
	id := b.fake.Seed(providertest.CompletedCapture{Value: "12.50", Currency: "EUR"})
	refund := func(command, value string) (*outbound.Tracked, error) {
		ctx, call := b.track(command)
		var amount *plutov.Money
		if value != "" {
			amount = euros(value)
		}
		_, err := b.pp.RefundCapture(ctx, id, plutov.RefundCaptureRequest{Amount: amount})
		return call, err
	}
	call, err := refund("cmd_1", "") // means "what remains", whenever PayPal looks
	b.wantError(call, err, 400, outbound.ErrInvalid, outbound.EffectUnknown)

	b.fake.Inject(providertest.Fault{Kind: providertest.SlowApply, Operation: "capture.refund"})
	first := make(chan error)
	go func() { _, err := refund("cmd_2", "5.00"); first <- err }()
	b.fake.AwaitHeld(1)
	call, err = refund("cmd_2", "5.00")
	if e := b.wantError(call, err, 409, outbound.ErrInFlight, outbound.EffectUnknown); e.Details[0].Issue != "PREVIOUS_REQUEST_IN_PROGRESS" {
		t.Errorf("got issue %q", e.Details[0].Issue)
	}
	b.fake.Release()
	if err := <-first; err != nil {
		t.Error(err)
	}
	call, err = refund("cmd_2", "6.00")
	b.wantError(call, err, 400, outbound.ErrFingerprintConflict, outbound.EffectApplied)
	b.wantSent("cmd_2", "capture.refund", 1, 1, true)

	_, err = b.pp.RefundCapture(t.Context(), id, plutov.RefundCaptureRequest{Amount: euros("1.00")})
	if e, ok := errors.AsType[*plutov.ErrorResponse](err); !ok || !strings.Contains(e.Error(), "outbound.WithCommand") {
		t.Errorf("a refund without a command: got %v", err)
	}
}

// A decline is an outcome of the command, replayed from the ledger (C06). The
// SDK's caller gets PayPal's own error.
func TestDecline(t *testing.T) {
	t.Parallel()
	b := newBench(t, setting{})
	order := b.fake.Seed(providertest.ApprovedOrder{Value: "12.50", Currency: "EUR", Outcome: "INSTRUMENT_DECLINED"})
	for range 2 {
		ctx, call := b.track("cmd_1")
		_, err := b.pp.CaptureOrder(ctx, order, plutov.CaptureOrderRequest{})
		if e := b.wantError(call, err, http.StatusUnprocessableEntity, outbound.ErrRefused, outbound.EffectNone); e.Details[0].Issue != "INSTRUMENT_DECLINED" {
			t.Errorf("got issue %q", e.Details[0].Issue)
		}
	}
	b.wantSent("cmd_1", "order.capture", 0, 1, true)
}

// C21: the token is gone on PayPal's side while the SDK still sends it. One
// refresh for all callers, the same id is resent, one effect for each. (plutov's
// CaptureOrder is not safe for concurrent use; its RefundCapture is.)
func TestTokenGone(t *testing.T) {
	t.Parallel()
	b := newBench(t, setting{})
	if _, err := b.pp.GetAccessToken(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.fake.Seed(providertest.RevokedTokens{})
	var wg sync.WaitGroup
	const callers = 4
	for range callers {
		capture := b.fake.Seed(providertest.CompletedCapture{Value: "12.50", Currency: "EUR"})
		wg.Go(func() {
			ctx, call := b.track("refund-" + capture)
			_, err := b.pp.RefundCapture(ctx, capture, plutov.RefundCaptureRequest{Amount: euros("5.00")})
			if reply, failed := call.Result(); err != nil || failed != nil || reply.Label != outbound.NewExecution {
				t.Errorf("got %v and %v, want a new execution", err, failed)
			}
		})
	}
	wg.Wait()
	if n := len(b.fake.Requests("token")); n != 2 {
		t.Errorf("%d tokens were fetched, want the SDK's and one for all", n)
	}
	if n := b.fake.Effects("capture.refund"); n != callers || b.fake.Duplicates() != 0 {
		t.Errorf("%d refunds, %d of them duplicates, want %d", n, b.fake.Duplicates(), callers)
	}
	ids, refused := map[[32]byte]bool{}, 0
	for _, r := range b.fake.Requests("capture.refund") {
		ids[r.KeyHash] = true
		if r.Status == http.StatusUnauthorized {
			refused++
		}
	}
	if len(ids) != callers || refused == 0 {
		t.Errorf("%d ids and %d refused requests, want %d ids and at least one 401", len(ids), refused, callers)
	}
}

// C29, R3: plutov's WithPaypalRequestId methods bring an id of the caller's own:
// it is refused loudly, unless it is the one that samekey derives.
func TestRequestIDMethods(t *testing.T) {
	t.Parallel()
	b := newBench(t, setting{})
	order, capture := b.order(), b.fake.Seed(providertest.CompletedCapture{Value: "12.50", Currency: "EUR"})
	authorization := b.fake.Seed(providertest.CreatedAuthorization{Value: "12.50", Currency: "EUR"})
	for operation, call := range map[string]func(id string) error{
		"order.create": func(id string) error {
			ctx, _ := b.track("cmd_1")
			_, err := b.pp.CreateOrderWithPaypalRequestID(ctx, plutov.OrderIntentCapture, []plutov.PurchaseUnitRequest{
				{Amount: &plutov.PurchaseUnitAmount{Currency: "EUR", Value: "12.50"}},
			}, nil, nil, id)
			return err
		},
		"order.capture": func(id string) error {
			ctx, _ := b.track("cmd_1")
			_, err := b.pp.CaptureOrderWithPaypalRequestId(ctx, order, plutov.CaptureOrderRequest{}, id, nil)
			return err
		},
		"authorization.capture": func(id string) error {
			ctx, _ := b.track("cmd_1")
			_, err := b.pp.CaptureAuthorizationWithPaypalRequestId(ctx, authorization, &plutov.PaymentCaptureRequest{Amount: euros("5.00")}, id)
			return err
		},
		"capture.refund": func(id string) error {
			ctx, _ := b.track("cmd_1")
			_, err := b.pp.RefundCaptureWithPaypalRequestId(ctx, capture, plutov.RefundCaptureRequest{Amount: euros("5.00")}, id)
			return err
		},
	} {
		err := call("order-4711")
		e, ok := errors.AsType[*plutov.ErrorResponse](err)
		if !ok || e.Response.StatusCode != 400 || !strings.Contains(e.Message, "take the key out") || strings.Contains(e.Error(), "4711") {
			t.Errorf("%s: got %v, want a refusal that says what to do and shows no key", operation, err)
		}
		if n := len(b.fake.Requests(operation)); n != 0 {
			t.Errorf("%s: %d requests arrived, want none", operation, n)
		}
		if err := call(b.key("cmd_1", operation)); err != nil {
			t.Errorf("%s: the derived id was refused: %v", operation, err)
		}
		b.wantSent("cmd_1", operation, 1, 1, true)
	}
}

// CaptureOrder turns Prefer on for every later call of the client: that makes no
// other request of the same command.
func TestPreferIsNoOtherRequest(t *testing.T) {
	t.Parallel()
	b := newBench(t, setting{})
	create := func() (*outbound.Tracked, error) {
		ctx, call := b.track("cmd_1")
		_, err := b.pp.CreateOrder(ctx, plutov.OrderIntentCapture, []plutov.PurchaseUnitRequest{
			{Amount: &plutov.PurchaseUnitAmount{Currency: "EUR", Value: "12.50"}},
		}, nil, nil)
		return call, err
	}
	call, err := create()
	b.wantLabel(call, err, "first_delivery", outbound.FromProvider)
	b.pp.SetReturnRepresentation()
	call, err = create()
	b.wantLabel(call, err, "own_record", outbound.FromLedger)
	b.wantSent("cmd_1", "order.create", 1, 1, true)
}

// A batch id of the caller's own in a payout's body is a key that was chosen.
func TestChosenBatchID(t *testing.T) {
	t.Parallel()
	b := newBench(t, setting{})
	pay := func(batch string) error {
		ctx, _ := b.track("cmd_1")
		_, err := b.pp.CreatePayout(ctx, plutov.Payout{
			SenderBatchHeader: &plutov.SenderBatchHeader{SenderBatchID: batch},
			Items:             []plutov.PayoutItem{{RecipientType: "EMAIL", Receiver: "seller@example.com", Amount: &plutov.AmountPayout{Currency: "EUR", Value: "9.00"}}},
		})
		return err
	}
	if err := pay("payday-4711"); err == nil || strings.Contains(err.Error(), "4711") {
		t.Errorf("got %v, want a refusal that shows no key", err)
	}
	key := b.key("cmd_1", "payout.create")
	if err := pay(key); err != nil {
		t.Errorf("the derived id was refused: %v", err)
	}
	if r := b.fake.Requests("payout.create"); len(r) != 1 || r[0].KeyHash != sha256.Sum256([]byte(key)) {
		t.Errorf("got %+v, want one payout", r)
	}
}
