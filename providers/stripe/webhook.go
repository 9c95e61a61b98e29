package stripe

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
)

// Bounds of webhooks.
const (
	maxEvent      = 1 << 20 // bytes of a body
	maxSignature  = 4 << 10 // bytes of a signature header
	maxSignatures = 16      // v1 entries in a header
)

// Verify checks the Stripe-Signature header of a webhook against body, the bytes
// as they arrived, and one or more signing secrets (whsec_…): while a secret is
// rolled, both count. A signature whose time is further than tolerance from this
// machine's clock, in either direction, is refused; Stripe's own libraries take
// 5 minutes. Errors hold neither secret nor signature.
// Source: https://docs.stripe.com/webhooks#verify-manually.
func Verify(body []byte, signature string, tolerance time.Duration, secrets ...string) error {
	switch {
	case len(secrets) == 0 || slices.Contains(secrets, ""):
		return errors.New("stripe: Verify needs the endpoint's signing secrets, whsec_…, none of them empty")
	case tolerance <= 0:
		return errors.New("stripe: Verify needs a tolerance, as 5*time.Minute")
	case len(body) > maxEvent:
		return fmt.Errorf("stripe: the event has more than %d bytes", maxEvent)
	}
	at, signatures, err := readSignature(signature)
	if err != nil {
		return err
	}
	genuine := 0
	for _, secret := range secrets {
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write([]byte(at + "."))
		mac.Write(body)
		want := mac.Sum(nil)
		for _, got := range signatures {
			if hmac.Equal(got, want) {
				genuine++
			}
		}
	}
	if genuine == 0 {
		return errors.New("stripe: no signature fits the event: it is forged or changed, or signed with another endpoint's secret")
	}
	return checkAge(at, tolerance)
}

// readSignature reads "t=1492774577,v1=5257a8…,v1=…". Other schemes are left out.
func readSignature(header string) (at string, signatures [][]byte, err error) {
	malformed := errors.New("stripe: the Stripe-Signature header is malformed: pass it as it arrived, t=…,v1=…")
	if header == "" {
		return "", nil, errors.New("stripe: the event is not signed: pass the Stripe-Signature header")
	}
	if len(header) > maxSignature {
		return "", nil, fmt.Errorf("stripe: the Stripe-Signature header has more than %d bytes", maxSignature)
	}
	for part := range strings.SplitSeq(header, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		switch {
		case !ok:
			return "", nil, malformed
		case name == "t" && at != "":
			return "", nil, malformed
		case name == "t":
			at = value
		case name == "v1":
			signature, err := hex.DecodeString(value)
			if err != nil || len(signatures) == maxSignatures {
				return "", nil, malformed
			}
			signatures = append(signatures, signature)
		}
	}
	if at == "" || len(at) > 12 || strings.ContainsFunc(at, func(r rune) bool { return r < '0' || r > '9' }) {
		return "", nil, malformed
	}
	if len(signatures) == 0 {
		return "", nil, errors.New("stripe: the Stripe-Signature header holds no signature of scheme v1")
	}
	return at, signatures, nil
}

// checkAge compares the signature's time, in digits, with the clock.
func checkAge(at string, tolerance time.Duration) error {
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		return errors.New("stripe: the Stripe-Signature header holds no time")
	}
	switch age := time.Since(time.Unix(seconds, 0)); {
	case age > tolerance:
		return fmt.Errorf("stripe: the event was signed %v ago, more than the tolerance: it is replayed or late, and Stripe signs each redelivery anew", age.Round(time.Second))
	case age < -tolerance:
		return fmt.Errorf("stripe: the event was signed %v in the future, more than the tolerance: check this machine's clock", (-age).Round(time.Second))
	}
	return nil
}

// Event reads a webhook that Verify found genuine. It reports false for events
// that no command of ours caused and that are about no object with our mark, for
// those that no operation here is followed by, and for the thin events of API v2.
// An error means that body is no event. An Observation may be about a command
// that the ledger does not know: outbound.Client.Observe decides.
func Event(body []byte) (outbound.Observation, bool, error) {
	if len(body) > maxEvent {
		return outbound.Observation{}, false, fmt.Errorf("stripe: the event has more than %d bytes", maxEvent)
	}
	var e event
	if err := json.Unmarshal(body, &e); err != nil {
		return outbound.Observation{}, false, errors.New("stripe: the body is no event: pass it as it arrived")
	}
	switch {
	case strings.HasPrefix(e.Object, "v2."):
		return outbound.Observation{}, false, nil
	case e.Object != "event" || e.ID == "" || e.Type == "":
		return outbound.Observation{}, false, errors.New("stripe: the body is no event of API v1")
	}
	var a answer
	var o object
	if json.Unmarshal(e.Data.Object, &a) != nil || json.Unmarshal(e.Data.Object, &o) != nil {
		return outbound.Observation{}, false, nil // an object of another shape than ours
	}
	seen := outbound.Observation{
		Provider: provider, Account: e.Account, EventID: e.ID, EventType: e.Type, At: time.Unix(e.Created, 0).UTC(),
	}
	if e.Livemode != nil {
		if seen.Mode = modeTest; *e.Livemode {
			seen.Mode = modeLive
		}
	}
	if causedBy(&seen, &e, &a) || marked(&seen, &a, o) {
		return seen, true, nil
	}
	return outbound.Observation{}, false, nil
}

// causedBy fills in an event that a request of ours caused.
func causedBy(seen *outbound.Observation, e *event, a *answer) bool {
	key := e.key()
	if key.IsZero() {
		return false
	}
	own := false
	for _, op := range table {
		tr := traces[op.Name]
		applied, refusedBy := slices.Contains(slices.Concat(tr.applied, tr.beside), e.Type), slices.Contains(tr.refused, e.Type)
		if !applied && !refusedBy {
			continue
		}
		seen.Operations = append(seen.Operations, op.Name)
		own = tr.object == a.Object
		if refusedBy {
			seen.Effect, seen.ProviderCode = outbound.EffectNone, a.failure()
			continue
		}
		seen.Effect = outbound.EffectApplied
		if v := judgeObject(op.Name, a); own && v.Effect == outbound.EffectApplied {
			seen.Outcome = v.Outcome
		}
	}
	if len(seen.Operations) == 0 {
		return false
	}
	seen.Key = key
	if own {
		seen.ExternalRef, seen.ObjectStatus = a.ID, a.Status
	}
	return true
}

// marked fills in an event about an object that carries a mark. An object that a
// later command changed carries that one's mark too: it is the news.
func marked(seen *outbound.Observation, a *answer, o object) bool {
	for _, field := range []string{onCapture, onUpdate, onCreated} {
		mark := o.Metadata[field]
		if !isMark(mark) {
			continue
		}
		var v outbound.Verdict
		for _, op := range table {
			if a.Object != "" && traces[op.Name].object == a.Object && markField(op) == field {
				seen.Operations = append(seen.Operations, op.Name)
				v = judgeObject(op.Name, a)
			}
		}
		if len(seen.Operations) == 0 {
			continue
		}
		seen.Mark, seen.ExternalRef, seen.ObjectStatus = mark, a.ID, a.Status
		seen.Effect, seen.Outcome, seen.ProviderCode = v.Effect, v.Outcome, v.ProviderCode
		return true
	}
	return false
}
