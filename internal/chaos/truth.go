package chaos

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"slices"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
	"github.com/seed-6b5e302b/samekey/outbound"
)

// witness is what a fake saw and did, so far.
type witness struct {
	provider  string
	byRequest map[string]fakeprovider.LogEntry // By the provider's id of the request.
	objects   map[[32]byte][]string            // What each key made, by the key's hash.
}

func (p *provider) witness() witness {
	w := witness{p.name, map[string]fakeprovider.LogEntry{}, map[[32]byte][]string{}}
	for _, e := range p.fake.Requests("") {
		w.byRequest[e.RequestID] = e
	}
	for _, e := range p.fake.EffectList() {
		w.objects[e.KeyHash] = append(w.objects[e.KeyHash], e.Object)
	}
	return w
}

func (ps providers) witnesses() map[string]witness {
	all := map[string]witness{}
	for name, p := range ps {
		all[name] = p.witness()
	}
	return all
}

// truthful returns an error if what a reply says of itself is not what the fake
// saw: its object, and whether the answer behind it was the execution's own, a
// replay of that, or one about a later state.
func (w witness) truthful(j job, c *outbound.Client, r *outbound.Reply) error {
	key, err := c.Key(outbound.Command{ID: j.ID}, operations[j.Kind], "")
	if err != nil {
		return err
	}
	hash := sha256.Sum256([]byte(key.Raw()))
	lie := func(why string) error {
		return fmt.Errorf("%s is answered as %s (evidence %s, origin %s, request %s): %s", j.ID, r.Label, r.Evidence, r.Origin, r.RequestID, why)
	}
	// The effect of a capture is the order's, its reference the capture's.
	made := w.objects[hash]
	if !slices.Contains(made, r.ExternalRef) && !(j.Kind == paypalCapture && slices.Contains(made, j.Target)) {
		return lie(fmt.Sprintf("it names the object %s, the command made %v", r.ExternalRef, made))
	}
	e, seen := w.byRequest[r.RequestID]
	if !seen {
		return lie("the provider knows no such request")
	}
	executed := !e.Replayed && e.KeyHash == hash && e.Status < 300 && e.Method != http.MethodGet
	stored := e.Replayed && e.KeyHash == hash && w.provider == "stripe" // PayPal replays the latest status
	fromLedger := r.Origin == outbound.FromLedger
	switch {
	case r.Label == outbound.NewExecution && executed && !fromLedger:
	case r.Label == outbound.OriginalReplay && (stored || executed && fromLedger):
	case r.Label == outbound.LatestStatus:
	default:
		return lie(fmt.Sprintf("that request was %s %s, answered %d, replayed: %t", e.Method, e.Operation, e.Status, e.Replayed))
	}
	return nil
}
