package stripe

import (
	"maps"
	"strconv"
	"time"
)

// freshV2 returns a new v2 object, not yet stored. It differs from v1 in its times.
func (x *exec) freshV2(kind, prefix string) object {
	o := x.fresh(kind, prefix)
	o["created"] = x.tx.Now.Format(time.RFC3339)
	return o
}

// metadataV2 merges the request's metadata; null removes a name.
func (x *exec) metadataV2(old object) object {
	p := x.p.sub("metadata")
	texts := params{}
	for k, v := range p {
		if v == nil {
			v = ""
		}
		texts[k] = v
	}
	whole := x.p
	x.p = params{"metadata": texts}
	out := x.metadata(old)
	x.p = whole
	return out
}

// given copies members as they came; absent ones are left as they are.
func (x *exec) given(o object, names ...string) {
	for _, n := range names {
		v, set := x.p[n]
		if !set {
			continue
		}
		if v == nil {
			delete(o, n)
			continue
		}
		if p, isObject := v.(params); isObject {
			v = object(p)
		}
		o[n] = v
	}
}

// destinationCreate is POST /v2/core/event_destinations.
func destinationCreate(x *exec) (object, *failure) {
	x.need("name")
	kind := x.oneOf("type", "webhook_endpoint", "amazon_eventbridge", "azure_event_grid")
	payload := x.oneOf("event_payload", "thin", "snapshot")
	events, ok := x.p["enabled_events"].([]any)
	if !ok || len(events) == 0 {
		x.bad(missing("enabled_events"))
	}
	url := x.p.sub("webhook_endpoint").str("url")
	if kind == "webhook_endpoint" && url == "" {
		x.bad(missing("webhook_endpoint.url"))
	}
	meta := x.metadataV2(nil)
	if x.err != nil {
		return nil, x.err
	}
	o := x.freshV2("v2.core.event_destination", "ed")
	maps.Copy(o, object{"type": kind, "event_payload": payload, "enabled_events": events, "metadata": meta,
		"status": "enabled", "status_details": nil, "updated": o["created"], "description": "", "events_from": []string{"self"}})
	x.given(o, "name", "description", "events_from", "snapshot_api_version")
	if kind == "webhook_endpoint" {
		o["webhook_endpoint"] = object{"url": url, "signing_secret": nil}
	}
	return x.store(o), nil
}

func destinationUpdate(x *exec) (object, *failure) {
	o, f := x.target("v2.core.event_destination")
	if f != nil {
		return nil, f
	}
	meta := x.metadataV2(part(o, "metadata"))
	if x.err != nil {
		return nil, x.err
	}
	o["metadata"], o["updated"] = meta, x.tx.Now.Format(time.RFC3339)
	x.given(o, "name", "description", "enabled_events")
	if url := x.p.sub("webhook_endpoint").str("url"); url != "" {
		o["webhook_endpoint"] = object{"url": url, "signing_secret": nil}
	}
	return o, nil
}

// destinationSwitch returns the handler that enables or disables a destination.
func destinationSwitch(status string) handler {
	return func(x *exec) (object, *failure) {
		o, f := x.target("v2.core.event_destination")
		if f != nil {
			return nil, f
		}
		o["status"], o["updated"] = status, x.tx.Now.Format(time.RFC3339)
		return o, nil
	}
}

func destinationDelete(x *exec) (object, *failure) {
	o, f := x.target("v2.core.event_destination")
	if f != nil {
		return nil, f
	}
	gone := object{"id": text(o, "id"), "object": text(o, "object"), "deleted": true}
	x.s.remove(o, gone)
	return gone, nil
}

// accountMembers are the members of an account that come back as they were sent.
var accountMembers = []string{"contact_email", "contact_phone", "dashboard", "defaults", "display_name", "configuration", "identity"}

// accountCreate is POST /v2/core/accounts.
func accountCreate(x *exec) (object, *failure) {
	meta := x.metadataV2(nil)
	if x.err != nil {
		return nil, x.err
	}
	o := x.freshV2("v2.core.account", "acct")
	maps.Copy(o, object{"applied_configurations": x.configurations(), "metadata": meta, "closed": false})
	x.given(o, accountMembers...)
	return x.store(o), nil
}

func (x *exec) configurations() []string {
	out := []string{}
	for _, n := range []string{"customer", "merchant", "recipient"} {
		if x.p.sub("configuration").sub(n) != nil {
			out = append(out, n)
		}
	}
	return out
}

func accountUpdate(x *exec) (object, *failure) {
	o, f := x.target("v2.core.account")
	if f != nil {
		return nil, f
	}
	meta := x.metadataV2(part(o, "metadata"))
	if x.err != nil {
		return nil, x.err
	}
	if o["closed"] == true {
		return nil, guard("", "A closed account cannot be changed.")
	}
	o["metadata"] = meta
	x.given(o, accountMembers...)
	return o, nil
}

func accountClose(x *exec) (object, *failure) {
	o, f := x.target("v2.core.account")
	if f != nil {
		return nil, f
	}
	o["closed"] = true
	return o, nil
}

// listV2 returns the handler of a v2 list, newest first. Its pages are named by
// where they start.
func listV2(kind string) handler {
	return func(x *exec) (object, *failure) {
		limit, start := x.limit(), 0
		if page := x.p.str("page"); page != "" {
			n, err := strconv.Atoi(page)
			if err != nil || n < 0 {
				return nil, invalid("page", "page is not a page of this list.")
			}
			start = n
		}
		if x.err != nil {
			return nil, x.err
		}
		all := x.s.byKind[kind]
		items := []object{}
		for i := len(all) - 1 - start; i >= 0 && len(items) < limit; i-- {
			items = append(items, all[i])
		}
		var next any
		if end := start + len(items); end < len(all) {
			next = x.path + "?page=" + strconv.Itoa(end) + "&limit=" + strconv.Itoa(limit)
		}
		return object{"data": items, "next_page_url": next, "previous_page_url": nil}, nil
	}
}
