package main

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
	"github.com/seed-6b5e302b/samekey/internal/pgtest"
	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

// Every record is exported once, with its trail where it is asked for, and counted
// by what it is.
func TestExportAndStats(t *testing.T) {
	onBoth(t, func(p *prepared) {
		p.ends(exitNothing, "no such record", "ledger", "export")
		p.refund("refund-1", "", "")
		p.refund("refund-2", fakeprovider.DropAfterApply, outbound.ErrUncertain)
		p.contradict("refund-3")
		p.decline("payment-1")
		seen := map[string]recordView{}
		for line := range strings.Lines(p.succeeds("ledger", "export", "--trail")) {
			var v recordView
			if err := json.Unmarshal([]byte(line), &v); err != nil {
				t.Fatalf("%v: %s", err, line)
			}
			seen[v.Command] = v
		}
		if len(seen) != 4 || len(seen["refund-3"].Trail) != 2 || seen["refund-3"].Trail[0].Actor != "bob" || seen["payment-1"].ErrorCode != "refused:card_declined" {
			t.Errorf("exported %+v", seen)
		}
		if out := p.succeeds("ledger", "export", "--state", "uncertain", "--since", "1h"); strings.Count(out, "\n") != 1 || !strings.Contains(out, "refund-2") {
			t.Errorf("uncertain ones of the last hour: %s", out)
		}
		p.ends(exitNothing, "no such record", "ledger", "export", "--until", "1h")

		var got stats
		if err := json.Unmarshal([]byte(p.succeeds("ledger", "stats", "--json")), &got); err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(got.Groups, func(g group) bool { return g.State == "manual_review" })
		if got.Records != 4 || len(got.Groups) != 4 || got.Derivation == "" || got.Bytes == 0 || i < 0 || got.Groups[i].Open != 1 {
			t.Errorf("the stats are %+v", got)
		}
		p.shows(p.succeeds("ledger", "stats"), "stripe refund.create money uncertain 1 1", "4 records, 2 open", "no reconciler ever looked")
		p.shows(p.succeeds("ledger", "stats", "--operation", "none.such"), "0 records")
	})
}

