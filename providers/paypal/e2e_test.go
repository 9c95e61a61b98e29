package paypal_test

import (
	"cmp"
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	"github.com/seed-6b5e302b/samekey/providers/paypal"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
	"github.com/seed-6b5e302b/samekey/recordstore/memory"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// world is a client, its ledger in memory and the fake PayPal, on one clock.
type world struct {
	*testing.T
	fake    *providertest.Fake
	client  *outbound.Client
	adapter *httpadapter.Adapter
}

// merchant is the fake's own account.
const merchant = "FAKEMERCHANT1"

func inWorld(t *testing.T, cfg paypal.Config, test func(w world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := providertest.PayPal(t, &providertest.Options{InMemory: true})
		cfg.Account, cfg.ClientID, cfg.Secret = cmp.Or(cfg.Account, merchant), "id", "secret"
		cfg.BaseURL, cfg.Transport = fake.URL, fake.Transport()
		adapter := paypal.New(cfg)
		client, err := outbound.New(adapter, memory.New(nil), nil)
		if err != nil {
			t.Fatal(err)
		}
		test(world{t, fake, client, adapter})
	})
}

func cmd(id string) outbound.Command { return outbound.Command{ID: id} }

func (w world) do(call outbound.Call) *outbound.Reply {
	w.Helper()
	reply, err := w.client.Do(w.Context(), call)
	if err != nil {
		w.Fatalf("%s: %v", call.Operation, err)
	}
	return reply
}

func (w world) fails(call outbound.Call, code outbound.Code, effect outbound.Effect) *outbound.Error {
	w.Helper()
	_, err := w.client.Do(w.Context(), call)
	e, ok := errors.AsType[*outbound.Error](err)
	if !ok || e.Code != code || e.Effect != effect {
		w.Fatalf("%s: %v; want %s with the effect %v", call.Operation, err, code, effect)
	}
	return e
}

func (w world) effects(operation string, want int) {
	w.Helper()
	if got := w.fake.Effects(operation); got != want {
		w.Errorf("effects of %s = %d, want %d", operation, got, want)
	}
	if got := w.fake.Duplicates(); got != 0 {
		w.Errorf("duplicates = %d", got)
	}
}

func (w world) labelled(r *outbound.Reply, e outbound.Evidence) {
	w.Helper()
	if r.Evidence != e || r.Label != e.Label() {
		w.Errorf("%s: %s by %s, want %s by %s", r.Operation, r.Label, r.Evidence, e.Label(), e)
	}
}

// PayPal never gives the original back: after a lost answer the resend reads as
// the latest status, with what was refunded meanwhile (R8, R11).
func TestLostAnswer(t *testing.T) {
	inWorld(t, paypal.Config{}, func(w world) {
		order := w.fake.Seed(providertest.ApprovedOrder{Value: "12.50", Currency: "EUR"})
		w.fake.Inject(providertest.Fault{Kind: providertest.DropAfterApply, Operation: "order.capture"})
		reply := w.do(paypal.OrderCapture(cmd("c1"), order, nil))
		w.labelled(reply, rs.ByStatusCode)
		w.effects("order.capture", 1)
		capture, err := paypal.CaptureOf(reply)
		if err != nil || capture.ID != reply.ExternalRef || capture.Status != "COMPLETED" || capture.Amount != (paypal.Money{Currency: "EUR", Value: "12.50"}) {
			w.Errorf("capture %+v, %v", capture, err)
		}
		requests := w.fake.Requests("order.capture")
		if len(requests) != 2 || requests[0].KeyHash != requests[1].KeyHash || requests[0].BodyHash != requests[1].BodyHash {
			w.Errorf("requests %+v: want two with one key and one body", requests)
		}
	})
}

func TestNewAndReplayed(t *testing.T) {
	inWorld(t, paypal.Config{}, func(w world) {
		order := w.fake.Seed(providertest.ApprovedOrder{})
		first := w.do(paypal.OrderCapture(cmd("c1"), order, nil))
		w.labelled(first, rs.ByFirstDelivery)
		second := w.do(paypal.OrderCapture(cmd("c1"), order, nil))
		w.labelled(second, rs.ByOwnRecord)
		if second.Origin != outbound.FromLedger || second.ExternalRef != first.ExternalRef || len(w.fake.Requests("order.capture")) != 1 {
			w.Errorf("second reply %+v", second)
		}
	})
}

