package stripe

import (
	"slices"
	"strings"
)

// handler performs one endpoint.
type handler = func(*exec) (object, *failure)

// getOf returns the handler of GET /v1/…/{id}.
func getOf(kind string) handler {
	return func(x *exec) (object, *failure) { return x.target(kind) }
}

// updateOf returns the handler of an update that changes metadata and texts.
func updateOf(kind, event string, fields ...string) handler {
	return func(x *exec) (object, *failure) {
		o, f := x.target(kind)
		if f != nil {
			return nil, f
		}
		meta := x.metadata(part(o, "metadata"))
		if x.err != nil {
			return nil, x.err
		}
		o["metadata"] = meta
		x.fields(o, fields...)
		if event != "" {
			x.emit(event, o)
		}
		return o, nil
	}
}

// listOf returns the handler of a top-level list. A filter compares a member of
// the object with the parameter of the same name.
func listOf(kind string, filters ...string) handler {
	return func(x *exec) (object, *failure) {
		return x.page(x.s.byKind[kind], func(o object) bool { return x.filtered(o, filters) })
	}
}

func (x *exec) filtered(o object, filters []string) bool {
	for _, name := range filters {
		if want := x.p.str(name); want != "" && text(o, name) != want {
			return false
		}
	}
	return true
}

// subscriptionList leaves canceled ones out unless a status is named.
func subscriptionList(x *exec) (object, *failure) {
	status, price := x.p.str("status"), x.p.str("price")
	return x.page(x.s.byKind["subscription"], func(o object) bool {
		switch {
		case !x.filtered(o, []string{"customer", "collection_method"}):
			return false
		case price != "" && !sells(o, price):
			return false
		case status == "all":
			return true
		case status == "":
			return text(o, "status") != "canceled"
		}
		return text(o, "status") == status
	})
}

func sells(subscription object, price string) bool {
	items, _ := part(subscription, "items")["data"].([]object)
	return slices.ContainsFunc(items, func(item object) bool { return text(part(item, "price"), "id") == price })
}

// payoutList shows payouts as they stand now.
func payoutList(x *exec) (object, *failure) {
	for _, o := range x.s.byKind["payout"] {
		x.arrive(o)
	}
	return listOf("payout", "status", "destination")(x)
}

// ownedList returns the handler of a list below a parent object.
func ownedList(parent, kind, member string) handler {
	return func(x *exec) (object, *failure) {
		if _, f := x.target(parent); f != nil {
			return nil, f
		}
		return x.page(x.s.byKind[kind], func(o object) bool { return text(o, member) == x.ids[0] })
	}
}

// page returns the newest matching objects first, as limit, starting_after,
// ending_before and created say.
func (x *exec) page(all []object, match func(object) bool) (object, *failure) {
	limit := x.limit()
	created := x.createdFilter()
	if x.err != nil {
		return nil, x.err
	}
	var items []object
	for _, o := range slices.Backward(all) {
		at := whole(o, "created")
		if at == 0 {
			at = whole(o, "date") // of an invoice item
		}
		if created(at) && match(o) {
			items = append(items, o)
		}
	}
	at := func(id string) int {
		return slices.IndexFunc(items, func(o object) bool { return text(o, "id") == id })
	}
	more := false
	if after := x.p.str("starting_after"); after != "" {
		i := at(after)
		if i < 0 {
			return nil, notFound("object", "starting_after")
		}
		items = items[i+1:]
	}
	if before := x.p.str("ending_before"); before != "" {
		i := at(before)
		if i < 0 {
			return nil, notFound("object", "ending_before")
		}
		more = i > limit
		items = items[max(0, i-limit):i]
	}
	if len(items) > limit {
		items, more = items[:limit], true
	}
	if items == nil {
		items = []object{}
	}
	return object{"object": "list", "url": x.path, "has_more": more, "data": items}, nil
}

func (x *exec) limit() int {
	n, given := x.number("limit")
	if !given {
		return 10
	}
	if n < 1 || n > 100 {
		x.bad(invalid("limit", "limit must be between 1 and 100."))
	}
	return int(n)
}

// createdFilter reads created, created[gt], created[gte], created[lt], created[lte].
func (x *exec) createdFilter() func(int64) bool {
	if at, given := x.number("created"); given {
		return func(t int64) bool { return t == at }
	}
	p := x.p.sub("created")
	gt, hasGT := x.numberIn(p, "gt", "created[gt]")
	gte, hasGTE := x.numberIn(p, "gte", "created[gte]")
	lt, hasLT := x.numberIn(p, "lt", "created[lt]")
	lte, hasLTE := x.numberIn(p, "lte", "created[lte]")
	return func(t int64) bool {
		return !(hasGT && t <= gt || hasGTE && t < gte || hasLT && t >= lt || hasLTE && t > lte)
	}
}

// eventList is GET /v1/events: the events of the last 30 days.
func eventList(x *exec) (object, *failure) {
	types := x.p.strings("types")
	if t := x.p.str("type"); t != "" {
		types = append(types, t)
	}
	return x.page(x.events(), func(o object) bool {
		return len(types) == 0 || slices.ContainsFunc(types, func(want string) bool {
			family, all := strings.CutSuffix(want, "*")
			return text(o, "type") == want || all && strings.HasPrefix(text(o, "type"), family)
		})
	})
}

func eventGet(x *exec) (object, *failure) {
	for _, o := range x.events() {
		if text(o, "id") == x.ids[0] {
			return o, nil
		}
	}
	return nil, notFound("event", "id")
}

// eventDays is how long events can be listed.
const eventDays = 30

func (x *exec) events() []object {
	var out []object
	for _, e := range x.tx.Events() {
		if e.Account != x.account || x.tx.Now.Sub(e.At).Hours() > 24*eventDays {
			continue
		}
		out = append(out, eventObject(e, x.live))
	}
	return out
}