// Purge removes what retention allows, and says how much.
func TestPurge(t *testing.T) {
	onBoth(t, func(p *prepared) {
		p.shows(p.succeeds("purge"), "removed the bodies of 0 records, and 0 records")
		c := recordstore.Claim{
			ID: recordstore.ID{Day: 20000, KeyHash: [16]byte{1}}, Provider: "stripe", Account: account + "/test", Operation: "refund.create",
			CommandID: "old", Class: "money", Derivation: keyderive.Version, Derivations: []string{keyderive.Version}, Request: []byte{1},
			Fingerprints: [][]byte{{1, 2}}, Holder: "h", Lease: time.Hour, Replay: time.Microsecond, Evidence: time.Hour,
		}
		claimed, err := p.store.Claim(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.store.Settle(t.Context(), recordstore.Settlement{ID: c.ID, Holder: "h", Fence: claimed.Record.Fence,
			Result: recordstore.Result{State: recordstore.Succeeded, ResponseBody: []byte{1}}})
		if err != nil {
			t.Fatal(err)
		}
		if out := p.succeeds("purge", "--json", "--batch", "1"); strings.Join(strings.Fields(out), "") != `{"bodies":1,"records":0}` {
			t.Errorf("purge says %s", out)
		}
		p.shows(p.succeeds("ledger", "show", keyderive.MarkOf(c.ID.Day, c.ID.KeyHash)), "purge", "the recorded bodies were removed", "the provider is asked how it stands")
	})
}

// Reconcile works from the ledger and the environment alone, for providers whose
// credentials are given, and leaves the others alone.
func TestReconcileOnce(t *testing.T) {
	onBoth(t, func(p *prepared) {
		for name, value := range map[string]string{
			"ACCOUNT": account, "KEY": apiKey, "KEY_FILE": "", "TEST": "1", "URL": p.server.URL,
		} {
			t.Setenv(envStripe+name, value)
		}
		t.Setenv(envSealKeys, "")
		p.ends(exitFailed, envSealKeys, "reconcile", "--once")
		giveSealKey(t)
		p.refund("refund-1", fakeprovider.DropAfterApply, outbound.ErrUncertain)
		p.wake("refund-1")
		p.foreign()
		out := p.succeeds("reconcile", "--once")
		p.shows(out, "settled 1", "stripe: 0 uncertain are left", "adyen: left alone, its credentials are not given")
		if v := p.views("ledger", "show", "refund-1")[0]; v.State != "succeeded" || p.fake.Effects("refund.create") != 1 {
			t.Errorf("afterwards it is %s, with %d effects", v.State, p.fake.Effects("refund.create"))
		}
		p.shows(p.succeeds("ledger", "show", "refund-1"), "(reconciler)")
		p.shows(p.succeeds("reconcile", "--once", "--json"), `"settled": 0`, `"adyen"`)

		t.Setenv(envStripe+"KEY", "")
		p.ends(exitFailed, "belong together", "reconcile", "--once")
		t.Setenv(envStripe+"ACCOUNT", "")
		p.ends(exitFailed, "no provider's credentials", "reconcile", "--once")
		t.Setenv(envStripe+"ACCOUNT", account)
		t.Setenv(envStripe+"KEY_FILE", dsnFile(t, apiKey+"\n"))
		t.Setenv(envStripe+"TEST", "0")
		p.ends(exitFailed, "a test key, but Config.Test is not set", "reconcile", "--once")
	})
}

// wake makes an uncertain command due now, as an event of the provider does.
func (p *prepared) wake(command string) {
	p.Helper()
	key, err := p.client.Key(outbound.Command{ID: command}, "refund.create", "")
	if err == nil {
		_, err = p.store.Wake(p.Context(), recordstore.ID{Day: key.Day(), KeyHash: key.Hash()}, "")
	}
	if err != nil {
		p.Fatal(err)
	}
}

// foreign leaves an open record of a provider that nobody here has credentials of.
func (p *prepared) foreign() {
	p.Helper()
	c := recordstore.Claim{
		ID: recordstore.ID{KeyHash: [16]byte{9}}, Provider: "adyen", Account: "m/live", Operation: "refund.create", CommandID: "adyen-1",
		Class: "money", Derivation: keyderive.Version, Derivations: []string{keyderive.Version}, Fingerprints: [][]byte{{1, 2}},
		Holder: "gone", Lease: time.Microsecond, Replay: time.Hour, Evidence: time.Hour,
	}
	if _, err := p.store.Claim(p.Context(), c); err != nil {
		p.Fatal(err)
	}
}

// The doctor finds a secret that is another one, seal keys that are missing and work
// that nobody does; it tells what to do, and shows no secret.
func TestDoctor(t *testing.T) {
	onBoth(t, func(p *prepared) {
		t.Setenv(envSealKeys, "")
		t.Setenv(envSecret, "")
		p.shows(p.succeeds("doctor"), "nobody has used this ledger yet", "ok clock", "no lease is long dead", "every published window is longer")
		p.refund("refund-1", fakeprovider.DropAfterApply, outbound.ErrUncertain)
		p.shows(p.succeeds("doctor", "--retry-horizon", "720h"), `key "2026" is in use`, "fingerprint none, as given", "less than the retries of 30 d", "asks the provider first")
		giveSealKey(t)
		p.shows(p.succeeds("doctor"), `key "2026", in use, is given`)

		t.Setenv(envSealKeys, "2027="+base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", 32))))
		t.Setenv(envSecret, base64.StdEncoding.EncodeToString([]byte(strings.Repeat("s", 32))))
		p.contradict("refund-2")
		out := p.ends(exitPerson, "3 problems", "doctor", "--json")
		var found []finding
		if err := json.Unmarshal([]byte(out), &found); err != nil {
			t.Fatal(err)
		}
		var problems []string
		for _, f := range found {
			if f.Level == levelProblem {
				problems = append(problems, f.Check)
			}
		}
		if !slices.Equal(problems, []string{"secret", "seal keys", "review"}) {
			t.Errorf("the problems are %v\n%s", problems, out)
		}
		if strings.Contains(out, strings.Repeat("s", 32)) {
			t.Errorf("this shows the secret: %s", out)
		}
		t.Setenv(envSecret, "no base64!")
		p.ends(exitFailed, envSecret+" is no base64", "doctor")
	})
}

// The settings that lose claims or slow the ledger down are found.
func TestDoctorOnPostgres(t *testing.T) {
	dsn := pgtest.DSN(t)
	pool := pgtest.Open(t, dsn)
	file := dsnFile(t, dsn)
	succeeds(t, "migrate", "--dsn-file", file)
	if out := succeeds(t, "doctor", "--dsn-file", file); !strings.Contains(out, "leads to the server itself") || !strings.Contains(out, "fsync on") {
		t.Errorf("the doctor says:\n%s", out)
	}
	for _, sql := range []string{
		"ALTER TABLE samekey.record SET (autovacuum_enabled = false)",
		"DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', current_database()); END $$",
	} {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	out, err := samekey(t.Context(), "doctor", "--dsn-file", file)
	if exitCode(err) != exitPerson || !strings.Contains(out, "synchronous_commit is off") || !strings.Contains(out, "turned off for the ledger's table") {
		t.Errorf("%v:\n%s", err, out)
	}
	h := tableHealth{live: 1000, dead: 20_000, updates: 20_000, hot: 10, frozenAge: 5, max: 10}
	if found := h.findings(time.Now()); len(found) != 2 || found[0].Level != levelProblem || found[1].Level != levelNote {
		t.Errorf("of %+v the doctor says %+v", h, found)
	}
}

// A ledger on a network file system is found by where it is mounted.
func TestMountedAs(t *testing.T) {
	const mounts = "/dev/sda / ext4 rw 0 0\nsrv:/x /mnt/share nfs4 rw 0 0\n/dev/sdb /mnt/share/local ext4 rw 0 0\n"
	for folder, want := range map[string]string{"/var/lib": "", "/mnt/share": "nfs4", "/mnt/share/a": "nfs4", "/mnt/share/local/a": "", "/mnt/shared": ""} {
		if got := mountedAs(mounts, folder); got != want {
			t.Errorf("%s is mounted as %q, want %q", folder, got, want)
		}
	}
}
