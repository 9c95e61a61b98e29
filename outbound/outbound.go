// Package outbound calls providers so that one command has at most one effect
// for each operation, whatever times out, crashes or runs twice.
//
//	payments, err := outbound.New(stripe.New(cfg), postgres.New(pool, nil), &outbound.Options{
//		Bodies: outbound.Seal(outbound.SealKey{ID: "2026", Bytes: key}),
//	})
//	reply, err := payments.Do(ctx, stripe.RefundCreate(outbound.Command{ID: refund.ID}, params))
//
// A record is written to the ledger before the first byte is sent. Every answer
// says what it is: a new execution, the original replayed, or the latest status.
// What nobody knows is ErrUncertain, never a failure.
//
// Authors of adapters find their contract in Adapter, and for HTTP in package
// httpadapter. To put samekey under an SDK that is already in use, see package
// dropin.
package outbound

import (
	"context"
	"encoding/json"
	"time"

	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/replaysemantics"
)

// Label says what an answer is. It stands here so that callers import this
// package only.
type Label = replaysemantics.Label

// Evidence is what a Label rests on.
type Evidence = replaysemantics.Evidence

// The labels of answers.
const (
	NewExecution   = replaysemantics.NewExecution
	OriginalReplay = replaysemantics.OriginalReplay
	LatestStatus   = replaysemantics.LatestStatus
)

// Origin says who answered.
type Origin string

// The origins.
const (
	FromProvider Origin = "provider"
	FromLedger   Origin = "ledger"
)

// Call is one operation of one command. Provider packages make it; a Call that
// could not be made carries Err, and Do reports it as ErrInvalid.
type Call struct {
	Command   Command
	Operation string
	Account   string // The provider's own account id. Defaults to the adapter's.
	Message   Message

	// Wait bounds how long Do waits for the same command running elsewhere.
	// 0 means Options.Wait; negative means not at all.
	Wait time.Duration

	// ResendAfterAbsence asks for a resend of an operation without a key after a
	// look-up proved that the effect is absent, where the operation's row allows it.
	ResendAfterAbsence bool

	Credentials []Field // The caller's own, for a drop-in; never stored. None: the adapter's.
	Err         error
}

// Reply is an answer to an effect that was applied. Applied is not paid: look
// at Outcome and ObjectStatus.
type Reply struct {
	Command      Command
	Operation    string
	Label        Label // "" only where the recorded answer is gone and could not be looked up.
	Evidence     Evidence
	Origin       Origin
	Outcome      Outcome
	ExternalRef  string // "re_…", "4XJ…".
	ObjectStatus string // "COMPLETED", "pending", in the provider's words; "" if it has none.
	RequestID    string // The provider's id of this exchange.
	StatusCode   int    // HTTP or gRPC.
	Header       []Field
	Body         []byte    // Has the shape of the operation's own success answer, look-ups too.
	AsOf         time.Time // When the answer was true; zero for an answer that was just received.
	Deliveries   int       // Requests that may have reached the wire for this command so far.

	// Unrecorded says why the ledger does not hold this answer yet: ErrStore or
	// recordstore.ErrNotHeld. The effect stands; the next call replays it.
	Unrecorded error
}

// Decode decodes the body as JSON.
func (r *Reply) Decode(v any) error { return json.Unmarshal(r.Body, v) }

// Options are the optional settings of a Client. Every zero value is usable,
// but a durable ledger needs Bodies.
type Options struct {
	Bodies    Sealer                              // Required for durable ledgers: Seal, PlainBodies or NoBodies.
	Secret    keyderive.Secret                    // The ledger's secret, never changed. Defaults to none.
	Retention map[replaysemantics.Class]Retention // Defaults: money 7 and 400 days, objects 3 and 90, notifications 1 and 30.
	Lease     time.Duration                       // Defaults to 120 s.
	Wait      time.Duration                       // Defaults to 0: ErrInFlight at once.
	Retry     Retry

	ClaimTimeout  time.Duration // Of one claim. Defaults to 2 s.
	SettleTimeout time.Duration // Of one try to settle. Defaults to 5 s.
	WindowMargin  time.Duration // Taken off every provider's window, half of it at most: how late a request may arrive. Defaults to Lease and Horizon together, 17 minutes.
	Horizon       time.Duration // How long after the last possible delivery a look-up that finds nothing proves nothing, where the operation's row states none. Defaults to 15 minutes.
	FirstCheck    time.Duration // When a call that ended uncertain is looked at first; the pauses after it are ReconcilerOptions.Ladder's. Defaults to 1 minute.
	MaxBody       int64         // Bytes of a request, and of its answer. Defaults to 4 MiB.
	MaxLookup     int64         // Bytes of one answer to a look-up, as a page of a list of hundreds. Defaults to 8 MiB.

	// Accounts are those whose records a Reconciler works on with this client, by
	// the provider's own id. Defaults to all of the adapter's mode: state them where
	// one ledger serves several platforms of one provider.
	Accounts []string

	// EffectVersions are the consumers of events whose effect version was raised by
	// a manifest, and up to which: see EventCommand, and package reprocess, which
	// makes it of manifests. Not changed afterwards. Defaults to none.
	EffectVersions map[string]int

	// KeysOnly is the switch for a ledger that is down, and for leaving samekey:
	// true sends once with the derived key, writes no record, and refuses
	// operations that have no key. Asked at every call. Defaults to never.
	KeysOnly func(context.Context) bool

	// AllowReplay is asked before a recorded answer is given: an error refuses it
	// to the present caller. Defaults to always.
	AllowReplay func(ctx context.Context, recorded *Reply) error

	Telemetry Telemetry
}

// Retention is how long records of one class are kept: the answer for replays,
// then the evidence without bodies. Both count from the claim.
type Retention struct{ Replay, Evidence time.Duration }

// Retry bounds the attempts of one call. All carry the same key and bytes.
type Retry struct {
	Attempts         int           // Defaults to 4.
	MinWait, MaxWait time.Duration // Back-off, jittered. Default to 500 ms and 10 s.
	MaxRetryAfter    time.Duration // A longer Retry-After ends the call. Defaults to 20 s.
	AttemptTimeout   time.Duration // Of one attempt. Defaults to 20 s, or half the lease if that is shorter.
	CallTimeout      time.Duration // Of all attempts. Defaults to 45 s, or three quarters of the lease if that is shorter.
}

// Status is what the ledger knows about one operation of a command.
type Status struct {
	State   recordstore.State
	Effect  Effect
	Reply   *Reply // nil unless Succeeded.
	Version int64
	DueAt   time.Time // When it is looked at next; zero if it is not due.
}
