package httpadapter

import (
	"context"
	"fmt"
)

// OwnerChecker is an optional ability of a Codec: it asks the provider whose the
// adapter's own credential is. The account is part of every key, so that under
// another one all that was done before looks undone.
type OwnerChecker interface {
	// CheckOwner returns nil only if the provider said that the credential is of
	// this account, in its own id without the mode. get is authorised for it.
	CheckOwner(ctx context.Context, get Get, account string) error
}

// CheckOwner asks the codec, as OwnerChecker says. It is an error where the codec
// cannot ask.
func (a *Adapter) CheckOwner(ctx context.Context, account string) error {
	checker, able := a.codec.(OwnerChecker)
	if !able {
		return fmt.Errorf("%s: it cannot be asked whose the credential is", a.cfg.Provider)
	}
	return checker.CheckOwner(ctx, a.get(EffectQuery{Account: account}.lookup(), ignore), account)
}
