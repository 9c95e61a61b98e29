package outbound

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/replaysemantics"
)

// Effect is what is known about the command's effect at the provider, by this
// call or any earlier one. The zero value is the cautious one.
type Effect uint8

// What is known of an effect.
const (
	EffectUnknown Effect = iota
	EffectNone           // A proof that no money moved.
	EffectApplied
)

// String returns "unknown", "none" or "applied".
func (e Effect) String() string {
	switch e {
	case EffectNone:
		return "none"
	case EffectApplied:
		return "applied"
	}
	return "unknown"
}

// Code says what kind of failure happened. Each is an error for errors.Is.
// Texts are stored and never change.
type Code string

// Nothing was sent by this call. What an earlier call of the command did is in
// Error.Effect: None or Applied where the ledger knows, else Unknown.
const (
	ErrInvalid             Code = "invalid"              // Our check: correct the call.
	ErrFingerprintConflict Code = "fingerprint_conflict" // This command was another request before.
	ErrOverloaded          Code = "overloaded"           // Our own bound: call again.
	ErrForgotten           Code = "forgotten"            // Older than the ledger remembers: a person decides.
	ErrStore               Code = "store"                // The ledger could not be asked: call again.
	ErrNewerRecord         Code = "newer_record"         // Written by a newer build than this one: call again there.
	ErrForbidden           Code = "forbidden"            // Options.AllowReplay refused the caller the recorded answer.
	ErrExpired             Code = "expired"              // Past NotAfter and never sent.
	ErrAbandoned           Code = "abandoned"            // A person forbade sending.
)

// The provider, or the wire, proved that the command had no effect. After an
// earlier delivery with an unknown effect these become ErrUncertain.
const (
	ErrRejected    Code = "rejected"     // The provider's validation: correct it, under a new command.
	ErrRefused     Code = "refused"      // A decline: final for this command.
	ErrAuth        Code = "auth"         // Credentials: repair, call again.
	ErrRateLimited Code = "rate_limited" // Call again after RetryAfter.
	ErrUnavailable Code = "unavailable"  // Proven that nothing was written: call again.
)

// Nobody knows yet.
const (
	ErrInFlight     Code = "in_flight"     // The same command runs elsewhere.
	ErrUncertain    Code = "uncertain"     // Sent, answer lost: the same command again is safe.
	ErrManualReview Code = "manual_review" // Nobody but a person can tell.
)

// Error returns the code's name after the package's.
func (c Code) Error() string { return "outbound: " + string(c) }

// says is what an Error's text tells beside its code.
var says = map[Code]string{
	ErrInvalid:             "nothing was sent; correct the call",
	ErrFingerprintConflict: "nothing was sent; this command was another request before",
	ErrOverloaded:          "nothing was sent; this process takes no more calls now: call again with the same command",
	ErrForgotten:           "nothing was sent; the command is older than the ledger remembers: find out at the provider whether it was executed",
	ErrStore:               "nothing was sent; the ledger could not be asked: call again with the same command",
	ErrNewerRecord:         "nothing was sent; the record was written by a newer build: call again where that build runs",
	ErrForbidden:           "nothing was sent; the caller may not see the recorded answer",
	ErrExpired:             "nothing was sent; the command's NotAfter has passed",
	ErrAbandoned:           "nothing was sent; the command was abandoned by a person",
	ErrRejected:            "not executed; the provider does not accept the request as it is: correct it under a new command, or call again once what it waits for is there",
	ErrRefused:             "the provider refused; this is final for the command",
	ErrAuth:                "not executed; the provider does not accept the credentials: repair them and call again with the same command",
	ErrRateLimited:         "not executed; the provider limits the rate: call again later with the same command",
	ErrUnavailable:         "nothing was sent; the provider could not be reached: call again with the same command",
	ErrInFlight:            "the same command runs elsewhere: call again later with the same command",
	ErrUncertain:           "it may or may not have been executed: do not treat it as failed, call again with the same command",
	ErrManualReview:        "nobody but a person can tell what became of it: resolve the record",
}

// Error is the only error of Do. Its text is one line without secrets and
// without values of the request.
type Error struct {
	Code         Code
	Effect       Effect
	Sent         bool // This call wrote to the wire, or may have.
	Provider     string
	Operation    string
	Command      Command
	ProviderCode string        // In the provider's words: "card_declined", "ORDER_ALREADY_CAPTURED".
	RequestID    string        // The provider's id of the exchange.
	RetryAfter   time.Duration // When to call again; 0 if nobody said. RetryAfter(err) tells whether to.
	Answer       *Reply        // The provider's answer behind a refusal or rejection; nil if there is none.
	Err          error         // The cause, for errors.Is and errors.As.
}

