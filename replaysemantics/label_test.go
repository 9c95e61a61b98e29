package replaysemantics_test

import (
	"testing"

	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// R11: evidence fixes the label, and the ledger's copy of an answer is never
// taken for a new execution. The texts stand in ledgers and never change.
func TestEvidence(t *testing.T) {
	for _, c := range []struct {
		evidence rs.Evidence
		text     string
		label    rs.Label
		copied   rs.Evidence
	}{
		{rs.ByReplayHeader, "replay_header", rs.OriginalReplay, rs.ByOwnRecord},
		{rs.ByOwnRecord, "own_record", rs.OriginalReplay, rs.ByOwnRecord},
		{rs.ByNoReplayHeader, "no_replay_header", rs.NewExecution, rs.ByOwnRecord},
		{rs.ByFirstDelivery, "first_delivery", rs.NewExecution, rs.ByOwnRecord},
		{rs.ByStatusCode, "status_code", rs.LatestStatus, rs.ByStatusCode},
		{rs.ByLookup, "lookup", rs.LatestStatus, rs.ByLookup},
		{rs.ByWebhook, "webhook", rs.LatestStatus, rs.ByWebhook},
		{rs.ByStateGuard, "state_guard", rs.LatestStatus, rs.ByStateGuard},
		{rs.ByOperator, "operator", rs.LatestStatus, rs.ByOperator},
		{"", "", "", ""},
		{"create_time", "create_time", "", "create_time"}, // of a later build: no label
	} {
		if string(c.evidence) != c.text || c.evidence.Label() != c.label {
			t.Errorf("%q gives %q, want %q and %q", c.evidence, c.evidence.Label(), c.text, c.label)
		}
		copied := c.evidence.FromLedger()
		if copied != c.copied || copied.Label() == rs.NewExecution {
			t.Errorf("the ledger's copy of %q rests on %q, want %q", c.evidence, copied, c.copied)
		}
		if copied.FromLedger() != copied {
			t.Errorf("a copy of a copy of %q rests on %q", c.evidence, copied.FromLedger())
		}
	}
	for label, text := range map[rs.Label]string{rs.NewExecution: "new_execution", rs.OriginalReplay: "original_replay", rs.LatestStatus: "latest_status"} {
		if string(label) != text {
			t.Errorf("label %q, want %q", label, text)
		}
	}
}
