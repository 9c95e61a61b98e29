package paypal

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/outbound"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// payout follows the link that PayPal gives with the refusal of a batch id that
// was accepted before.
func (s search) payout(ctx context.Context) (outbound.Finding, error) {
	var answer any
	if s.Answer == nil || json.Unmarshal(s.Answer.Body, &answer) != nil {
		return outbound.Finding{}, nil
	}
	id := payoutLink(answer)
	if id == "" {
		return outbound.Finding{}, nil
	}
	return s.payoutBatch(ctx, id)
}

// payoutLink is the id of the batch that an error links to, wherever it holds
// the link. Only the id is used: an answer does not choose where credentials go.
func payoutLink(v any) string {
	switch v := v.(type) {
	case map[string]any:
		if href, ok := v["href"].(string); ok {
			if id := linkID(href, payoutsPath); id != "" {
				return id
			}
		}
		for _, member := range v {
			if id := payoutLink(member); id != "" {
				return id
			}
		}
	case []any:
		for _, element := range v {
			if id := payoutLink(element); id != "" {
				return id
			}
		}
	}
	return ""
}

// payoutBatch reads a batch, which counts only if it carries this command's key,
// and answers as the create does: the header without the items.
func (s search) payoutBatch(ctx context.Context, id string) (outbound.Finding, error) {
	var parts struct {
		Header json.RawMessage `json:"batch_header"`
		Links  json.RawMessage `json:"links,omitempty"`
	}
	x, err := s.read(ctx, payoutsPath+id, nil, &parts)
	if err != nil {
		return outbound.Finding{}, err
	}
	created, err := json.Marshal(parts)
	if err != nil {
		return outbound.Finding{}, err
	}
	var b batch
	if err := json.Unmarshal(created, &b); err != nil || b.Header.ID == "" {
		return outbound.Finding{}, errUnreadable
	}
	if s.Key.IsZero() || b.Header.SenderBatchHeader.SenderBatchID != s.Key.Raw() {
		return outbound.Finding{}, nil
	}
	f := found(x, rs.ByLookup, b.result(), created)
	f.Answer.Status = http.StatusCreated
	return f, nil
}

// byReference reads the object that an earlier answer named.
func (s search) byReference(ctx context.Context) (outbound.Finding, error) {
	if !idForm.MatchString(s.ExternalRef) {
		return outbound.Finding{}, nil
	}
	switch s.Operation.Name {
	case payoutCreate.Name:
		return s.payoutBatch(ctx, s.ExternalRef)
	case orderCapture.Name:
		return s.orderHolding(ctx, capturesPath, (*order).captures)
	case orderAuthorize.Name:
		return s.orderHolding(ctx, authorizationsPath, (*order).authorizations)
	}
	path := collection(s.Operation.Name)
	if path == "" {
		return outbound.Finding{}, nil
	}
	var o object
	x, err := s.read(ctx, path+s.ExternalRef, nil, &o)
	if err != nil {
		return outbound.Finding{}, err
	}
	if o.ID != s.ExternalRef || !s.mayBeOurs(&o) {
		return outbound.Finding{}, nil
	}
	return s.foundObject(x, rs.ByLookup, &o)
}

// mayBeOurs refuses an object that shows another command's mark where ours would
// be, or none where the request carried it: the id may be an event's, and the
// event about something else.
func (s search) mayBeOurs(o *object) bool {
	var places []string
	switch s.Operation.Name {
	case orderCreate.Name:
		var created order
		if decode(o.raw, &created) != nil {
			return false
		}
		for _, u := range created.PurchaseUnits {
			places = append(places, u.CustomID)
		}
	case authorizationCapture.Name: // custom_id is the purchase unit's
		places = []string{o.InvoiceID}
	case captureRefund.Name, subscriptionCreate.Name:
		places = []string{o.CustomID}
	default:
		return true
	}
	if s.stamped() || s.Mark != "" && slices.Contains(places, s.Mark) {
		return slices.Contains(places, s.Mark)
	}
	return !slices.ContainsFunc(places, func(text string) bool {
		_, _, err := keyderive.ParseMark(text)
		return err == nil
	})
}

// orderHolding reads the order of a payment that an earlier answer named.
func (s search) orderHolding(ctx context.Context, path string, list func(*order) []object) (outbound.Finding, error) {
	var payment object
	x, err := s.read(ctx, path+s.ExternalRef, nil, &payment)
	if err != nil {
		return outbound.Finding{}, err
	}
	o, err := s.orderOf(ctx, &payment)
	if err != nil || o == nil {
		return outbound.Finding{}, err
	}
	for _, p := range list(o) {
		if p.ID == s.ExternalRef {
			r := o.result(s.Operation.Name)
			return found(x, rs.ByLookup, r, o.raw), nil
		}
	}
	return outbound.Finding{}, nil
}

// collection is where an operation's objects are read by id.
func collection(operation string) string {
	switch operation {
	case orderCreate.Name:
		return ordersPath
	case authorizationCapture.Name:
		return capturesPath
	case authorizationReauthorize.Name:
		return authorizationsPath
	case captureRefund.Name:
		return refundsPath
	case subscriptionCreate.Name:
		return subscriptionsPath
	case planCreate.Name:
		return "/v1/billing/plans/"
	case productCreate.Name:
		return "/v1/catalogs/products/"
	case setupTokenCreate.Name:
		return setupTokensPath
	case paymentTokenCreate.Name:
		return paymentTokensPath
	case invoiceCreate.Name:
		return invoicesPath
	}
	return ""
}
