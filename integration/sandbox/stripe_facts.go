package main

import rs "github.com/seed-6b5e302b/samekey/replaysemantics"

const (
	rowStored   = "status and body of the first execution are stored, 402 and 500 too; validation failures and concurrent conflicts are not"
	rowMismatch = "the same key with other parameters is an error of type idempotency_error"
)

var stripeReplayFacts = []fact{
	{id: "first", grade: rs.Wire, states: "a first answer echoes the key and is its own Original-Request",
		want: []string{"key echoed true, Original-Request equal true, replay header false"}},
	{id: "should_retry", grade: rs.Wire, states: "a first 200 carries Stripe-Should-Retry: false", want: []string{"false"}},
	{id: "replay", grade: rs.Documented, states: "Idempotent-Replayed: true marks a replay, which is the first answer",
		want: []string{"200 replayed, same body true, Original-Request of the first true, new Request-Id true"},
		rows: []string{"Idempotent-Replayed: true marks a replay", rowStored}},
	{id: "version", grade: rs.Unverified, states: "the same key and parameters under another Stripe-Version", want: []string{"200, replayed"}},
	{id: "metadata", grade: rs.Documented, states: "metadata: entries with other names stay", want: []string{"a=1 b=2"},
		rows: []string{"takes metadata; entries with other names stay"}},
	{id: "delete", grade: rs.Documented, states: "a key has no effect on DELETE; a customer can be deleted", want: []string{"200, deleted true"},
		rows: []string{"a key has no effect on GET and DELETE, which are idempotent by themselves", "a customer can be deleted"}},
}

var stripeMismatchFacts = []fact{
	{id: "parameters", grade: rs.Documented, states: "the same key with other parameters", want: []string{"400 idempotency_error"}, rows: []string{rowMismatch}},
	{id: "metadata_added", grade: rs.Reported, states: "the same key with metadata added", want: []string{"400 idempotency_error"},
		rows: []string{"metadata added on a retry changes the parameters and breaks the replay"}},
	{id: "path", grade: rs.Reported, states: "the same key at another path", want: []string{"400 idempotency_error"},
		rows: []string{"the endpoint's path, with the id in it, counts as a parameter"}},
}

var stripeLimitFacts = []fact{
	{id: "length", grade: rs.Documented, states: "a key has at most 255 characters", want: []string{"255: 200, 256: 400"},
		rows: []string{"every POST takes Idempotency-Key, 1 to 255 characters"}},
	{id: "credential", grade: rs.Documented, states: "a bad credential is refused before the key is looked at", want: []string{"401 invalid_request_error, executed"},
		rows: []string{"429 and 401 are answered before the key is looked at"}},
}

var stripeFailureFacts = []fact{
	{id: "validation", grade: rs.Documented, states: "a validation failure leaves the key free",
		want: []string{"400 invalid_request_error parameter_unknown, then 200, executed"}, rows: []string{rowStored}},
	{id: "decline", grade: rs.Documented, states: "a declined card", want: []string{"402 card_error card_declined"}},
	{id: "decline_kept", grade: rs.Documented, states: "a decline is kept, and its replay says so",
		want: []string{"402 card_error card_declined, replayed"}, rows: []string{rowStored, "Idempotent-Replayed stands on replayed errors too"}},
	{id: "guard", grade: rs.Documented, states: "a payment intent that is cancelled cannot be cancelled",
		want: []string{"400 invalid_request_error payment_intent_unexpected_state"},
		rows: []string{"a resend that no key stops any more: refused by the object's state", "the object's states, and which of them are final"}},
	{id: "guard_kept", grade: rs.Documented, states: "a refusal by the object's state is kept",
		want: []string{"400 invalid_request_error payment_intent_unexpected_state, replayed"}, rows: []string{rowStored}},
	{id: "missing", grade: rs.Documented, states: "an object that is not there", want: []string{"404 invalid_request_error resource_missing"}},
	{id: "missing_kept", grade: rs.Unverified, states: "whether a 404 is kept", want: []string{"executed"}, setting: "KeepNotFound"},
}

var stripeFlightFacts = []fact{
	{id: "one", grade: rs.Documented, states: "equal requests at once under one key have one effect", want: []string{"1"}, rows: []string{rowStored}},
	{id: "conflict", grade: rs.Documented, states: "a request whose key is in use", rows: []string{rowStored},
		want: []string{"409 invalid_request_error idempotency_key_in_use", "409 idempotency_error idempotency_key_in_use"}},
}

var stripeRefundFacts = []fact{
	{id: "partial", grade: rs.Documented, states: "a partial refund under another key refunds again", want: []string{"2 refunds"},
		rows: []string{"a resend that no key stops any more: a full refund is refused, a partial one refunds again"}},
	{id: "full", grade: rs.Documented, states: "a refund of what is refunded", want: []string{"400 invalid_request_error charge_already_refunded"},
		rows: []string{"a resend that no key stops any more: a full refund is refused, a partial one refunds again"}},
}

var stripeReadFacts = []fact{
	{id: "list", grade: rs.Documented, states: "a top-level list is consistent at once", want: []string{"found"},
		rows: []string{"top-level lists are consistent at once; a search is not"}},
	{id: "event", grade: rs.Documented, states: "an event names the key of the request", want: []string{"the key true"},
		rows: []string{"an event names the key of the request that caused it; events are listed for 30 days"}},
	{id: "search", grade: rs.Documented, states: "a search finds metadata, later", want: []string{"found"}},
}

var stripeAccountFacts = []fact{
	{id: "account", grade: rs.Unverified, states: "the same key under another Stripe-Account", want: []string{"executed"}, setting: "KeysAcrossAccounts"},
}

const rowV2 = "a resend after success returns the object's present state, a resend after failure executes again"

var stripeV2Facts = []fact{
	{id: "v2.failure", grade: rs.Documented, states: "v2: a resend after a failure executes", want: []string{"400, then 200", "400, then 201"}, rows: []string{rowV2}},
	{id: "v2.resend", grade: rs.Documented, states: "v2: a resend after a success gives the present state",
		want: []string{"200, same object true, description second", "201, same object true, description second"},
		rows: []string{rowV2, "POST and DELETE take Idempotency-Key, scoped to the API and the account or sandbox"}},
	{id: "v2.header", grade: rs.Unverified, states: "v2: whether a replay says so", want: []string{"replay header false"}, setting: "V2ReplayHeader"},
	{id: "v2.mismatch", grade: rs.Unverified, states: "v2: the same key with other parameters",
		want: []string{"400 idempotency_error, same object false"}, setting: "V2IgnoresBody"},
	{id: "v2.version", grade: rs.Documented, states: "v2: Stripe-Version is required", want: []string{"400"}, rows: []string{"JSON bodies; Stripe-Version is required"}},
	{id: "v2.delete", grade: rs.Documented, states: "v2: DELETE takes a key", want: []string{"200"},
		rows: []string{"POST and DELETE take Idempotency-Key, scoped to the API and the account or sandbox"}},
	{id: "v2.gone", grade: rs.Documented, states: "v2: an event destination can be deleted", want: []string{"404"},
		rows: []string{"an event destination can be deleted"}},
}
