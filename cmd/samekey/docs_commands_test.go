package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
	"github.com/seed-6b5e302b/samekey/outbound"
)

// documents are the pages that people read.
func documents(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	pages := map[string]string{}
	for _, path := range append(paths, "../../README.md", "../../CHANGELOG.md") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		pages[filepath.Base(path)] = string(text)
	}
	return pages
}

// Every command line that a page names, in a block or in its text, is one that this
// program has, with flags that it has.
func TestDocumentedCommandsExist(t *testing.T) {
	t.Parallel()
	block := regexp.MustCompile("(?sm)^ *```[a-z]+\n.*?^ *```")
	inBlock, inText := regexp.MustCompile("(?m)^ *(samekey [^\n]+)$"), regexp.MustCompile("`(samekey [^`\n]+)`")
	lines := 0
	for page, text := range documents(t) {
		named := inText.FindAllStringSubmatch(text, -1)
		for _, b := range block.FindAllString(text, -1) {
			named = append(named, inBlock.FindAllStringSubmatch(b, -1)...)
		}
		for _, m := range named {
			line, _, _ := strings.Cut(m[1], " #")
			line, _, _ = strings.Cut(line, " &")
			for _, verb := range alternatives(line) {
				lines++
				cmd, args, err := root().Find(words(verb)[1:])
				if err == nil && cmd.HasSubCommands() && len(args) > 0 && !strings.HasPrefix(args[0], "-") {
					err = cobra.NoArgs(cmd, args)
				}
				if err == nil {
					err = cmd.ParseFlags(args)
				}
				if err != nil && !errors.Is(err, pflag.ErrHelp) {
					t.Errorf("%s: %q: %v", page, line, err)
				}
			}
		}
	}
	if lines < 40 {
		t.Errorf("the pages name %d command lines", lines)
	}
}

// alternatives takes apart what a text names at once: "samekey ledger show, open" and
// "samekey ledger show|open", and leaves out what a usage line has in brackets.
func alternatives(line string) (all []string) {
	line = regexp.MustCompile(` ?\[[^\]]*\]`).ReplaceAllString(line, "")
	if regexp.MustCompile(`^samekey [a-z]+ [a-z]+(, [a-z]+)+$`).MatchString(line) {
		stem := line[:strings.LastIndex(strings.SplitN(line, ",", 2)[0], " ")]
		for _, verb := range strings.Split(line[len(stem)+1:], ", ") {
			all = append(all, stem+" "+verb)
		}
		return all
	}
	return []string{line}
}

// The command lines of these pages run on a ledger as a service left it.
func TestUpkeepPages(t *testing.T) {
	pages := documents(t)
	want := map[string]int{"runbooks.md": 1, "sizing.md": 2, "unknown-outcomes.md": 3}
	onBoth(t, func(p *prepared) {
		p.refund("refund-1", "", "")
		p.refund("refund-8", fakeprovider.DropAfterApply, outbound.ErrUncertain)
		for page, lines := range want {
			var found []string
			for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(pages[page], -1) {
				found = append(found, strings.Split(strings.TrimSpace(block[1]), "\n")...)
			}
			if len(found) != lines {
				t.Errorf("%s has %d command lines, want %d", page, len(found), lines)
			}
			for _, line := range found {
				line, _, _ = strings.Cut(strings.TrimSpace(line), " #")
				args := words(line)[1:]
				if i := slices.Index(args, "COMMAND"); i >= 0 {
					args[i] = "refund-8"
				}
				if out := p.succeeds(args...); out == "" {
					t.Errorf("%s: %s prints nothing", page, line)
				}
			}
		}
		p.shows(p.succeeds("ledger", "stats"), "2 records, 1 open")
	})
}
