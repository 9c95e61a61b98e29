package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/internal/audit"
	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
)

// giveStripe puts the credentials of the prepared ledger's fake into the environment.
func (p *prepared) giveStripe() {
	for name, value := range map[string]string{"ACCOUNT": account, "KEY": apiKey, "TEST": "1", "URL": p.server.URL} {
		p.Setenv(envStripe+name, value)
	}
}

// others refunds a part of the charge as a program does that does not call through
// the ledger, with a key of its own and this mark, if any.
func (p *prepared) others(key, mark string) {
	p.Helper()
	form := url.Values{"charge": {p.charge}, "amount": {"10"}}
	if mark != "" {
		form.Set("metadata[samekey_command]", mark)
	}
	r, err := http.NewRequestWithContext(p.Context(), http.MethodPost, p.server.URL+"/v1/refunds", strings.NewReader(form.Encode()))
	if err != nil {
		p.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Authorization", "Bearer "+apiKey)
	r.Header.Set("Idempotency-Key", key)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		p.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		p.Fatalf("the refund was answered %d", answer.StatusCode)
	}
}

func (p *prepared) mark(command string) string {
	p.Helper()
	key, err := p.client.Key(outbound.Command{ID: command}, "refund.create", "")
	if err != nil {
		p.Fatal(err)
	}
	return key.Mark()
}

// audit runs an audit of the last hour, which must end with an exit code, and
// returns its report. Neither form of it may hold a key, ours or another's.
func (p *prepared) audit(code int, args ...string) *audit.Report {
	p.Helper()
	args = append([]string{"audit", "--since", "1h"}, args...)
	text, err := p.run(args...)
	if got := exitCodeOf(err); got != code {
		p.Fatalf("%v: exit code %d, want %d: %v\n%s", args, got, code, err, text)
	}
	out, err := stdout(p.Context(), append(append(args, "--json"), p.flags...)...)
	if got := exitCodeOf(err); got != code {
		p.Fatalf("%v --json: exit code %d, want %d: %v\n%s", args, got, code, err, out)
	}
	for _, e := range p.fake.Events() {
		if e.Key != "" && strings.Contains(text+out, e.Key) {
			p.Errorf("%v shows a raw key", args)
		}
	}
	p.shows(text + out) // which hunts for secrets
	var all audited
	if err := json.Unmarshal([]byte(out), &all); err != nil || len(all.Reports) != 1 {
		p.Fatalf("%v: %d reports, %v\n%s", args, len(all.Reports), err, out)
	}
	return all.Reports[0]
}

// stdout runs a command line and returns what it printed there: progress stands on
// standard error.
func stdout(ctx context.Context, args ...string) (string, error) {
	var out bytes.Buffer
	cmd := root()
	cmd.SetOut(&out)
	cmd.SetErr(io.Discard)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(ctx)
	return out.String(), err
}

func exitCodeOf(err error) int {
	if err == nil {
		return 0
	}
	return exitCode(err)
}

// named returns the finding of a command, and fails unless there is exactly one.
func (p *prepared) named(r *audit.Report, command string) audit.Finding {
	p.Helper()
	var found []audit.Finding
	for _, f := range r.Findings {
		if f.Command == command {
			found = append(found, f)
		}
	}
	if len(found) != 1 {
		p.Fatalf("%s has %d findings: %+v", command, len(found), r.Findings)
	}
	return found[0]
}

