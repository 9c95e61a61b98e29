package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/sqlite"
	"github.com/seed-6b5e302b/samekey/reprocess"
)

// manifestOf writes a manifest and its targets, each a refund of 10 under an event of
// its own, and returns the manifest's path.
func (p *prepared) manifestOf(dir string, m reprocess.Manifest) string {
	p.Helper()
	var lines strings.Builder
	for i := range m.TargetCount {
		fmt.Fprintf(&lines, `{"event":"evt_%d","operation":"refund.create","form":{"charge":%q,"amount":"10"}}`+"\n", i, p.charge)
	}
	m.Consumer, m.Provider, m.Targets, m.Who = "billing-refunds", "stripe", "targets.jsonl", "ada"
	m.Reason = "version 1 refunded the wrong amount"
	content, err := json.Marshal(m)
	if err != nil {
		p.Fatal(err)
	}
	path := filepath.Join(dir, "refunds-v2.json")
	for name, text := range map[string]string{path: string(content), filepath.Join(dir, "targets.jsonl"): lines.String()} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			p.Fatal(err)
		}
	}
	return path
}

// consume makes the effect of an event as the consumer's first version did.
func (p *prepared) consume(event, amount string, at time.Time) string {
	p.Helper()
	cmd, err := outbound.EventCommand(keyderive.Event{Consumer: "billing-refunds", ID: event, OccurredAt: at}, "")
	if err == nil {
		_, err = p.client.Do(p.Context(), stripe.RefundCreate(cmd, url.Values{"charge": {p.charge}, "amount": {amount}}))
	}
	if err != nil {
		p.Fatal(err)
	}
	return cmd.ID
}

// reports are the run reports beside a manifest.
func reports(t *testing.T, manifest string) (all []reprocess.Report) {
	t.Helper()
	paths, err := filepath.Glob(strings.TrimSuffix(manifest, ".json") + ".run-*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var r reprocess.Report
		if err := json.Unmarshal(content, &r); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all = append(all, r)
	}
	return all
}

// R25: plan and shadow send nothing and say what is; the run makes each effect once,
// keeps its report, and a second one sends nothing.
func TestReprocess(t *testing.T) {
	onBoth(t, func(p *prepared) {
		p.giveStripe()
		giveSealKey(p.T)
		first := p.consume("evt_0", "10", time.Time{})
		p.consume("evt_1", "7", time.Time{})
		p.shows(p.succeeds("ledger", "show", first), "refund.create", "succeeded")

		m := reprocess.Manifest{EffectVersion: 2, TargetCount: 8, ExpectedCalls: 8, ShareDone: 0.25}
		path := p.manifestOf(p.TempDir(), m)
		p.shows(p.succeeds("reprocess", "plan", path), "8 targets: 0 are done at this version", "8 would be called for", "2 applied, which will have two effects")
		p.shows(p.succeeds("reprocess", "shadow", path), "compared 8", "1 the same, 1 changed, 6 new", "a run repeats those effects")
		p.ends(exitFailed, "does not allow external writes", "reprocess", "run", path)
		if n := p.fake.Effects("refund.create"); n != 2 {
			p.Fatalf("%d effects before the run, want 2", n)
		}

		m.ExternalWrites, m.ShareDone = true, 0.9
		path = p.manifestOf(p.TempDir(), m)
		p.ends(exitPerson, "share_already_done is 0.9", "reprocess", "plan", path)
		p.ends(exitFailed, "the manifest does not fit", "reprocess", "run", path)
		m.ShareDone, m.ExpectedCalls = 0.25, 5
		path = p.manifestOf(p.TempDir(), m)
		p.ends(exitPerson, "expected_external_calls is 5, and 8 would be made", "reprocess", "plan", path)

		m.ExpectedCalls = 8
		path = p.manifestOf(p.TempDir(), m)
		p.shows(p.succeeds("reprocess", "run", path, "--rate", "1000"), "executed 8, replayed 0, failed 0, unknown 0, skipped 0")
		p.shows(p.succeeds("reprocess", "run", path, "--rate", "1000"), "executed 0, replayed 8")
		if n := p.fake.Effects("refund.create"); n != 10 {
			p.Errorf("%d effects, want the 2 of version 1 and 8 of version 2", n)
		}
		if all := reports(p.T, path); len(all) != 2 || !all[0].Finished || all[0].Executed != 8 || all[0].Manifest.Who != "ada" {
			p.Errorf("kept are %+v", all)
		}
	})
}