// C17: the batch id is the key; the error about it leads to the batch.
func TestPayoutDuplicate(t *testing.T) {
	inWorld(t, paypal.Config{}, func(w world) {
		payout := map[string]any{
			"sender_batch_header": map[string]any{"email_subject": "Your share"},
			"items":               []any{map[string]any{"recipient_type": "PAYPAL_ID", "receiver": "R1", "amount": map[string]any{"currency": "EUR", "value": "5.00"}}},
		}
		w.fake.Inject(providertest.Fault{Kind: providertest.DropAfterApply, Operation: "payout.create"})
		reply := w.do(paypal.PayoutCreate(cmd("p1"), payout))
		w.labelled(reply, rs.ByLookup)
		w.effects("payout.create", 1)
		batch, err := paypal.PayoutOf(reply)
		if err != nil || batch.ID != reply.ExternalRef || reply.StatusCode != http.StatusCreated {
			w.Errorf("payout %+v, %v", batch, err)
		}
		again := w.do(paypal.PayoutCreate(cmd("p1"), payout))
		if again.ExternalRef != batch.ID {
			w.Errorf("the second call ends with %q, the first with %q", again.ExternalRef, batch.ID)
		}
		w.effects("payout.create", 1)
	})
}

// C18: a success without its body is uncertain, never "not paid".
func TestEmptySuccess(t *testing.T) {
	inWorld(t, paypal.Config{}, func(w world) {
		order := w.fake.Seed(providertest.ApprovedOrder{})
		w.fake.Inject(providertest.Fault{Kind: providertest.Empty, Operation: "order.capture", Times: 4})
		w.fails(paypal.OrderCapture(cmd("c1"), order, nil), outbound.ErrUncertain, outbound.EffectUnknown)
		w.effects("order.capture", 1)
		w.labelled(w.do(paypal.OrderCapture(cmd("c1"), order, nil)), rs.ByStatusCode)
		w.effects("order.capture", 1)
	})
}

// C19: a success without a body, where the operation has none, is applied.
func TestNoContent(t *testing.T) {
	inWorld(t, paypal.Config{}, func(w world) {
		authorization := w.fake.Seed(providertest.CreatedAuthorization{})
		w.labelled(w.do(paypal.AuthorizationVoid(cmd("v1"), authorization)), rs.ByFirstDelivery)
		w.labelled(w.do(paypal.AuthorizationVoid(cmd("v1"), authorization)), rs.ByOwnRecord)
		w.effects("authorization.void", 1)

		subscription := w.fake.Seed(providertest.ActiveSubscription{})
		reply := w.do(paypal.SubscriptionCancel(cmd("s1"), subscription, "asked"))
		if reply.StatusCode != http.StatusNoContent || len(reply.Body) != 0 {
			w.Errorf("cancel: %d %q", reply.StatusCode, reply.Body)
		}
		w.effects("subscription.cancel", 1)
	})
}

// C20: an invoice id that another payment has leads to a look-up of this order,
// not to a capture under another invoice id.
func TestDuplicateInvoice(t *testing.T) {
	inWorld(t, paypal.Config{}, func(w world) {
		first := w.fake.Seed(providertest.ApprovedOrder{InvoiceID: "INV-1"})
		second := w.fake.Seed(providertest.ApprovedOrder{InvoiceID: "INV-1"})
		w.do(paypal.OrderCapture(cmd("c1"), first, nil))
		e := w.fails(paypal.OrderCapture(cmd("c2"), second, nil), outbound.ErrUncertain, outbound.EffectUnknown)
		if e.ProviderCode != "DUPLICATE_INVOICE_ID" || e.RequestID == "" {
			w.Errorf("code %q, request %q", e.ProviderCode, e.RequestID)
		}
		w.effects("order.capture", 1)
		if got := len(w.fake.Requests("order.capture")); got != 2 {
			w.Errorf("requests = %d, want one for each command", got)
		}
	})
}

// C21: the token is taken away at PayPal's side; all waiting callers get one new
// token and send their ids again.
func TestTokenRevoked(t *testing.T) {
	inWorld(t, paypal.Config{}, func(w world) {
		w.do(paypal.OrderCapture(cmd("warm"), w.fake.Seed(providertest.ApprovedOrder{}), nil))
		w.fake.Seed(providertest.RevokedTokens{})
		const callers = 20
		var group sync.WaitGroup
		for i := range callers {
			order := w.fake.Seed(providertest.ApprovedOrder{})
			group.Go(func() {
				call := paypal.OrderCapture(cmd("c"+string(rune('a'+i))), order, nil)
				reply, err := w.client.Do(w.Context(), call)
				if err != nil {
					w.Error(err)
					return
				}
				w.labelled(reply, rs.ByFirstDelivery) // a 401 did not execute
			})
		}
		group.Wait()
		w.effects("order.capture", callers+1)
		if got := len(w.fake.Requests("token")); got != 2 {
			w.Errorf("token fetches = %d, want 2", got)
		}
	})
}