// Every class is told apart, on both kinds of ledger: what agrees, what others made,
// a duplicate under a fresh key, a mark without a record, an open record whose effect
// is there, which a reconciler then settles.
func TestAudit(t *testing.T) {
	onBoth(t, func(p *prepared) {
		p.giveStripe()
		giveSealKey(t)
		p.refund("refund-1", "", "")
		p.refund("refund-2", "", "")
		p.refund("refund-401", fakeprovider.Unauthorized, outbound.ErrAuth)
		p.decline("payment-1")
		clean := p.audit(0)
		p.shows(p.succeeds("audit", "--since", "1h"), "stripe acct_shop/test", "everything that can be compared agrees", "OUTSIDE")
		if clean.Matched < 2 || clean.Counts[audit.Outside] != clean.Effects-clean.Matched || !clean.Complete || clean.Records != 4 {
			t.Errorf("a clean run says %+v", clean)
		}
		outside := clean.Counts[audit.Outside] // what the charge was made with

		p.others("key-of-somebody-else", "")
		if r := p.audit(0); r.Counts[audit.Outside] != outside+1 {
			t.Errorf("with one made outside: %+v", r)
		}
		if r := p.audit(exitPerson, "--strict"); len(r.Counts) != 1 {
			t.Errorf("strictly: %+v", r.Counts)
		}

		p.others("a-fresh-key", p.mark("refund-2"))
		if f := p.named(p.audit(exitPerson), "refund-2"); f.Class != audit.Duplicate || len(f.Refs) != 2 || f.Record != p.mark("refund-2") {
			t.Errorf("the duplicate is %+v", f)
		}
		p.others("another-fresh-key", p.mark("refund-never"))
		r := p.audit(exitPerson)
		i := slices.IndexFunc(r.Findings, func(f audit.Finding) bool { return f.Class == audit.Unrecorded })
		if i < 0 || r.Findings[i].Record != p.mark("refund-never") || !strings.Contains(r.Findings[i].Why, "not purged here") {
			t.Errorf("a mark without a record: %+v", r.Findings)
		}

		p.refund("refund-lost", fakeprovider.DropAfterApply, outbound.ErrUncertain)
		if f := p.named(p.audit(exitPerson), "refund-lost"); f.Class != audit.Unsettled || f.State != "uncertain" {
			t.Errorf("the open one is %+v", f)
		}
		text, _ := p.run("audit", "--since", "1h", "--provider", "stripe")
		p.shows(text, "DUPLICATE 1:", "UNRECORDED 1:", "UNSETTLED 1:", "refund.create refund-lost uncertain", "samekey reconcile --once")
		p.wake("refund-lost")
		p.succeeds("reconcile", "--once")
		if r := p.audit(exitPerson); r.Counts[audit.Unsettled] != 0 || r.Counts[audit.Duplicate] != 1 {
			t.Errorf("once reconciled: %+v", r.Counts)
		}

		p.contradict("refund-3")
		p.succeeds("ledger", "resolve", "refund-3", "--version", p.version("refund-3"), "--verdict", "none", "--force", "--name", "bob", "--reason", "no")
		if f := p.named(p.audit(exitPerson), "refund-3"); f.Class != audit.Contradicted {
			t.Errorf("denied by a person: %+v", f)
		}
	})
}

// An applied record whose effect is gone is missing; a list that was not read to its
// end says nothing of the sort.
func TestAuditMissing(t *testing.T) {
	onBoth(t, func(p *prepared) {
		p.giveStripe()
		p.refund("refund-1", "", "")
		p.fake.Reset()
		f := p.named(p.audit(exitPerson), "refund-1")
		if f.Class != audit.Missing || len(f.Refs) != 1 || !strings.HasPrefix(f.Refs[0], "re_") {
			t.Errorf("found %+v", f)
		}
		for _, kind := range []fakeprovider.Kind{fakeprovider.RateLimit, fakeprovider.Truncate, fakeprovider.DropBeforeApply, fakeprovider.HTML502} {
			if err := p.fake.Inject(fakeprovider.Fault{Kind: kind, Operation: "refund.list", Times: -1}); err != nil {
				t.Fatal(err)
			}
			r := p.audit(exitFailed)
			if r.Complete || r.Counts[audit.Missing] != 0 || r.NotYetKnown["/v1/refunds was not read to its end"] != 1 {
				t.Errorf("under %s: %+v", kind, r)
			}
			p.fake.ClearFaults()
		}
		if err := p.fake.Inject(fakeprovider.Fault{Kind: fakeprovider.Unauthorized, Operation: "account.get", Times: -1}); err != nil {
			t.Fatal(err)
		}
		p.ends(exitFailed, "nobody knows whose the credential is", "audit", "--since", "1h")
		p.fake.ClearFaults()
		t.Setenv(envStripe+"ACCOUNT", "acct_other")
		p.ends(exitFailed, "the audit could not complete", "audit", "--since", "1h")
	})
}

// A provider whose clock is ahead by less than two hours makes nothing missing; one
// that is farther apart makes the lists incomplete.
func TestAuditClocks(t *testing.T) {
	onBoth(t, func(p *prepared) {
		p.giveStripe()
		for _, ahead := range []time.Duration{3 * time.Minute, 107 * time.Minute} {
			p.fake.Advance(ahead)
			p.refund("refund-"+ahead.String(), "", "")
			if r := p.audit(0); !r.Complete || r.Matched != r.Records {
				t.Errorf("%s further ahead: %+v", ahead, r)
			}
		}
		p.fake.Advance(70 * time.Minute)
		if r := p.audit(exitFailed); r.Complete || len(r.Findings) != r.Counts[audit.Outside] {
			t.Errorf("3 hours ahead: %+v", r)
		}
	})
}