// A target that fails stops no other; what failed stands in the report, and an answer
// that asked for patience was waited for.
func TestReprocessGoesOnAfterFailures(t *testing.T) {
	onBoth(t, func(p *prepared) {
		p.giveStripe()
		giveSealKey(p.T)
		path := p.manifestOf(p.TempDir(), reprocess.Manifest{EffectVersion: 1, TargetCount: 6, ExpectedCalls: 6, ExternalWrites: true})
		if err := p.fake.Inject(fakeprovider.Fault{Kind: fakeprovider.Unauthorized, Operation: "refund.create"}); err != nil {
			p.Fatal(err)
		}
		p.ends(exitPerson, "1 targets failed", "reprocess", "run", path, "--rate", "1000", "--parallel", "1")
		all := reports(p.T, path)
		if len(all) != 1 || all[0].Executed != 5 || all[0].Failed != 1 || len(all[0].Failures) != 1 || all[0].Failures[0].Code != "auth" || all[0].Failures[0].Event != "evt_0" {
			p.Fatalf("kept is %+v", all)
		}
		p.shows(p.succeeds("reprocess", "run", path, "--rate", "1000"), "executed 1, replayed 5")
		if n := p.fake.Effects("refund.create"); n != 6 {
			p.Errorf("%d effects, want 6", n)
		}
	})
}

// Killing a run anywhere and starting it again: each target once.
func TestReprocessKilled(t *testing.T) {
	const targets, kills = 160, 5
	ledger := filepath.Join(t.TempDir(), "ledger.db")
	s, err := sqlite.Open(ledger, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	p := prepare(t, s, "--sqlite", ledger)
	p.giveStripe()
	giveSealKey(t)
	path := p.manifestOf(t.TempDir(), reprocess.Manifest{EffectVersion: 2, TargetCount: targets, ExpectedCalls: targets, ExternalWrites: true})
	args := append([]string{"reprocess", "run", path, "--rate", "100", "--lease", "4s"}, p.flags...)
	random := rand.New(rand.NewPCG(25, uint64(os.Getpid())))
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	for range kills {
		more := min(targets, p.fake.Effects("refund.create")+1+random.IntN(12))
		cmd := exec.CommandContext(ctx, os.Args[0], args...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		err := p.fake.Await(ctx, "refund.create", func(s fakeprovider.Snapshot) bool { return s.Effects >= more })
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // "signal: killed" is what was asked for
		if err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.CommandContext(ctx, os.Args[0], args...).CombinedOutput()
	if err != nil {
		t.Fatalf("the last run: %v\n%s", err, out)
	}
	p.shows(string(out), "failed 0, unknown 0, skipped 0")
	if n := p.fake.Effects("refund.create"); n != targets {
		t.Errorf("%d effects of %d targets", n, targets)
	}
	if n := p.fake.Report().Duplicates; n != 0 {
		t.Errorf("%d effects happened twice", n)
	}
	tally, err := p.store.Tally(ctx, recordstore.Filter{States: []recordstore.State{recordstore.Succeeded}})
	if err != nil {
		t.Fatal(err)
	}
	var done int
	for _, row := range tally {
		done += row.Records
	}
	if done != targets {
		t.Errorf("the ledger holds %d successes, want %d", done, targets)
	}
	killed, ended := 0, 0
	for _, r := range reports(t, path) {
		if r.EndedAt.IsZero() {
			killed++
		} else if r.Finished {
			ended++
		}
	}
	if killed == 0 || ended == 0 || killed+ended != kills+1 {
		t.Errorf("%d reports of killed runs and %d of ended ones after %d kills", killed, ended, kills)
	}
}

// Every command line of docs/reprocessing.md runs on a ledger as the page has it.
func TestReprocessingPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/reprocessing.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := func(language string) (lines []string) {
		for _, b := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
			lines = append(lines, strings.TrimSpace(b[1]))
		}
		return lines
	}
	manifests, targets := blocks("json"), blocks("jsonl")
	if len(manifests) == 0 || len(targets) == 0 {
		t.Fatal("the page shows no manifest or no targets")
	}
	onBoth(t, func(p *prepared) {
		p.giveStripe()
		giveSealKey(p.T)
		p.Chdir(p.TempDir())
		if err := os.WriteFile("targets.jsonl", []byte(strings.ReplaceAll(targets[0], "ch_3Nv0", p.charge)), 0o600); err != nil {
			p.Fatal(err)
		}
		if err := os.WriteFile("refunds-v2.json", []byte(manifests[0]), 0o600); err != nil {
			p.Fatal(err)
		}
		p.consume("evt_1A", "700", time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC))
		var ran int
		for _, line := range strings.Split(strings.Join(blocks("sh"), "\n"), "\n") {
			if out, err := p.run(words(line)[1:]...); err != nil {
				p.Errorf("%s: %v\n%s", line, err, out)
			}
			ran++
		}
		if ran < 5 {
			p.Errorf("the page has %d command lines", ran)
		}
		if n := p.fake.Effects("refund.create"); n != 3 {
			p.Errorf("%d effects, want one of version 1 and two of version 2", n)
		}
	})
}

