package main

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/cmd/samekey/explain"
	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

// A stranger answers from the ledger alone: what happened to this refund, and is it
// safe to press the button.
func TestShowAnswersAStranger(t *testing.T) {
	onBoth(t, func(p *prepared) {
		today := outbound.NewCommandID()
		p.refund(today, "", "")
		p.refund("refund-lost", fakeprovider.DropAfterApply, outbound.ErrUncertain)
		p.refund("refund-401", fakeprovider.Unauthorized, outbound.ErrAuth)
		p.decline("payment-1")
		p.contradict("refund-review")
		p.die("refund-died")

		out := p.succeeds("ledger", "show", today)
		p.shows(out, "stripe refund.create command "+today, "succeeded since", "effect applied", "The provider executed it: re_",
			"Yes: the recorded answer is given again, and nothing is sent.", "claim", "answer", "HTTP 200", "executed now, by the provider's own mark")
		p.shows(p.succeeds("ledger", "show", "refund-lost"), "effect unknown", "it may have been executed. It is not failed.",
			"Yes, with the same command ID only", "Never under a new command ID", "check no. 1 finds out", "---- now", "window ends")
		p.shows(p.succeeds("ledger", "show", "refund-401"), "not_executed", "effect none", "the provider accepted nothing", "Yes: the same command sends it again, once.")
		p.shows(p.succeeds("ledger", "show", "payment-1"), "refused", "card_declined", "No money moved", "is a new command")
		p.shows(p.succeeds("ledger", "show", "refund-died"), "died or hangs", "if a reconciler runs", "lease ends")
		p.shows(p.ends(exitPerson, "1 record waits for a person", "ledger", "show", "refund-review"),
			"manual_review", "bob decided on ", "that it had no effect (none), and on ", "the provider said that it was executed (webhook: refund.updated evt_1)", "nothing is sent", "at re_", "--verdict applied --external-ref re_",
			"verdict uncertain → refused: I saw no refund at the dashboard (bob)", "webhook refused → manual_review: refund.updated evt_1",
			"samekey ledger resolve", "--version")

		key, err := p.client.Key(outbound.Command{ID: today}, "refund.create", "")
		if err != nil {
			t.Fatal(err)
		}
		if byMark := p.succeeds("ledger", "show", key.Mark()); !strings.Contains(byMark, today) {
			t.Errorf("by its mark: %s", byMark)
		}
		for _, out := range []string{out, p.succeeds("ledger", "show", today, "--json")} {
			if strings.Contains(out, key.Raw()) {
				t.Errorf("this shows the key:\n%s", out)
			}
		}
	})
}

// A record is found by the provider's own ids, as JSON too, and a command with its
// steps.
func TestShowFinds(t *testing.T) {
	onBoth(t, func(p *prepared) {
		p.refund("ord_1", "", "")
		p.refund("ord_1/line-1", "", "")
		p.refund("ord_10", "", "")
		all := p.views("ledger", "show", "ord_1")
		if len(all) != 2 || all[0].Command != "ord_1" || all[1].Command != "ord_1/line-1" {
			t.Fatalf("ord_1 has %d records", len(all))
		}
		v := all[1]
		if v.Effect != "applied" || v.Label != string(outbound.NewExecution) || v.Explained == nil || len(v.Timeline) == 0 || v.SealedBytes == 0 {
			t.Errorf("the view is %+v", v)
		}
		for _, by := range [][]string{{"--external-ref", v.ExternalRef}, {"--request-id", v.RequestID}, {v.Record}, {"ord_1/line-1", "--operation", "refund.create"}} {
			found := p.views(append([]string{"ledger", "show"}, by...)...)
			if len(found) != 1 || found[0].Record != v.Record {
				t.Errorf("%v finds %d records", by, len(found))
			}
		}
		p.ends(exitNothing, "never sent through this ledger", "ledger", "show", "ord_2")
		p.ends(exitNothing, `--provider "paypl" is none that this build knows`, "ledger", "show", "ord_1", "--provider", "paypl")
		p.ends(exitNothing, "is it refund.create,", "ledger", "show", "ord_1", "--operation", "refund.creat")
		p.ends(exitNothing, "no record of command ord_1 with --provider paypal. Leave that out", "ledger", "show", "ord_1", "--provider", "paypal")
		p.ends(exitNothing, "external reference re_none", "ledger", "show", "--external-ref", "re_none")
		p.ends(exitUsage, "has 2 records", "ledger", "abandon", "ord_1", "--name", "ada", "--reason", "x")
		old, err := keyderive.CommandID(time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC), "refund", "1")
		if err != nil {
			t.Fatal(err)
		}
		day, err := keyderive.Day(old)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.store.(recordstore.Forgetter).RaiseFrontier(t.Context(), "money", day+1); err != nil {
			t.Fatal(err)
		}
		p.ends(exitNothing, "of 2026-03-04, and records up to 2026-03-05 may have been removed", "ledger", "show", old)
	})
}

