package stripe

import (
	"slices"
	"strings"

	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// conclusive are the event types that settle a record without a look-up: those
// that a look-up would rest on too, of an operation that leaves nothing else.
var conclusive = map[string][]string{
	"invoice.send": {"invoice.sent"},
}

// lookup says how the operation's effect is found when the answer is lost; ""
// means that it cannot be.
func (r row) lookup() string {
	var ways []string
	c, listed := collections[r.name]
	g, guarded := goals[r.name]
	switch {
	case listed:
		ways = append(ways, "by its id", "GET "+r.collection()+" with "+c.parameters(r.name)+", comparing the mark")
	case r.name == "v2.account.close":
		ways = append(ways, "GET by id: closed is the goal")
	case guarded && r.mark != noMark:
		ways = append(ways, "GET by id, comparing the mark", "the state of a whole capture: "+g.words())
	case guarded:
		ways = append(ways, "GET by id: "+g.words())
	case r.mark != noMark:
		ways = append(ways, "GET by id, comparing the mark")
	}
	tr := traces[r.name]
	if types := slices.Concat(tr.applied, tr.refused); len(types) > 0 {
		ways = append(ways, "the key in the events "+strings.Join(types, ", "))
	}
	text := strings.Join(ways, "; else ")
	if listed && c.doubt != "" {
		text += ". Finding nothing proves nothing: " + c.doubt
	}
	return text
}

// collection is the path of the list that the new object stands in.
func (r row) collection() string {
	if r.name == "payout.reverse" {
		return "/v1/payouts"
	}
	return r.path
}

func (c collection) parameters(operation string) string {
	names := []string{"created"}
	if strings.HasPrefix(operation, "v2.") || operation == "transfer_reversal.create" {
		return "no filter"
	}
	if operation == "subscription.create" {
		names = append(names, "status=all")
	}
	return strings.Join(slices.Concat(names, c.filters, c.loose), ", ")
}

func (g goal) words() string {
	text := strings.Join(g.reached, ", ") + " is the goal"
	if len(g.missed) > 0 {
		text += ", " + strings.Join(g.missed, ", ") + " a refusal"
	}
	return text
}

// absence says what a proof needs that there is no effect; "" means that nothing
// proves it.
func (r row) absence() string {
	const asked = "; the credential is the record's, by GET /v1/account"
	if c, listed := collections[r.name]; listed && c.doubt == "" {
		text := "the list was read to its end, by a clock no more than 2 h from the ledger's"
		if len(c.loose) > 0 {
			text += ", without " + strings.Join(c.loose, ", ")
		}
		text += "; the mark was in the request, and no object without a mark may be the one"
		if len(c.fixed) > 0 {
			text += " (one with another " + strings.Join(c.fixed, ", ") + " is not)"
		}
		return text + asked
	}
	if g := goals[r.name]; len(g.before) > 0 {
		text := "the state is " + strings.Join(g.before, ", ") + ", to which nothing leads back"
		if r.name == "payment_intent.capture" {
			text += ", and nothing was received"
		}
		return text + asked
	}
	return ""
}

// lookupFacts are the sources of what the look-up rests on.
func (r row) lookupFacts() (facts []rs.Fact) {
	c, listed := collections[r.name]
	switch {
	case listed && c.doubt == "":
		facts = append(facts,
			documented("the object cannot be deleted, and stays listed in every state", pageAPI+r.page),
			documented("the account's owner can change metadata: an object without a mark may have lost it", pageMetadata),
			documented("top-level lists are consistent at once; a search is not", pageSearch))
	case listed && c.doubt == nested:
		facts = append(facts, rs.Fact{States: "a list below an object is consistent at once", URL: pageAPI + r.page, Read: factsRead})
	case listed:
		facts = append(facts, documented(c.doubt, pageAPI+r.page))
	}
	if r.name == "subscription.create" {
		facts = append(facts, documented("canceled subscriptions are listed with status=all only", pageAPI+"/subscriptions/list"))
	}
	if _, guarded := goals[r.name]; guarded {
		facts = append(facts, documented("the object's states, and which of them are final", pageAPI+r.page))
	}
	if tr := traces[r.name]; len(tr.applied)+len(tr.refused) > 0 {
		facts = append(facts, documented("an event names the key of the request that caused it; events are listed for 30 days", pageAPI+"/events"))
	}
	return facts
}
