package sqlite

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

// readOnly makes the ledger's file refuse every write, with the code that SQLite
// gives for a file or a disk that became read-only under it, or lifts that.
func readOnly(t *testing.T, s *Store, yes bool) {
	t.Helper()
	text := map[bool]string{true: "PRAGMA query_only = 1", false: "PRAGMA query_only = 0"}[yes]
	if _, err := s.writer.ExecContext(t.Context(), text); err != nil {
		t.Fatal(err)
	}
}

// R22: the file becomes read-only under a service. A call that cannot claim sends
// nothing; one that has claimed hands its answer over, unrecorded; when the file
// can be written again the answer is written down, and every effect is there once.
func TestFileBecomesReadOnly(t *testing.T) {
	ledger := openTemp(t)
	fake := providertest.Stripe(t, nil)
	charge := fake.Seed(providertest.Charge{Amount: 10_000, Currency: "eur"})
	client, err := outbound.New(stripe.New(stripe.Config{
		Account: "acct_1FakeStripe", Test: true, SecretKey: "sk_test_failures", BaseURL: fake.URL, Transport: fake.Transport(),
	}), ledger, &outbound.Options{Bodies: outbound.PlainBodies()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	refund := func(command string) (*outbound.Reply, error) {
		return client.Do(t.Context(), stripe.RefundCreate(outbound.Command{ID: command}, url.Values{"charge": {charge}, "amount": {"7"}}))
	}
	count := func(want int) {
		t.Helper()
		if e, r := fake.Effects("refund.create"), len(fake.Requests("refund.create")); e != want || r != want {
			t.Errorf("%d effects by %d requests, want %d", e, r, want)
		}
	}
	if _, err := refund("first"); err != nil {
		t.Fatal(err)
	}
	readOnly(t, ledger, true)
	_, err = refund("claim")
	if e, ours := errors.AsType[*outbound.Error](err); !ours || e.Code != outbound.ErrStore || e.Sent || e.Effect != outbound.EffectUnknown ||
		!strings.Contains(err.Error(), "readonly") || !strings.Contains(err.Error(), "nothing was sent") {
		t.Errorf("a claim on a read-only file: %v", err)
	}
	count(1)
	readOnly(t, ledger, false)

	until := make(chan struct{})
	fake.Inject(providertest.Fault{Kind: providertest.SlowApply, Operation: "refund.create", Until: until})
	settled := make(chan error)
	var reply *outbound.Reply
	go func() {
		var err error
		reply, err = refund("settlement")
		settled <- err
	}()
	fake.AwaitHeld(1)
	readOnly(t, ledger, true)
	close(until)
	if err := <-settled; err != nil || !errors.Is(reply.Unrecorded, outbound.ErrStore) || !strings.Contains(reply.Unrecorded.Error(), "readonly") {
		t.Fatalf("the answer is %+v, %v", reply, err)
	}
	readOnly(t, ledger, false)
	for end := time.Now().Add(10 * time.Second); ; {
		s, err := client.Status(t.Context(), outbound.Command{ID: "settlement"}, "refund.create")
		if err == nil && s.State == recordstore.Succeeded {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("10 s after the file can be written: %+v, %v", s, err)
		}
		<-time.After(20 * time.Millisecond)
	}
	again, err := refund("settlement")
	if err != nil || again.Origin != outbound.FromLedger || again.ExternalRef != reply.ExternalRef {
		t.Errorf("the next call gets %+v, %v", again, err)
	}
	count(2)
}
