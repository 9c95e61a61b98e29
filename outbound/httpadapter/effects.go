package httpadapter

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/outbound"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// EffectLister is an optional ability of a Codec: it shows what stands in the
// provider's own lists, whoever made it, for a report that compares a ledger with
// them. It only reads.
type EffectLister interface {
	// ListEffects hands over the effects of q's period, in any order; one may come
	// twice, as by a list and by an event. It returns what each list covered. A list
	// that failed or was not read to its end is Incomplete, which is no error: the
	// others still count. Errors are those of show, and whatever makes all lists
	// worthless, as a credential of another account.
	ListEffects(ctx context.Context, get Get, q EffectQuery, show func(ListedEffect) error) ([]Coverage, error)
}

// EffectQuery asks for the effects of one account that were made in a period.
type EffectQuery struct {
	Account     string    // The provider's own id, without the mode.
	From, Until time.Time // By the provider's clock, both included.
}

// ListedEffect is what a list or an event shows of one effect.
type ListedEffect struct {
	// Operations are those that it can be the effect of. One key or mark of another
	// operation on it says that a command caused it on the way, as the invoice's
	// payment.
	Operations []string

	Ref     string // The provider's id of the object.
	Creates bool   // The object was made by the effect: one command has at most one.

	Mark      string        // A ledger's mark that the object bears; "" for none.
	Key       keyderive.Key // The key of the request that made it, where the provider states it and a ledger made it; zero for none.
	RequestID string        // The provider's id of that request; "" where it is not told.

	At      time.Time // When it was made, by the provider's clock; zero where that is not told.
	Refused bool      // The object came to nothing, as a declined payment.
}

// Coverage is what one list covered.
type Coverage struct {
	List       string   // In the provider's words, as "/v1/refunds".
	Operations []string // Every effect of these within the period stands in it, if Incomplete is "".
	Effects    int      // That it showed.

	Incomplete string    // Why it was not read to its end; "" if it was.
	Doubt      string    // Why an effect that it does not show may exist all the same; "" if it cannot.
	UpTo       time.Time // What was made later may not be in it yet.
}

// ListEffects asks the codec, as EffectLister says. It is an error where the codec
// has no such lists.
func (a *Adapter) ListEffects(ctx context.Context, q EffectQuery, show func(ListedEffect) error) ([]Coverage, error) {
	lister, able := a.codec.(EffectLister)
	if !able {
		return nil, fmt.Errorf("%s: there are no lists of effects to compare with", a.cfg.Provider)
	}
	return lister.ListEffects(ctx, a.get(q.lookup(), ignore), q, show)
}

// lookup stands for the account in what every authorised GET needs.
func (q EffectQuery) lookup() *outbound.Lookup {
	return &outbound.Lookup{Operation: rs.Operation{Name: "list of effects"}, Account: q.Account}
}
