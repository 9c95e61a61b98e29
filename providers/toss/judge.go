package toss

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

type codec struct{}

// Judge says what one answer teaches, taken alone.
func (codec) Judge(x *httpadapter.Exchange) outbound.Verdict {
	var a struct{ PaymentKey, Status, Code httpadapter.JSONWord }
	if err := json.Unmarshal(x.Body, &a); err != nil {
		return outbound.Verdict{Again: true}
	}
	v := outbound.Verdict{Again: true}
	switch {
	case x.Status < 300 && a.PaymentKey != "":
		v = judgeState(x.Operation.Name, string(a.Status))
		v.ExternalRef, v.ObjectStatus = string(a.PaymentKey), string(a.Status)
	case x.Status >= 300 && a.Code != "":
		v = judgeError(x.Status, string(a.Code))
		v.ProviderCode = string(a.Code)
	}
	return v
}

// judgeState judges the state of a payment, at an operation's success.
func judgeState(operation, status string) outbound.Verdict {
	cancelled := status == "CANCELED" || status == "PARTIAL_CANCELED"
	switch {
	case cancelled, status == "DONE" && operation != paymentCancel.Name:
		return outbound.Verdict{Effect: outbound.EffectApplied} // one that was given back had been taken
	case status == "WAITING_FOR_DEPOSIT" && operation != paymentCancel.Name:
		return outbound.Verdict{Effect: outbound.EffectApplied, Outcome: outbound.Pending}
	case status == "ABORTED", status == "EXPIRED":
		return outbound.Verdict{Effect: outbound.EffectNone, Code: outbound.ErrRefused}
	}
	return outbound.Verdict{Again: true}
}

// judgeError judges an error. PROVIDER_ERROR says that a party behind Toss failed,
// and not what it did.
func judgeError(status int, code string) outbound.Verdict {
	switch {
	case strings.HasPrefix(code, "ALREADY_"), code == "DUPLICATED_ORDER_ID": // perhaps by this very command
		return outbound.Verdict{Look: true}
	case code == "PROVIDER_ERROR":
		return outbound.Verdict{Again: true}
	case strings.Contains(code, "REJECT") && status < http.StatusConflict:
		return httpadapter.ByStatus(http.StatusPaymentRequired)
	}
	return httpadapter.ByStatus(status)
}

// Find reads the payment. Nothing that it does not find is absent: a confirmation
// may still be on its way.
func (c codec) Find(ctx context.Context, get httpadapter.Get, l *outbound.Lookup) (outbound.Finding, error) {
	at, evidence := c.whereabouts(l)
	if at == "" {
		return outbound.Finding{}, nil
	}
	x, err := get(ctx, at, nil)
	switch {
	case err != nil:
		return outbound.Finding{}, err
	case x.Status == http.StatusNotFound:
		return outbound.Finding{}, nil
	case x.Status != http.StatusOK:
		return outbound.Finding{}, fmt.Errorf("toss: the look-up was answered with status %d", x.Status)
	}
	if l.Operation.Name == paymentCancel.Name && httpadapter.JSONText(x.Body, "/status") != "CANCELED" {
		return outbound.Finding{}, nil // in part, or by another command
	}
	f := httpadapter.Found(c, l.Operation, x.Body)
	f.Evidence = evidence
	return f, nil
}

// whereabouts is where the payment can be read, "" for nowhere, and what it proves
// there.
func (codec) whereabouts(l *outbound.Lookup) (target string, evidence rs.Evidence) {
	switch l.Operation.Name {
	case paymentConfirm.Name:
		if key := httpadapter.JSONText(l.Message.Body, "/paymentKey"); key != "" {
			return "/v1/payments/" + url.PathEscape(key), rs.ByStateGuard
		}
	case paymentCancel.Name:
		var sent struct{ CancelAmount json.Number }
		if json.Unmarshal(l.Message.Body, &sent) == nil && sent.CancelAmount == "" {
			return strings.TrimSuffix(l.Message.Target, "/cancel"), rs.ByStateGuard
		}
	case billingCharge.Name:
		if id := httpadapter.JSONText(l.Message.Body, "/orderId"); id != "" && id == l.Mark {
			return "/v1/payments/orders/" + url.PathEscape(id), rs.ByLookup
		}
	}
	return "", ""
}
