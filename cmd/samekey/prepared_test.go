package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
	fakestripe "github.com/seed-6b5e302b/samekey/internal/fakeprovider/stripe"
	"github.com/seed-6b5e302b/samekey/internal/pgtest"
	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/postgres"
	"github.com/seed-6b5e302b/samekey/recordstore/sqlite"
)

// What the services of the prepared ledgers were made with.
const (
	account = "acct_shop"
	apiKey  = "sk_test_never_shown"
	sealID  = "2026"
)

var sealKey = []byte("0123456789abcdef0123456789abcdef")

// prepared is a ledger that real calls to a fake left behind, and the flags that
// lead the commands to it.
type prepared struct {
	*testing.T
	store  store
	flags  []string
	fake   *fakeprovider.Fake
	server *fakeprovider.Server
	client *outbound.Client
	charge string
}

// onBoth runs a test on a prepared ledger of each kind.
func onBoth(t *testing.T, test func(*prepared)) {
	t.Run("sqlite", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "ledger.db")
		s, err := sqlite.Open(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		test(prepare(t, s, "--sqlite", path))
	})
	t.Run("postgres", func(t *testing.T) {
		dsn := pgtest.DSN(t)
		pool := pgtest.Open(t, dsn)
		if err := postgres.Migrate(t.Context(), pool, nil); err != nil {
			t.Fatal(err)
		}
		test(prepare(t, postgres.New(pool, nil), "--dsn-file", dsnFile(t, dsn)))
	})
}

func prepare(t *testing.T, s store, flags ...string) *prepared {
	t.Helper()
	p := &prepared{T: t, store: s, flags: flags, fake: fakeprovider.New(fakestripe.New(fakestripe.Config{Account: account}), nil)}
	var err error
	if p.server, err = fakeprovider.Listen(p.fake); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.server.Close() })
	p.client, err = outbound.New(
		stripe.New(stripe.Config{Account: account, Test: true, SecretKey: apiKey, BaseURL: p.server.URL}), s,
		&outbound.Options{Bodies: outbound.Seal(outbound.SealKey{ID: sealID, Bytes: sealKey}), Retry: outbound.Retry{Attempts: 1}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.client.Close(context.WithoutCancel(t.Context())) })
	if p.charge, err = p.fake.Seed(fakestripe.Charge{Amount: 100_000, Currency: "eur"}); err != nil {
		t.Fatal(err)
	}
	return p
}

// refund refunds a part of the charge under a fault of the fake, if any, and wants
// that to end in code, "" for success.
func (p *prepared) refund(command string, fault fakeprovider.Kind, code outbound.Code) {
	p.Helper()
	if fault != "" {
		if err := p.fake.Inject(fakeprovider.Fault{Kind: fault, Operation: "refund.create"}); err != nil {
			p.Fatal(err)
		}
	}
	id, step, stepped := strings.Cut(command, "/")
	cmd := outbound.Command{ID: id}
	if stepped {
		cmd = cmd.Step(step)
	}
	_, err := p.client.Do(p.Context(), stripe.RefundCreate(cmd, url.Values{"charge": {p.charge}, "amount": {"1000"}}))
	if code == "" && err != nil || code != "" && !errors.Is(err, code) {
		p.Fatalf("%s: %v, want %q", command, err, code)
	}
}

// decline has a payment declined.
func (p *prepared) decline(command string) {
	p.Helper()
	_, err := p.client.Do(p.Context(), stripe.PaymentIntentCreate(outbound.Command{ID: command}, url.Values{
		"amount": {"5000"}, "currency": {"eur"}, "confirm": {"true"}, "payment_method": {"pm_card_chargeDeclined"},
	}))
	if !errors.Is(err, outbound.ErrRefused) {
		p.Fatalf("%s: %v, want a decline", command, err)
	}
}

// contradict has a person end an uncertain command that was applied, and then lets
// the provider report the truth: the record goes to review.
func (p *prepared) contradict(command string) {
	p.Helper()
	p.refund(command, fakeprovider.DropAfterApply, outbound.ErrUncertain)
	p.succeeds("ledger", "resolve", command, "--version", p.version(command), "--verdict", "none",
		"--force", "--name", "bob", "--reason", "I saw no refund at the dashboard")
	key, err := p.client.Key(outbound.Command{ID: command}, "refund.create", "")
	if err != nil {
		p.Fatal(err)
	}
	err = p.client.Observe(p.Context(), outbound.Observation{
		Provider: "stripe", Mark: key.Mark(), EventID: "evt_1", EventType: "refund.updated", Effect: outbound.EffectApplied,
	})
	if err != nil {
		p.Fatal(err)
	}
}

// die leaves a claim behind whose process is gone.
func (p *prepared) die(command string) {
	p.Helper()
	day, err := keyderive.Day(command)
	if err != nil {
		p.Fatal(err)
	}
	c := recordstore.Claim{
		ID: recordstore.ID{Day: day, KeyHash: [16]byte{1}}, Provider: "stripe", Account: account + "/test", Operation: "refund.create",
		CommandID: command, Class: "money", Derivation: keyderive.Version, Derivations: []string{keyderive.Version},
		Fingerprints: [][]byte{{1, 2}}, Holder: "gone", Lease: time.Microsecond, Window: time.Hour, Replay: time.Hour, Evidence: time.Hour,
	}
	if _, err := p.store.Claim(p.Context(), c); err != nil {
		p.Fatal(err)
	}
}

// run runs a command on the ledger.
func (p *prepared) run(args ...string) (string, error) {
	return samekey(p.Context(), append(args, p.flags...)...)
}

func (p *prepared) succeeds(args ...string) string {
	p.Helper()
	return succeeds(p.T, append(args, p.flags...)...)
}

// ends runs a command that ends with an exit code and an error that holds want, and
// returns what it printed.
func (p *prepared) ends(code int, want string, args ...string) string {
	p.Helper()
	out, err := p.run(args...)
	if err == nil || exitCode(err) != code || !strings.Contains(err.Error(), want) {
		p.Fatalf("%v: %v, want exit code %d and %q\n%s", args, err, code, want, out)
	}
	return out
}

// views runs a command with --json that prints an array of records.
func (p *prepared) views(args ...string) (views []recordView) {
	p.Helper()
	out, err := p.run(append(args, "--json")...)
	if err != nil && exitCode(err) != exitPerson {
		p.Fatalf("%v: %v", args, err)
	}
	if err := json.Unmarshal([]byte(out), &views); err != nil {
		p.Fatalf("%v: %v\n%s", args, err, out)
	}
	return views
}

func (p *prepared) version(command string) string {
	p.Helper()
	views := p.views("ledger", "show", command)
	if len(views) != 1 {
		p.Fatalf("%s has %d records", command, len(views))
	}
	text, _ := json.Marshal(views[0].Version)
	return string(text)
}

// shows expects words in a text.
func (p *prepared) shows(out string, words ...string) {
	p.Helper()
	flat := strings.Join(strings.Fields(out), " ")
	for _, w := range words {
		if !strings.Contains(flat, w) {
			p.Errorf("this does not say %q:\n%s", w, out)
		}
	}
	for _, secret := range []string{apiKey, string(sealKey)} {
		if strings.Contains(out, secret) {
			p.Errorf("this shows a secret:\n%s", out)
		}
	}
}
