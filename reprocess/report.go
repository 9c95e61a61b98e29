package reprocess

import (
	"encoding/json"
	"time"
)

// Report is what became of a run. Executed, Replayed, Failed, Unknown and Skipped
// together are Targets.
type Report struct {
	Digest    string    `json:"digest"`
	Manifest  Manifest  `json:"manifest"`
	StartedAt time.Time `json:"started_at"`
	EndedAt   time.Time `json:"ended_at,omitzero"` // Missing: it runs, or was killed.
	Finished  bool      `json:"finished"`          // Every target was tried.
	Stopped   string    `json:"stopped,omitempty"` // Why it is not finished.
	Targets   int       `json:"targets"`
	Executed  int       `json:"executed"` // This run had the provider's answer: the effect is there.
	Replayed  int       `json:"replayed"` // The ledger had it: nothing was sent.
	Failed    int       `json:"failed"`   // No effect of this request: a refusal, or a conflict with another one.
	Unknown   int       `json:"unknown"`  // Nobody knows yet, or only a person may decide.
	Skipped   int       `json:"skipped"`  // Not tried.
	Failures  []Failure `json:"failures"` // Of failed and unknown targets, the first 1000 in the file's order.

	path string
	kind map[*Target]outcome
}

// Failure is a target that was tried without success.
type Failure struct {
	Line         int    `json:"line"` // Of the targets' file.
	Event        string `json:"event"`
	Operation    string `json:"operation"`
	Command      string `json:"command,omitempty"` // For samekey ledger show.
	Code         string `json:"code"`              // Of package outbound.
	Effect       string `json:"effect"`
	ProviderCode string `json:"provider_code,omitempty"`
	RequestID    string `json:"request_id,omitempty"` // The provider's.
}

// Path is where the report is kept.
func (r *Report) Path() string { return r.path }

// outcome is what became of a target; "" for nothing yet.
type outcome string

const (
	executed outcome = "executed"
	replayed outcome = "replayed"
	failed   outcome = "failed"
	unknown  outcome = "unknown"
)

// move counts t as kind, and no longer as what it was.
func (r *Report) move(t *Target, kind outcome) {
	if r.kind == nil {
		r.kind = make(map[*Target]outcome)
	}
	*r.counter(r.kind[t])--
	*r.counter(kind)++
	r.kind[t] = kind
}

func (r *Report) counter(kind outcome) *int {
	switch kind {
	case executed:
		return &r.Executed
	case replayed:
		return &r.Replayed
	case failed:
		return &r.Failed
	case unknown:
		return &r.Unknown
	}
	return &r.Skipped
}

// keep writes the report as it is now.
func (w *work) keep() error {
	w.report.Failures = w.report.Failures[:0]
	for _, t := range w.batch.targets {
		if f, is := w.failed[t]; is && len(w.report.Failures) < maxFailures {
			w.report.Failures = append(w.report.Failures, f)
		}
	}
	content, err := json.MarshalIndent(&w.report, "", "  ")
	if err != nil {
		return err
	}
	return keep(w.report.path, append(content, '\n'))
}
