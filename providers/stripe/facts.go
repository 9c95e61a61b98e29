package stripe

import (
	"strings"

	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

const (
	factsRead = "2026-11-30"

	pageIdempotency = "https://docs.stripe.com/api/idempotent_requests"
	pageErrors      = "https://docs.stripe.com/error-low-level"
	pageErrorCodes  = "https://docs.stripe.com/error-codes"
	pageRateLimits  = "https://docs.stripe.com/rate-limits"
	pageMetadata    = "https://docs.stripe.com/metadata"
	pageSearch      = "https://docs.stripe.com/search#data-freshness"
	pageV2          = "https://docs.stripe.com/api-v2-overview"
	pageAPI         = "https://docs.stripe.com/api"
)

func documented(states, url string) rs.Fact {
	return rs.Fact{States: states, URL: url, Read: factsRead, Grade: rs.Documented}
}

func reported(states, url string) rs.Fact {
	return rs.Fact{States: states, URL: url, Read: factsRead, Grade: rs.Reported}
}

// factsV1 hold for every POST of API v1.
func factsV1() []rs.Fact {
	return []rs.Fact{
		documented("every POST takes Idempotency-Key, 1 to 255 characters", pageIdempotency),
		documented("window 24h: a key may be pruned after that, and a later reuse executes again", pageIdempotency),
		documented("status and body of the first execution are stored, 402 and 500 too; validation failures and concurrent conflicts are not", pageIdempotency),
		documented("429 and 401 are answered before the key is looked at", pageErrors),
		documented("the same key with other parameters is an error of type idempotency_error", pageIdempotency),
		reported("the endpoint's path, with the id in it, counts as a parameter", "https://github.com/stripe/stripe-ruby/issues/598"),
		documented("Idempotent-Replayed: true marks a replay", pageErrors+"#sending-idempotency-keys"),
		reported("Idempotent-Replayed stands on replayed errors too", "https://github.com/stripe/stripe-ruby/issues/905"),
		documented("a 500 is indeterminate, and the stored one never changes", pageErrors),
		documented("429 lock_timeout is a locked object, 429 rate_limit a limiter", pageRateLimits),
	}
}

// factsDelete hold for every DELETE of API v1.
func factsDelete() []rs.Fact {
	return []rs.Fact{
		documented("a key has no effect on GET and DELETE, which are idempotent by themselves", pageIdempotency),
	}
}

// factsV2 hold for every POST and DELETE of API v2.
func factsV2() []rs.Fact {
	return []rs.Fact{
		documented("POST and DELETE take Idempotency-Key, scoped to the API and the account or sandbox", pageV2),
		documented("window 30d", pageV2),
		documented("a resend after success returns the object's present state, a resend after failure executes again", pageV2),
		documented("JSON bodies; Stripe-Version is required", pageV2),
	}
}

// facts hold for one operation.
func (r row) facts() []rs.Fact {
	facts := []rs.Fact{documented("method, path and parameters", pageAPI+r.page)}
	if r.mark == noMark {
		facts = append(facts, documented("takes no metadata", pageAPI+r.page))
	} else {
		facts = append(facts,
			documented("takes metadata; entries with other names stay", pageMetadata),
			reported("metadata added on a retry changes the parameters and breaks the replay", "https://github.com/stripe/stripe-java/issues/389"))
	}
	source := pageIdempotency
	if strings.HasPrefix(r.again, guarded) {
		source = pageErrorCodes
	}
	facts = append(facts, documented("a resend that no key stops any more: "+r.again, source))
	return append(facts, r.lookupFacts()...)
}
