package stripe

import (
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/seed-6b5e302b/samekey/outbound"
)

// constructors are all functions that make a Call, by their operation's name.
var constructors = map[string]any{
	"payment_intent.create":               PaymentIntentCreate,
	"payment_intent.confirm":              PaymentIntentConfirm,
	"payment_intent.capture":              PaymentIntentCapture,
	"payment_intent.cancel":               PaymentIntentCancel,
	"refund.create":                       RefundCreate,
	"setup_intent.create":                 SetupIntentCreate,
	"setup_intent.confirm":                SetupIntentConfirm,
	"setup_intent.cancel":                 SetupIntentCancel,
	"customer.create":                     CustomerCreate,
	"customer_balance_transaction.create": CustomerBalanceTransactionCreate,
	"checkout_session.create":             CheckoutSessionCreate,
	"checkout_session.expire":             CheckoutSessionExpire,
	"subscription.create":                 SubscriptionCreate,
	"subscription.update":                 SubscriptionUpdate,
	"subscription.cancel":                 SubscriptionCancel,
	"invoice.create":                      InvoiceCreate,
	"invoice.finalize":                    InvoiceFinalize,
	"invoice.pay":                         InvoicePay,
	"invoice.void":                        InvoiceVoid,
	"invoice.send":                        InvoiceSend,
	"invoice_item.create":                 InvoiceItemCreate,
	"credit_note.create":                  CreditNoteCreate,
	"transfer.create":                     TransferCreate,
	"transfer_reversal.create":            TransferReversalCreate,
	"payout.create":                       PayoutCreate,
	"payout.cancel":                       PayoutCancel,
	"payout.reverse":                      PayoutReverse,
	"meter_event.create":                  MeterEventCreate,
	"v2.account.create":                   V2AccountCreate,
	"v2.account.update":                   V2AccountUpdate,
	"v2.account.close":                    V2AccountClose,
	"v2.event_destination.create":         V2EventDestinationCreate,
	"v2.event_destination.update":         V2EventDestinationUpdate,
	"v2.event_destination.delete":         V2EventDestinationDelete,
}

// TestConstructors holds that every operation has its function, which fills the
// row's path and body, and that a missing id is an error of the call.
func TestConstructors(t *testing.T) {
	t.Parallel()
	cmd := outbound.Command{ID: "cmd_1"}
	call := func(f any, id string) (c outbound.Call, withID bool) {
		fn := reflect.ValueOf(f)
		args := make([]reflect.Value, fn.Type().NumIn())
		for i := range args {
			switch in := fn.Type().In(i); in {
			case reflect.TypeFor[outbound.Command]():
				args[i] = reflect.ValueOf(cmd)
			case reflect.TypeFor[string]():
				args[i], withID = reflect.ValueOf(id), true
			case reflect.TypeFor[url.Values]():
				args[i] = reflect.ValueOf(url.Values{"b": {"2"}, "a": {"x y"}})
			default:
				args[i] = reflect.ValueOf(map[string]string{"a": "b"})
			}
		}
		return fn.Call(args)[0].Interface().(outbound.Call), withID
	}
	for _, op := range Operations() {
		f, ok := constructors[op.Name]
		if !ok {
			t.Errorf("%s has no constructor", op.Name)
			continue
		}
		c, withID := call(f, "x/1")
		target := strings.NewReplacer("{id}", "x%2F1").Replace(op.Path)
		body := "a=x+y&b=2"
		switch {
		case op.Name == "subscription.cancel":
			target, body = target+"?"+body, ""
		case op.Method == "DELETE":
			body = ""
		case isV2(op):
			body = `{"a":"b"}`
		}
		if c.Err != nil || c.Operation != op.Name || c.Command != cmd || c.Message.Method != op.Method || c.Message.Target != target || string(c.Message.Body) != body {
			t.Errorf("%s: got %+v", op.Name, c)
		}
		if withID != strings.Contains(op.Path, "{") {
			t.Errorf("%s: path %s, but its function takes an id: %v", op.Name, op.Path, withID)
		}
		if c, _ := call(f, ""); withID && c.Err == nil {
			t.Errorf("%s: an empty id passed", op.Name)
		}
	}
	if len(constructors) != len(Operations()) {
		t.Error("a constructor has no operation")
	}
	if c := V2AccountCreate(cmd, map[string]float64{"amount": 1.5}); c.Err == nil {
		t.Error("a float amount passed")
	}
}