// Second effects that were sent under the name of another account are found.
func TestAuditWrongAccount(t *testing.T) {
	onBoth(t, func(p *prepared) {
		p.giveStripe()
		p.refund("refund-1", "", "")
		right := p.client
		wrong, err := outbound.New(
			stripe.New(stripe.Config{Account: "acct_wrong", Test: true, SecretKey: apiKey, BaseURL: p.server.URL}), p.store,
			&outbound.Options{Bodies: outbound.Seal(outbound.SealKey{ID: sealID, Bytes: sealKey}), Retry: outbound.Retry{Attempts: 1}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = wrong.Close(context.WithoutCancel(t.Context())) })
		p.client = wrong
		p.refund("refund-1", "", "")
		p.refund("refund-2", "", "")
		p.client = right
		r := p.audit(exitPerson)
		if r.Counts[audit.Duplicate] != 1 || r.Counts[audit.Foreign] != 1 || len(r.Accounts) != 0 {
			t.Errorf("found %+v, left alone %v", r.Findings, r.Accounts)
		}
		if f := p.named(r, "refund-1"); f.Class != audit.Duplicate || len(f.Refs) != 2 {
			t.Errorf("the one that was sent under both is %+v", f)
		}
		text, _ := p.run("audit", "--since", "1h")
		p.shows(text, "FOREIGN 1:", "names account acct_wrong/test: the setting of the account was wrong when it was sent")
	})
}

// A secret that is given must be the ledger's; none need be.
func TestAuditSecret(t *testing.T) {
	onBoth(t, func(p *prepared) {
		t.Setenv(envSecret, "")
		t.Setenv(envStripe+"TEST", "1\n") // as from a file
		p.giveStripe()
		p.refund("refund-1", "", "")
		p.audit(0)
		t.Setenv(envSecret, base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32)))
		p.ends(exitFailed, envSecret+": ", "audit", "--since", "1h")
		t.Setenv(envSecret, "?")
		p.ends(exitFailed, "is no base64", "audit", "--since", "1h")
	})
}

// A list is read page by page to its end, within a limit, and can be interrupted.
func TestAuditPages(t *testing.T) {
	onBoth(t, func(p *prepared) {
		p.giveStripe()
		p.refund("refund-first", fakeprovider.DropAfterApply, outbound.ErrUncertain)
		for i := range 105 {
			p.others(fmt.Sprint("others-", i), "")
		}
		r := p.audit(exitPerson)
		if f := p.named(r, "refund-first"); f.Class != audit.Unsettled || r.Counts[audit.Outside] < 105 {
			t.Errorf("on the second page: %+v, %+v", f, r.Counts)
		}
		if n := len(p.fake.Requests("refund.list")); n < 4 { // two pages for each form of the report
			t.Errorf("the refunds were read in %d pages", n)
		}
		if err := p.fake.Inject(fakeprovider.Fault{Kind: fakeprovider.DropBeforeApply, Operation: "customer.list", Times: -1}); err != nil {
			t.Fatal(err)
		}
		out := p.ends(exitPerson, "1 found, and there may be more", "audit", "--since", "1h")
		p.shows(out, "UNSETTLED 1:", "INCOMPLETE /v1/customers: stripe: list of effects: the look-up failed")
		p.fake.ClearFaults()
		p.ends(exitFailed, "ask for a shorter time, or raise the limit", "audit", "--since", "1h", "--limit", "50")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := samekey(ctx, append([]string{"audit", "--since", "1h"}, p.flags...)...); exitCodeOf(err) != exitFailed {
			t.Errorf("interrupted: %v", err)
		}
	})
}

// What is wrong with the command line is said in one line.
func TestAuditUsage(t *testing.T) {
	t.Setenv(envDSN, "")
	ledger := []string{"--sqlite", "ledger.db"}
	for want, args := range map[string][]string{
		"--since is missing":                     {"audit"},
		"only stripe and paypal have lists":      {"audit", "--since", "1h", "--provider", "adyen"},
		"--limit 0 holds nothing":                {"audit", "--since", "1h", "--limit", "0"},
		"write day, time and zone":               {"audit", "--since", "yesterday"},
		`unknown command "1h" for "samekey audi`: {"audit", "1h"},
	} {
		fails(t, exitUsage, want, append(args, ledger...)...)
	}
	fails(t, exitUsage, "no ledger is named", "audit", "--since", "1h")
	help, err := stdout(t.Context(), "audit", "--help")
	if err != nil || !strings.Contains(help, envSecret) || strings.Contains(help, envSealKeys) || strings.Contains(help, envBodies) {
		t.Errorf("the help names what is not read: %v\n%s", err, help)
	}
}

// Every command line of docs/audit.md runs, and the page names every class.
func TestAuditPage(t *testing.T) {
	content, err := os.ReadFile("../../docs/audit.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(content)
	for _, class := range audit.Classes() {
		if !strings.Contains(page, "| `"+string(class)+"` |") {
			t.Errorf("the page does not say what %s means", class)
		}
	}
	var lines []string
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(page, -1) {
		lines = append(lines, strings.Split(strings.TrimSpace(block[1]), "\n")...)
	}
	if len(lines) < 4 {
		t.Fatalf("the page has %d command lines", len(lines))
	}
	onBoth(t, func(p *prepared) {
		p.giveStripe()
		p.refund("refund-1", "", "")
		for _, line := range lines {
			if out, err := p.run(words(line)[1:]...); err != nil {
				t.Errorf("%s: %v\n%s", line, err, out)
			}
		}
	})
}
