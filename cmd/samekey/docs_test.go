package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
	"github.com/seed-6b5e302b/samekey/outbound"
)

// Every command line of docs/ledger-commands.md runs on a ledger as the page has it.
func TestLedgerCommandsPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/ledger-commands.md")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		lines = append(lines, strings.Split(strings.TrimSpace(block[1]), "\n")...)
	}
	if len(lines) < 15 {
		t.Fatalf("the page has %d command lines", len(lines))
	}
	onBoth(t, func(p *prepared) {
		for name, value := range map[string]string{"ACCOUNT": account, "KEY": apiKey, "TEST": "1", "URL": p.server.URL} {
			t.Setenv(envStripe+name, value)
		}
		giveSealKey(t)
		p.refund("refund-1", "", "")
		p.contradict("refund-7")
		p.refund("refund-8", fakeprovider.DropAfterApply, outbound.ErrUncertain)
		p.refund("refund-9", fakeprovider.Unauthorized, outbound.ErrAuth)
		var found []string
		for _, line := range lines {
			out, err := p.run(words(line)[1:]...)
			if err != nil && exitCode(err) != exitNothing && exitCode(err) != exitPerson {
				t.Errorf("%s: %v\n%s", line, err, out)
			}
			if err == nil || exitCode(err) == exitPerson {
				found = append(found, line)
			}
		}
		nothing := slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return slices.Contains(found, line) })
		for _, line := range nothing { // the page's own ids of a provider are made up
			if !strings.Contains(line, "re_3Nv0") && !strings.Contains(line, "req_8Kd2") && !strings.Contains(line, "0000") {
				t.Errorf("%s: nothing is found", line)
			}
		}
		p.shows(p.succeeds("ledger", "show", "refund-7"), "manual_review → succeeded: re_3Nv0 over 10.00 EUR is at the dashboard (ada)")
	})
}

// words splits a command line as a shell does, and leaves out where its output goes.
func words(line string) (all []string) {
	line, _, _ = strings.Cut(line, " > ")
	for i, part := range strings.Split(line, `"`) {
		if i%2 == 1 {
			all = append(all, part)
		} else {
			all = append(all, strings.Fields(part)...)
		}
	}
	return all
}
