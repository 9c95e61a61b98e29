// Package replaysemantics says what providers do with a repeated key: the
// labels of answers, and one row of facts for each operation. It holds data and
// no behaviour; services meet it through package outbound.
package replaysemantics

// Label says what an answer is. The zero value is no label: nothing is known
// of an outcome.
type Label string

// The labels speak of the content of one answer.
const (
	NewExecution   Label = "new_execution"   // The provider executed the operation for this request.
	OriginalReplay Label = "original_replay" // The stored answer of an earlier execution.
	LatestStatus   Label = "latest_status"   // The present state, read later than the execution.
)

// Evidence is what a Label rests on, and fixes it. It is stored with a record;
// its texts never change.
type Evidence string

// The kinds of evidence.
const (
	ByReplayHeader   Evidence = "replay_header"    // The provider marked the answer as a replay.
	ByOwnRecord      Evidence = "own_record"       // The ledger's copy of an earlier answer.
	ByNoReplayHeader Evidence = "no_replay_header" // The provider marks replays, and did not mark this one.
	ByFirstDelivery  Evidence = "first_delivery"   // No other delivery of this command can have executed.
	ByStatusCode     Evidence = "status_code"      // The answer's own status; it may be a replay.
	ByLookup         Evidence = "lookup"           // Read from the provider afterwards.
	ByWebhook        Evidence = "webhook"          // The provider reported it by itself.
	ByStateGuard     Evidence = "state_guard"      // The object's state is the operation's goal.
	ByOperator       Evidence = "operator"         // A person's verdict.
)

// Label returns the label that e gives; "" for no evidence.
func (e Evidence) Label() Label {
	switch e {
	case ByReplayHeader, ByOwnRecord:
		return OriginalReplay
	case ByNoReplayHeader, ByFirstDelivery:
		return NewExecution
	case ByStatusCode, ByLookup, ByWebhook, ByStateGuard, ByOperator:
		return LatestStatus
	}
	return ""
}

// FromLedger returns the evidence of the ledger's copy of an answer that rested
// on e: a copy of an execution or of a replay is the original replayed, a copy
// of a state stays a state.
func (e Evidence) FromLedger() Evidence {
	switch e.Label() {
	case NewExecution, OriginalReplay:
		return ByOwnRecord
	}
	return e
}