// R25: under an account that is not the credential's all that was done looks undone.
// The provider is asked, before anything else is done.
func TestReprocessUnderAWrongAccount(t *testing.T) {
	onBoth(t, func(p *prepared) {
		p.giveStripe()
		giveSealKey(p.T)
		path := p.manifestOf(p.TempDir(), reprocess.Manifest{EffectVersion: 1, TargetCount: 3, ExpectedCalls: 3, ExternalWrites: true})
		p.shows(p.succeeds("reprocess", "run", path, "--rate", "1000"), "executed 3")
		refused := func(want string) {
			p.Helper()
			for _, verb := range []string{"plan", "shadow", "run"} {
				p.ends(exitFailed, want, "reprocess", verb, path)
			}
			if n := p.fake.Effects("refund.create"); n != 3 {
				p.Errorf("%d effects, want 3", n)
			}
		}
		p.Setenv(envStripe+"ACCOUNT", "acct_other")
		refused("account acct_other: the provider does not confirm that the credential is of it")
		p.Setenv(envStripe+"ACCOUNT", account)
		if err := p.fake.Inject(fakeprovider.Fault{Kind: fakeprovider.Unauthorized, Operation: "account.get", Times: -1}); err != nil {
			p.Fatal(err)
		}
		refused("nobody knows whose the credential is")
		p.fake.ClearFaults()
		p.shows(p.succeeds("reprocess", "run", path), "executed 0, replayed 3")
	})
}

// The same at PayPal, by the user's info or else by Transaction Search.
func TestReprocessUnderAWrongMerchant(t *testing.T) {
	m := newMerchantLedger(t)
	giveSealKey(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "m.json")
	for name, text := range map[string]string{
		path: `{"consumer":"c","effect_version":1,"provider":"paypal","reason":"r","who":"ada","targets":"t.jsonl",
			"number_of_targets":1,"expected_external_calls":1,"share_already_done":0,"external_writes":true}`,
		filepath.Join(dir, "t.jsonl"): `{"event":"WH-1","operation":"capture.refund","ids":["` + m.capture + `"],"json":{"amount":{"value":"1.00","currency_code":"EUR"}}}`,
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	plan := []string{"reprocess", "plan", path, "--sqlite", m.path}
	for _, fault := range []string{"", "user.get"} {
		if fault != "" {
			if err := m.fake.Inject(fakeprovider.Fault{Kind: fakeprovider.Truncate, Operation: fault, Times: -1}); err != nil {
				t.Fatal(err)
			}
		}
		t.Setenv(envPayPal+"ACCOUNT", "MERCHANT99999")
		fails(t, exitFailed, "account MERCHANT99999: the provider does not confirm", plan...)
		t.Setenv(envPayPal+"ACCOUNT", merchant)
		if out, err := samekey(t.Context(), plan...); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
}