// C21 under a drop-in: a caller's token that PayPal refuses is replaced by ours,
// and the same id is sent again.
func TestOwnTokenRefused(t *testing.T) {
	inWorld(t, paypal.Config{}, func(w world) {
		call := paypal.OrderCapture(cmd("c1"), w.fake.Seed(providertest.ApprovedOrder{}), nil)
		call.Credentials = []outbound.Field{{Name: "Authorization", Value: "Bearer gone"}}
		w.do(call)
		w.effects("order.capture", 1)
		requests := w.fake.Requests("order.capture")
		if len(requests) != 2 || requests[0].Status != 401 || requests[0].KeyHash != requests[1].KeyHash {
			w.Errorf("requests %+v", requests)
		}
		call = paypal.OrderCapture(cmd("c2"), w.fake.Seed(providertest.ApprovedOrder{}), nil)
		call.Credentials = []outbound.Field{{Name: "Authorization", Value: "Bearer gone"}}
		w.do(call)
		if got := len(w.fake.Requests("order.capture")); got != 3 {
			w.Errorf("requests = %d: a token that was refused was sent again", got)
		}
	})
}

// C27: in progress elsewhere is waited for, with the same id.
func TestInProgress(t *testing.T) {
	inWorld(t, paypal.Config{}, func(w world) {
		order := w.fake.Seed(providertest.ApprovedOrder{})
		w.fake.Inject(providertest.Fault{Kind: providertest.InFlight, Operation: "order.capture", Times: 2})
		w.labelled(w.do(paypal.OrderCapture(cmd("c1"), order, nil)), rs.ByStatusCode)
		w.effects("order.capture", 1)

		order = w.fake.Seed(providertest.ApprovedOrder{})
		w.fake.Inject(providertest.Fault{Kind: providertest.InFlight, Operation: "order.capture", Times: 4})
		e := w.fails(paypal.OrderCapture(cmd("c2"), order, nil), outbound.ErrUncertain, outbound.EffectUnknown)
		if _, again := outbound.RetryAfter(e); !again {
			w.Error("in flight elsewhere: calling again would help")
		}
	})
}

// A decline inside a 201 is a refusal; a pending payment is applied and not paid.
func TestDeclinedAndPending(t *testing.T) {
	inWorld(t, paypal.Config{}, func(w world) {
		order := w.fake.Seed(providertest.ApprovedOrder{Outcome: "DECLINED"})
		e := w.fails(paypal.OrderCapture(cmd("c1"), order, nil), outbound.ErrRefused, outbound.EffectNone)
		if e.ProviderCode != "DECLINED" || e.Answer == nil || e.Answer.StatusCode != http.StatusCreated {
			w.Errorf("refusal %+v", e)
		}
		w.effects("order.capture", 0)
		w.fails(paypal.OrderCapture(cmd("c1"), order, nil), outbound.ErrRefused, outbound.EffectNone)
		if got := len(w.fake.Requests("order.capture")); got != 1 {
			w.Errorf("requests = %d: a decline is final for its command", got)
		}

		order = w.fake.Seed(providertest.ApprovedOrder{Outcome: "PENDING"})
		reply := w.do(paypal.OrderCapture(cmd("c2"), order, nil))
		if reply.Outcome != outbound.Pending || reply.ObjectStatus != "PENDING" {
			w.Errorf("pending: %+v", reply)
		}
	})
}

// A decline whose answer was lost: the resend shows it, and the order proves
// that it was the command's only outcome.
func TestLostDecline(t *testing.T) {
	inWorld(t, paypal.Config{}, func(w world) {
		order := w.fake.Seed(providertest.ApprovedOrder{Outcome: "DECLINED"})
		w.fake.Inject(providertest.Fault{Kind: providertest.DropAfterApply, Operation: "order.capture"})
		e := w.fails(paypal.OrderCapture(cmd("c1"), order, nil), outbound.ErrRefused, outbound.EffectNone)
		if e.ProviderCode != "DECLINED" {
			w.Errorf("code %q", e.ProviderCode)
		}
		w.effects("order.capture", 0)
	})
}