// Bodies are shown on demand and to those who have the seal key only.
func TestShowBodies(t *testing.T) {
	onBoth(t, func(p *prepared) {
		p.refund("refund-1", fakeprovider.DropAfterApply, outbound.ErrUncertain)
		p.refund("refund-2", "", "")
		if out := p.succeeds("ledger", "show", "refund-1"); strings.Contains(out, p.charge) {
			t.Errorf("without --bodies this shows one:\n%s", out)
		}
		t.Setenv(envSealKeys, "")
		p.ends(exitFailed, envSealKeys, "ledger", "show", "refund-1", "--bodies")
		t.Setenv(envSealKeys, "2027="+base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", 32))))
		p.ends(exitFailed, `key "2026" sealed the bodies and is not in `+envSealKeys, "ledger", "show", "refund-1", "--bodies")
		giveSealKey(t)
		p.shows(p.succeeds("ledger", "show", "refund-1", "--bodies"), "POST /v1/refunds", "charge="+p.charge, "Answer: none is kept")
		p.shows(p.succeeds("ledger", "show", "refund-2", "--bodies"), "Request: none is kept", `"object":"refund"`)
	})
}

func giveSealKey(t *testing.T) {
	t.Helper()
	t.Setenv(envSealKeys, sealID+"="+base64.StdEncoding.EncodeToString(sealKey))
}

// What is stuck and since when, and what only a person can decide.
func TestOpenAndReview(t *testing.T) {
	onBoth(t, func(p *prepared) {
		p.shows(p.succeeds("ledger", "open"), "nothing is open")
		p.shows(p.succeeds("ledger", "review"), "nothing is in review")
		p.refund("refund-ok", "", "")
		p.refund("refund-lost", fakeprovider.DropAfterApply, outbound.ErrUncertain)
		p.die("refund-died")
		out := p.succeeds("ledger", "open")
		p.shows(out, "WAITS SINCE STATE", "uncertain stripe refund.create refund-lost in", "sending stripe refund.create refund-died the sweep")
		if strings.Contains(out, "refund-ok") {
			t.Errorf("a settled record is called open:\n%s", out)
		}
		p.shows(p.succeeds("ledger", "open", "--older-than", "1h"), "nothing is open")
		p.shows(p.succeeds("ledger", "open", "--state", "sending"), "refund-died")

		p.contradict("refund-review")
		p.shows(p.ends(exitPerson, "1 record waits for a person", "ledger", "open", "--newest"), "refund-review a person", "refund-lost")
		p.shows(p.ends(exitPerson, "1 record waits", "ledger", "review"), "manual_review stripe refund.create refund-review a person")
		var l listed
		if err := json.Unmarshal([]byte(p.ends(exitPerson, "", "ledger", "open", "--json", "--limit", "2")), &l); err == nil && (len(l.Records) != 2 || !l.More) {
			t.Errorf("%d records, more %v; want 2 and more", len(l.Records), l.More)
		}
		p.shows(p.ends(exitPerson, "", "ledger", "open", "--limit", "2"), "more follow")
		p.shows(p.succeeds("ledger", "open", "--provider", "paypal"), "nothing is open")
	})
}

// Who decided what: a verdict needs the version seen, a reason and a name, and two
// people cannot decide against each other.
func TestResolve(t *testing.T) {
	onBoth(t, func(p *prepared) {
		p.refund("refund-1", fakeprovider.DropAfterApply, outbound.ErrUncertain)
		seen := p.version("refund-1")
		verdict := func(verdict, name string) []string {
			return []string{"ledger", "resolve", "refund-1", "--version", seen, "--verdict", verdict, "--name", name, "--reason", "re_9 is at the dashboard", "--external-ref", "re_9"}
		}
		p.shows(p.succeeds(verdict("applied", "ada")...), "resolved: stripe refund.create of refund-1 is now succeeded", "by ada", "nothing is sent")
		p.ends(exitMoved, "you saw version "+seen, verdict("none", "bob")...)
		p.shows(p.succeeds("ledger", "show", "refund-1"), "ada decided on", "that it was executed", "re_9 is at the dashboard (ada)")
		if out := p.succeeds("ledger", "show", "refund-1"); strings.Contains(out, "bob") {
			t.Errorf("the refused verdict is in the trail:\n%s", out)
		}
		p.refund("refund-1", "", "") // replayed: the client believes the verdict
		if n := p.fake.Effects("refund.create"); n != 1 {
			t.Errorf("%d effects, want 1", n)
		}

		p.refund("refund-2", fakeprovider.DropBeforeApply, outbound.ErrUncertain)
		p.shows(p.succeeds("ledger", "resolve", "refund-2", "--version", p.version("refund-2"), "--verdict", "send-again", "--force", "--name", "ada", "--reason", "never arrived"),
			"is now not_executed", "What happened? ada decided on", "a person's word, not the provider's", "Is it safe to press the button?", "the same command sends it again")
		p.refund("refund-2", "", "")
		p.ends(exitMoved, "it is settled", "ledger", "resolve", "refund-2", "--version", p.version("refund-2"), "--verdict", "none", "--name", "ada", "--reason", "x")
		p.ends(exitNothing, "no record", "ledger", "resolve", "refund-3", "--version", "1", "--verdict", "none", "--name", "ada", "--reason", "x")
		p.ends(exitFailed, "on one line", "ledger", "resolve", "refund-2", "--version", "1", "--verdict", "none", "--name", "ada", "--reason", "two\nlines")
	})
}

// Nobody can know that nothing came while a request may be under way: none and
// send-again wait for the horizon, and who forces them is told what to wait for.
func TestResolveWaitsForTheHorizon(t *testing.T) {
	onBoth(t, func(p *prepared) {
		p.refund("refund-1", fakeprovider.DropAfterApply, outbound.ErrUncertain)
		before := p.version("refund-1")
		resolve := func(verdict string, more ...string) []string {
			return append([]string{"ledger", "resolve", "refund-1", "--version", before, "--verdict", verdict, "--name", "ada", "--reason", "not there"}, more...)
		}
		for _, verdict := range []string{"none", "send-again"} {
			p.ends(exitFailed, "nothing was changed: it cannot be known yet", resolve(verdict)...)
			p.ends(exitFailed, "may be executed up to 15 min after that; --force decides anyway", resolve(verdict)...)
		}
		if now := p.version("refund-1"); now != before {
			t.Errorf("version %s became %s", before, now)
		}
		out := p.succeeds(resolve("none", "--force")...)
		p.shows(out, "ada decided on", "What to do? Make no new command before")
		if strings.Contains(out, "new intent") {
			t.Errorf("this allows a new command too early:\n%s", out)
		}
		_, err := p.client.Do(t.Context(), stripe.RefundCreate(outbound.Command{ID: "refund-1"}, url.Values{"charge": {p.charge}, "amount": {"1000"}}))
		if !errors.Is(err, outbound.ErrRefused) || !strings.Contains(err.Error(), "a person decided on 20") || strings.Contains(err.Error(), "the provider refused") {
			t.Errorf("Do says %v", err)
		}
	})
}

// Abandon forbids sending, erase removes bodies, and both are in the trail.
func TestAbandonAndErase(t *testing.T) {
	onBoth(t, func(p *prepared) {
		p.refund("refund-401", fakeprovider.Unauthorized, outbound.ErrAuth)
		p.refund("refund-lost", fakeprovider.DropAfterApply, outbound.ErrUncertain)
		p.refund("refund-ok", "", "")
		by := func(verb, command string) []string {
			return []string{"ledger", verb, command, "--name", "ada", "--reason", "ticket 117"}
		}
		p.shows(p.succeeds(by("abandon", "refund-401")...), "abandoned:", "is not sent any more")
		p.refund("refund-401", "", outbound.ErrAbandoned)
		p.shows(p.succeeds("ledger", "show", "refund-401"), "Sending was forbidden", "abandon not_executed → abandoned: ticket 117 (ada)")
		p.shows(p.succeeds(by("abandon", "refund-lost")...), "barred:", "looked up")
		p.ends(exitMoved, "nothing was changed", by("abandon", "refund-ok")...)

		p.shows(p.succeeds(by("erase", "refund-ok")...), "erased:", "sealed bytes of stripe refund.create of refund-ok")
		v := p.views("ledger", "show", "refund-ok")[0]
		if v.SealedBytes != 0 || v.BodyPurgedAt.IsZero() || v.ExternalRef == "" || v.State != "succeeded" {
			t.Errorf("after erase: %d sealed bytes, purged at %v, %s %s", v.SealedBytes, v.BodyPurgedAt, v.State, v.ExternalRef)
		}
		if !slices.ContainsFunc(v.Timeline, func(e explain.Event) bool { return e.What == "erase" && e.Who == "ada" && e.Person }) {
			t.Errorf("the timeline does not say who erased: %+v", v.Timeline)
		}
		p.ends(exitNothing, "no record", by("erase", "refund-none")...)
	})
}
