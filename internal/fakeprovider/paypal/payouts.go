package paypal

import (
	"time"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
)

// batch is a payout batch.
type batch struct {
	id      string
	denied  bool
	header  object // sender_batch_header as it came
	total   money
	items   []*batchItem
	created time.Time
}

type batchItem struct {
	id, transactionID string
	batch             *batch
	amount            money
	fields            object // as they came
}

const (
	maxBatchID = 256
	maxItems   = 15000
	// settling is how long a batch takes on the provider's clock.
	settling = time.Minute
)

// createPayout is POST /v1/payments/payouts. Only sender_batch_id deduplicates:
// the header alone does not (PayPal-Java-SDK#379).
func createPayout(x *exec) (reply, *failure) {
	b := x.body()
	head := b.sub("sender_batch_header")
	if head.o == nil && x.err == nil {
		b.bad("MISSING_REQUIRED_PARAMETER", "sender_batch_header", "The batch needs a header.")
	}
	head.text("sender_batch_id", maxBatchID)
	next := &batch{header: head.o, created: x.tx.Now, denied: x.mock == "DENIED"}
	for i, f := range b.list("items", maxItems) {
		f.need("receiver", maxText)
		f.text("recipient_type", 13)
		f.text("sender_item_id", 63)
		m, given := f.amount("amount", "currency")
		switch {
		case !given:
			f.bad("MISSING_REQUIRED_PARAMETER", "amount", "An item needs an amount.")
		case i > 0 && m.currency != next.total.currency:
			f.bad("INVALID_PARAMETER_VALUE", "amount/currency", "The items of a batch have one currency.")
		}
		next.total = money{m.currency, next.total.minor + m.minor}
		next.items = append(next.items, &batchItem{batch: next, amount: m, fields: f.o})
	}
	if x.err != nil {
		return reply{}, x.err
	}
	x.s.addBatch(x.tx, next)
	if !next.denied {
		for _, it := range next.items {
			x.record(&transaction{id: it.transactionID, code: "T0001", at: x.tx.Now, status: "S",
				amount: money{it.amount.currency, -it.amount.minor}, custom: text(it.fields, "sender_item_id")})
		}
		x.tx.Effect(next.id)
	}
	x.publish("PAYMENT.PAYOUTSBATCH.PROCESSING", viewBatchHeader(x, next.id))
	return reply{id: next.id}, nil
}

// addBatch gives ids to a batch and its items and keeps them.
func (s *state) addBatch(tx *fakeprovider.Tx, b *batch) {
	b.id = tx.Token(13, upperDigits)
	s.batches[b.id] = b
	for _, it := range b.items {
		it.id, it.transactionID = tx.Token(13, upperDigits), paymentID(tx)
		s.batchItems[it.id] = it
	}
}

func getPayout(x *exec) (reply, *failure) {
	if x.s.batches[x.ids[0]] == nil {
		return reply{}, notFound("payout_batch_id")
	}
	return reply{id: x.ids[0]}, nil
}

func getPayoutItem(x *exec) (reply, *failure) {
	if x.s.batchItems[x.ids[0]] == nil {
		return reply{}, notFound("payout_item_id")
	}
	return reply{id: x.ids[0]}, nil
}

// status of a batch and of its items at the time of a request.
func (b *batch) status(now time.Time) (batch, item string) {
	switch {
	case b.denied:
		return "DENIED", "DENIED"
	case now.Before(b.created.Add(settling)):
		return "PENDING", "PENDING"
	}
	return "SUCCESS", "SUCCESS"
}

// viewBatchHeader is what the creation of a batch answers: no items yet.
func viewBatchHeader(x *exec, id string) object {
	b := x.s.batches[id]
	status, _ := b.status(x.tx.Now)
	head := object{"payout_batch_id": b.id, "batch_status": status, "sender_batch_header": b.header,
		"time_created": stamp(b.created)}
	return object{"batch_header": head, "links": []object{x.link("/v1/payments/payouts/"+b.id, "self", "GET")}}
}

func viewBatch(x *exec, id string) object {
	b := x.s.batches[id]
	v := viewBatchHeader(x, id)
	head := v["batch_header"].(object)
	head["amount"] = b.total.viewV1()
	head["fees"] = money{currency: b.total.currency}.viewV1()
	if status, _ := b.status(x.tx.Now); status == "SUCCESS" {
		head["time_completed"] = stamp(b.created.Add(settling))
	}
	items := make([]object, len(b.items))
	for i, it := range b.items {
		items[i] = viewBatchItem(x, it.id)
	}
	v["items"], v["total_items"], v["total_pages"] = items, len(items), 1
	return v
}

func viewBatchItem(x *exec, id string) object {
	it := x.s.batchItems[id]
	_, status := it.batch.status(x.tx.Now)
	v := object{"payout_item_id": it.id, "transaction_status": status, "payout_batch_id": it.batch.id,
		"payout_item": it.fields, "payout_item_fee": money{currency: it.batch.total.currency}.viewV1(),
		"links": []object{x.link("/v1/payments/payouts-item/"+it.id, "item", "GET"),
			x.link("/v1/payments/payouts/"+it.batch.id, "batch", "GET")}}
	if status == "SUCCESS" {
		v["transaction_id"], v["time_processed"] = it.transactionID, stamp(it.batch.created.Add(settling))
	}
	return v
}
