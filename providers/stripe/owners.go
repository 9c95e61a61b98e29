package stripe

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
)

const (
	ownerKnownFor = time.Minute // after that a credential's owner is asked again
	maxOwners     = 1000        // credentials whose owner is remembered
)

// owners finds out whose a credential is: a list that another account or mode
// answers proves nothing. It is safe for concurrent use.
type owners struct {
	access *access

	mu    sync.Mutex
	known map[credential]time.Time // when it was found to be the account's
}

// credential stands for a secret key and the account that it is used for,
// without showing either.
type credential [sha256.Size]byte

func newOwners(a *access) *owners {
	return &owners{access: a, known: make(map[credential]time.Time)}
}

// secret returns the key that requests of l are sent with at this moment.
func (o *owners) secret(ctx context.Context, l *outbound.Lookup) (string, error) {
	own := l.Credentials
	if len(own) == 0 {
		own = nil
	}
	return o.access.secret(ctx, l.Account, own)
}

func (o *owners) credential(ctx context.Context, l *outbound.Lookup) (credential, error) {
	key, err := o.secret(ctx, l)
	if err != nil {
		return credential{}, errNoCredential
	}
	return sha256.Sum256([]byte(l.Account + "\x00" + key)), nil
}

// statesMode reports whether the key says its mode: one of the other mode was
// refused before.
func (o *owners) statesMode(ctx context.Context, l *outbound.Lookup) bool {
	key, err := o.secret(ctx, l)
	return err == nil && keyMode(key) != ""
}

var errNoCredential = errors.New("stripe: there is no credential to check")

// check returns nil if the credential that answered l until now, which was used
// at the start too, is of l's account and of the adapter's mode.
func (o *owners) check(ctx context.Context, get httpadapter.Get, l *outbound.Lookup, used credential) error {
	if !o.knows(used) {
		if err := o.ask(ctx, get, l); err != nil {
			return err
		}
	}
	now, err := o.credential(ctx, l)
	if err != nil || now != used {
		return errors.New("stripe: the credential changed during the look-up")
	}
	o.remember(used)
	return nil
}

// CheckOwner implements httpadapter.OwnerChecker by GET /v1/account.
func (c codec) CheckOwner(ctx context.Context, get httpadapter.Get, account string) error {
	l := &outbound.Lookup{Account: account}
	used, err := c.owners.credential(ctx, l)
	if err != nil {
		return err
	}
	return c.owners.check(ctx, get, l, used)
}

// ask asks Stripe for the credential's account, and for its mode where the key
// does not state it. Sources: https://docs.stripe.com/api/accounts/retrieve,
// https://docs.stripe.com/api/balance, https://docs.stripe.com/keys.
func (o *owners) ask(ctx context.Context, get httpadapter.Get, l *outbound.Lookup) error {
	var account struct {
		ID string `json:"id"`
	}
	if err := owned(ctx, get, "/v1/account", &account); err != nil {
		return err
	}
	if want := l.Account[strings.LastIndexByte(l.Account, '/')+1:]; account.ID != want {
		return errors.New("stripe: the credential is of another account than the record's")
	}
	if o.statesMode(ctx, l) {
		return nil
	}
	var balance struct {
		Livemode *bool `json:"livemode"`
	}
	if err := owned(ctx, get, "/v1/balance", &balance); err != nil {
		return err
	}
	if balance.Livemode == nil || *balance.Livemode != (o.access.mode() == modeLive) {
		return errors.New("stripe: the credential is of another mode than the record's")
	}
	return nil
}

func owned(ctx context.Context, get httpadapter.Get, at string, into any) error {
	x, err := get(ctx, at, nil)
	if err != nil {
		return fmt.Errorf("stripe: %w", err)
	}
	if x.Status != http.StatusOK {
		return fmt.Errorf("stripe: GET %s was answered %d: without it nobody knows whose the credential is", at, x.Status)
	}
	if json.Unmarshal(x.Body, into) != nil {
		return errUnreadable
	}
	return nil
}

func (o *owners) knows(c credential) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	at, ok := o.known[c]
	return ok && time.Since(at) < ownerKnownFor
}

// remember keeps the time of the first answer, so that it is asked again.
func (o *owners) remember(c credential) {
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.DeleteFunc(o.known, func(_ credential, at time.Time) bool { return time.Since(at) >= ownerKnownFor })
	if _, ok := o.known[c]; !ok && len(o.known) < maxOwners {
		o.known[c] = time.Now()
	}
}