// Error returns one line of at most 2,000 bytes: what happened, what to do, and
// the cause. It holds no key, no credential and no body.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("outbound: ")
	if e.Provider != "" {
		b.WriteString(e.Provider + " ")
	}
	if e.Operation != "" {
		b.WriteString(cleanText(e.Operation) + " ")
	}
	b.WriteString(string(e.Code) + ": " + e.says())
	if e.ProviderCode != "" {
		b.WriteString(" (" + cleanText(e.ProviderCode) + ")")
	}
	if e.Err != nil {
		b.WriteString(": " + clean(strings.ReplaceAll(e.Err.Error(), "\n", "; "), 1500))
	}
	return b.String()
}

// says is what the code's text tells, made precise by what is known.
func (e *Error) says() string {
	text := says[e.Code]
	switch {
	case e.Code == ErrFingerprintConflict && e.Effect == EffectNone:
		return text + ", which had no effect: a changed request needs a new command"
	case e.Code == ErrFingerprintConflict && e.Effect == EffectApplied:
		return text + ", which was executed: a new command would be a second effect"
	case e.Code == ErrFingerprintConflict:
		return text + ", which may have been executed: call again with its first content, and make no new command before that is known"
	case e.Code == ErrStore && e.Effect == EffectApplied && e.Sent:
		return "the effect is applied; the ledger could not be told yet, and the next call replays it"
	case e.Code == ErrStore && (errors.Is(e.Err, context.Canceled) || errors.Is(e.Err, context.DeadlineExceeded)):
		return "nothing was sent; the ledger did not answer before the time was up: call again with the same command"
	case e.Code == ErrRefused && e.Effect == EffectApplied:
		return "the provider accepted it, and says that it has failed since; the record stays as it was"
	case e.Code == ErrUnavailable && errors.Is(e.Err, errUntold):
		return "the provider was asked and did not tell how the effect stands: ask again later"
	case e.Code == ErrInvalid && errors.Is(e.Err, recordstore.ErrNotFound):
		return "the ledger knows nothing of this command"
	case e.Code == ErrInvalid && errors.Is(e.Err, recordstore.ErrNotHeld):
		return "the record moved since that version, or is settled: read Status again"
	case e.Code == ErrRefused && e.Answer != nil && e.Answer.Evidence == replaysemantics.ByOperator:
		return "a person decided on " + e.Answer.AsOf.UTC().Format(time.DateOnly) + " that it had no effect, and ended it: the record's trail says who and why"
	case e.Code == ErrInvalid && e.Operation == "" && e.Command.ID == "" && !isReported(e.Err):
		return "correct the settings"
	}
	return text
}

// isReported reports whether a cause came from a call by way of a header, as package
// dropin reads it, where no names are known.
func isReported(err error) bool {
	type reported interface {
		error
		Reported()
	}
	_, is := errors.AsType[reported](err)
	return is
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is makes errors.Is(err, outbound.ErrUncertain) work.
func (e *Error) Is(target error) bool { return target == error(e.Code) }

// EffectOf is Applied for nil, and Unknown for an error that is not ours.
func EffectOf(err error) Effect {
	if err == nil {
		return EffectApplied
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Effect
	}
	return EffectUnknown
}

// RetryAfter reports whether calling again with the same command can change the
// answer, and when. It is what a job queue wants to know: snooze or stop. The
// same command again is always safe, whatever it reports. It is never more than an
// hour for an uncertain effect, whatever the provider asked for: the ledger's next
// check may settle it long before.
func RetryAfter(err error) (d time.Duration, again bool) {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return 0, false
	}
	switch e.Code {
	case ErrOverloaded, ErrUnavailable:
		d = time.Second
	case ErrStore, ErrRateLimited:
		d = 5 * time.Second
	case ErrInFlight:
		d = 10 * time.Second
	case ErrUncertain, ErrAuth, ErrNewerRecord:
		d = time.Minute
	default:
		return 0, false
	}
	if e.RetryAfter > 0 {
		d = e.RetryAfter
	}
	if e.Code == ErrUncertain {
		d = min(d, time.Hour)
	}
	return d, true
}