// The state is the goal: an order that another command captured is captured.
func TestAlreadyDone(t *testing.T) {
	inWorld(t, paypal.Config{}, func(w world) {
		order := w.fake.Seed(providertest.ApprovedOrder{})
		first := w.do(paypal.OrderCapture(cmd("c1"), order, nil))
		second := w.do(paypal.OrderCapture(cmd("c2"), order, nil))
		w.labelled(second, rs.ByStateGuard)
		if second.ExternalRef != first.ExternalRef {
			w.Errorf("the second command ends with %q, the first with %q", second.ExternalRef, first.ExternalRef)
		}
		w.effects("order.capture", 1)

		authorization := w.fake.Seed(providertest.CreatedAuthorization{})
		captured := w.do(paypal.AuthorizationCapture(cmd("a1"), authorization, nil))
		found := w.do(paypal.AuthorizationCapture(cmd("a2"), authorization, nil))
		w.labelled(found, rs.ByStateGuard)
		if found.ExternalRef != captured.ExternalRef {
			w.Errorf("authorization: %q and %q", found.ExternalRef, captured.ExternalRef)
		}
		w.effects("authorization.capture", 1)
		w.fails(paypal.AuthorizationVoid(cmd("a3"), authorization), outbound.ErrRefused, outbound.EffectNone)

		subscription := w.fake.Seed(providertest.ActiveSubscription{})
		w.do(paypal.SubscriptionCancel(cmd("s1"), subscription, "asked"))
		w.labelled(w.do(paypal.SubscriptionCancel(cmd("s2"), subscription, "asked")), rs.ByStateGuard)
		w.effects("subscription.cancel", 1)
	})
}

func lost(operation string) providertest.Fault {
	return providertest.Fault{Kind: providertest.DropAfterApply, Operation: operation, Times: 4}
}

// A closed window is no leave to send again: the order's state tells that it was
// captured (C11, R22).
func TestWindowClosed(t *testing.T) {
	inWorld(t, paypal.Config{}, func(w world) {
		capture := paypal.OrderCapture(cmd("c1"), w.fake.Seed(providertest.ApprovedOrder{}), nil)
		w.fake.Inject(lost("order.capture"))
		w.fails(capture, outbound.ErrUncertain, outbound.EffectUnknown)
		time.Sleep(7 * time.Hour)
		w.labelled(w.do(capture), rs.ByStateGuard)
		w.effects("order.capture", 1)
		if got := len(w.fake.Requests("order.capture")); got != 4 {
			w.Errorf("requests = %d: the capture was sent after the window", got)
		}
	})
}

// A partial capture is found by its mark, where the caller lets us stamp
// invoice_id; without a mark it stays unknown.
func TestPartialCaptureByMark(t *testing.T) {
	for name, marking := range map[string]bool{"marked": true, "unmarked": false} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, paypal.Config{MarkInvoices: marking}, func(w world) {
				authorization := w.fake.Seed(providertest.CreatedAuthorization{Value: "10.00"})
				part := map[string]any{"amount": paypal.Money{Currency: "USD", Value: "2.00"}}
				w.do(paypal.AuthorizationCapture(cmd("a1"), authorization, part))
				w.fake.Inject(lost("authorization.capture"))
				call := paypal.AuthorizationCapture(cmd("a2"), authorization, part)
				w.fails(call, outbound.ErrUncertain, outbound.EffectUnknown)
				time.Sleep(46 * 24 * time.Hour)
				if marking {
					w.labelled(w.do(call), rs.ByLookup)
				} else {
					w.fails(call, outbound.ErrUncertain, outbound.EffectUnknown)
				}
				w.effects("authorization.capture", 2)
			})
		})
	}
}

// Two equal partial refunds, one of them with its answers lost for longer than
// PayPal keeps the id: the mark tells them apart.
func TestPartialRefundByMark(t *testing.T) {
	inWorld(t, paypal.Config{}, func(w world) {
		capture := w.fake.Seed(providertest.CompletedCapture{Value: "10.00"})
		part := paypal.RefundRequest{Amount: paypal.Money{Currency: "USD", Value: "2.00"}}
		first := w.do(paypal.CaptureRefund(cmd("r1"), capture, part))
		w.fake.Inject(lost("capture.refund"))
		w.fails(paypal.CaptureRefund(cmd("r2"), capture, part), outbound.ErrUncertain, outbound.EffectUnknown)

		time.Sleep(46 * 24 * time.Hour)
		second := w.do(paypal.CaptureRefund(cmd("r2"), capture, part))
		w.labelled(second, rs.ByLookup)
		refund, err := paypal.RefundOf(second)
		if err != nil || refund.ID == first.ExternalRef || refund.ID != second.ExternalRef {
			w.Errorf("refund %+v, %v; the first is %q", refund, err, first.ExternalRef)
		}
		w.effects("capture.refund", 2)
	})
}

// A refund that states no amount is refused before the wire.
func TestRefundWithoutAmount(t *testing.T) {
	inWorld(t, paypal.Config{}, func(w world) {
		capture := w.fake.Seed(providertest.CompletedCapture{})
		call := paypal.CaptureRefund(cmd("r1"), capture, paypal.RefundRequest{Amount: paypal.Money{Currency: "USD", Value: "1.00"}})
		call.Message.Body = []byte(`{}`)
		w.fails(call, outbound.ErrInvalid, outbound.EffectUnknown)
		if got := len(w.fake.Requests("")); got != 0 {
			w.Errorf("requests = %d", got)
		}
	})
}
