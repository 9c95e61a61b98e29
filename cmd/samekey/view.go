package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"io"
	"time"

	"github.com/seed-6b5e302b/samekey/cmd/samekey/explain"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/replaysemantics"
)

// recordView is a record as --json shows it. Fields are added, never renamed.
type recordView struct {
	Record    string `json:"record"` // The mark.
	Command   string `json:"command"`
	Scope     string `json:"scope_hash"`
	Provider  string `json:"provider"`
	Account   string `json:"account"`
	Operation string `json:"operation"`
	Class     string `json:"class"`
	State     string `json:"state"`
	Effect    string `json:"effect"`
	Doubt     bool   `json:"doubt"`
	Outcome   string `json:"outcome,omitempty"`
	Label     string `json:"label,omitempty"`
	Evidence  string `json:"evidence,omitempty"`
	ErrorCode string `json:"error_code,omitempty"`

	ExternalRef    string `json:"external_ref,omitempty"`
	ObjectStatus   string `json:"object_status,omitempty"`
	RequestID      string `json:"provider_request_id,omitempty"`
	ResponseStatus int    `json:"response_status,omitempty"`

	Version     int64  `json:"version"`
	Fence       int64  `json:"fence"`
	Deliveries  int    `json:"deliveries"`
	Checks      int    `json:"checks"`
	Derivation  string `json:"derivation"`
	SealedBytes int    `json:"sealed_bytes"`
	SealHint    string `json:"seal_hint,omitempty"` // Which seal key is missing here.

	Since         time.Time `json:"since"`
	CreatedAt     time.Time `json:"created_at,omitzero"`
	ClaimedAt     time.Time `json:"claimed_at,omitzero"`
	LeaseEndsAt   time.Time `json:"lease_ends_at,omitzero"`
	WindowEndsAt  time.Time `json:"window_ends_at,omitzero"`
	SentUntil     time.Time `json:"sent_until,omitzero"`
	AnsweredAt    time.Time `json:"answered_at,omitzero"`
	DueAt         time.Time `json:"due_at,omitzero"`
	NotAfter      time.Time `json:"not_after,omitzero"`
	ReplayUntil   time.Time `json:"replay_until,omitzero"`
	EvidenceUntil time.Time `json:"evidence_until,omitzero"`
	BodyPurgedAt  time.Time `json:"body_purged_at,omitzero"`

	Explained *explain.Words  `json:"explained,omitempty"`
	Timeline  []explain.Event `json:"timeline,omitempty"`
	Trail     []entryView     `json:"trail,omitempty"`
	Opened    *openedView     `json:"bodies,omitempty"`
}

// entryView is one line of a record's trail.
type entryView struct {
	At      time.Time `json:"at"`
	Version int64     `json:"version"`
	From    string    `json:"from"`
	To      string    `json:"to"`
	Kind    string    `json:"kind"`
	Actor   string    `json:"actor,omitempty"`
	Text    string    `json:"text,omitempty"`
}

// openedView is what a record's sealed fields hold.
type openedView struct {
	Method  string `json:"method,omitempty"`
	Target  string `json:"target,omitempty"`
	Request string `json:"request,omitempty"`
	Answer  string `json:"answer,omitempty"`
}

func viewOf(rec recordstore.Listed, about recordstore.About) recordView {
	return recordView{
		Record: markOf(rec.Record), Command: rec.CommandID, Scope: hex.EncodeToString(rec.Scope[:]),
		Provider: rec.Provider, Account: rec.Account, Operation: rec.Operation, Class: rec.Class,
		State: string(rec.State), Effect: outbound.EffectOfRecord(rec.Record, about.Restored).String(), Doubt: rec.Doubt,
		Outcome: rec.Outcome, Label: string(replaysemantics.Evidence(rec.Evidence).Label()), Evidence: rec.Evidence, ErrorCode: rec.ErrorCode,
		ExternalRef: rec.ExternalRef, ObjectStatus: rec.ObjectStatus, RequestID: rec.RequestID, ResponseStatus: rec.ResponseStatus,
		Version: rec.Version, Fence: rec.Fence, Deliveries: rec.Deliveries, Checks: rec.Checks, Derivation: rec.Derivation, SealedBytes: rec.Sealed,
		Since: recordstore.Since(rec.Record), CreatedAt: rec.CreatedAt, ClaimedAt: rec.ClaimedAt, LeaseEndsAt: rec.LeaseEndsAt,
		WindowEndsAt: rec.WindowEndsAt, SentUntil: rec.SentUntil, AnsweredAt: rec.AnsweredAt, DueAt: rec.DueAt, NotAfter: rec.NotAfter,
		ReplayUntil: rec.ReplayUntil, EvidenceUntil: rec.EvidenceUntil, BodyPurgedAt: rec.BodyPurgedAt,
	}
}

// withTrail adds what happened to a record.
func (v *recordView) withTrail(ctx context.Context, s store, id recordstore.ID) error {
	entries, err := s.Trail(ctx, id)
	for _, e := range entries {
		v.Trail = append(v.Trail, entryView{e.At, e.Version, string(e.From), string(e.To), e.Kind, e.Actor, e.Text})
	}
	return err
}

// writeJSON prints one value on lines of its own.
func writeJSON(out io.Writer, v any) error {
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
