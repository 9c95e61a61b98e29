package paypal

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
)

// CheckOwner implements httpadapter.OwnerChecker: by the user's info, which PayPal
// shows to apps with the scope paypalattributes, else by Transaction Search, whose
// pages name the account.
func (codec) CheckOwner(ctx context.Context, get httpadapter.Get, account string) error {
	s := search{get: get, Lookup: &outbound.Lookup{Account: account}}
	if own, err := s.ownAccount(ctx); err == nil && own {
		return nil
	}
	day := time.Now().UTC().Add(-48 * time.Hour).Truncate(time.Second) // so old that PayPal has it all
	var page struct {
		Account string `json:"account_number"`
	}
	_, err := s.read(ctx, transactionsPath, url.Values{
		"start_date": {day.Format(time.RFC3339)}, "end_date": {day.Add(time.Hour).Format(time.RFC3339)},
		"fields": {"transaction_info"},
	}, &page)
	switch {
	case err != nil:
		return fmt.Errorf("paypal: nobody knows whose the credential is: allow the app Transaction Search, or the scope paypalattributes: %w", err)
	case page.Account != account:
		return errors.New("paypal: the credential is of another account than the one asked about")
	}
	return nil
}
