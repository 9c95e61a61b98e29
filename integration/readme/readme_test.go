package readme_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/integration/readme"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/paypal"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
	"github.com/seed-6b5e302b/samekey/recordstore/memory"
)

// pages are those whose Go blocks are compiled here, and how many they have.
var pages = map[string]int{"README.md": 2, "docs/errors.md": 1, "docs/testing.md": 3, "docs/command-ids.md": 4, "docs/migrating.md": 1, "docs/rollout.md": 1, "docs/unknown-outcomes.md": 2, "docs/with-job-queues.md": 2}

// Every Go block of these pages stands in this folder's code, line by line and in
// one piece. A page leaves out blank lines and what only hands an error on.
func TestPagesAreThisCode(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	names = append(names, filepath.Join("..", "..", "examples", "river", "river.go"), filepath.Join("..", "..", "examples", "temporal", "temporal.go"))
	var code [][]string
	for _, name := range names {
		code = append(code, withoutErrors(read(t, name)))
	}
	for page, want := range pages {
		blocks := goBlocks(read(t, filepath.Join("..", "..", page)))
		if len(blocks) != want {
			t.Errorf("%s has %d Go blocks, want %d", page, len(blocks), want)
		}
		for _, block := range blocks {
			lines := withoutErrors(block)
			if !slices.ContainsFunc(code, func(file []string) bool { return contains(file, lines) }) {
				t.Errorf("%s: this block is not in %v:\n%s", page, names, strings.Join(block, "\n"))
			}
		}
	}
}

func read(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(text), "\n")
}

// goBlocks returns the fenced blocks of Go.
func goBlocks(page []string) (blocks [][]string) {
	for i := 0; i < len(page); i++ {
		if page[i] != "```go" {
			continue
		}
		end := i + 1
		for end < len(page) && page[end] != "```" {
			end++
		}
		blocks = append(blocks, page[i+1:min(end, len(page))])
		i = end
	}
	return blocks
}

// withoutErrors takes out blank lines and "if err != nil { return … }".
func withoutErrors(lines []string) (kept []string) {
	for i := 0; i < len(lines); i++ {
		line := strings.TrimSpace(lines[i])
		if line == "if err != nil {" && i+2 < len(lines) &&
			strings.HasPrefix(strings.TrimSpace(lines[i+1]), "return ") && strings.TrimSpace(lines[i+2]) == "}" {
			i += 2
			continue
		}
		if line != "" {
			kept = append(kept, line)
		}
	}
	return kept
}

// contains reports whether part stands in whole, in one piece.
func contains(whole, part []string) bool {
	if len(part) == 0 {
		return false
	}
	for i := 0; i+len(part) <= len(whole); i++ {
		if slices.Equal(whole[i:i+len(part)], part) {
			return true
		}
	}
	return false
}

// A page that drifts is noticed.
func TestDriftIsNoticed(t *testing.T) {
	t.Parallel()
	code := withoutErrors([]string{"func F() error {", "\ta, err := f()", "\tif err != nil {", "\t\treturn err", "\t}", "\tg(a)", "\treturn nil", "}"})
	for page, want := range map[string]bool{
		"a, err := f()\n\ng(a)": true, "a, err := f(1)\ng(a)": false, "g(a)\na, err := f()": false, "a, err := f()\nmore()\ng(a)": false, "": false,
	} {
		if got := contains(code, withoutErrors(strings.Split(page, "\n"))); got != want {
			t.Errorf("%q: got %t, want %t", page, got, want)
		}
	}
}

// The README's native snippet, run: what is applied is booked, a decline is final,
// and what is unknown is asked for again.
func TestCapture(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		order  providertest.ApprovedOrder
		fault  *providertest.Fault
		want   error
		booked bool
		again  bool
	}{
		"paid":    {booked: true},
		"refused": {order: providertest.ApprovedOrder{Outcome: "INSTRUMENT_DECLINED"}, want: outbound.ErrRefused},
		"unknown": {fault: &providertest.Fault{Kind: providertest.DropAfterApply, Operation: "order.capture"}, want: outbound.ErrUncertain, again: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := providertest.PayPal(t, nil)
			pp, err := outbound.New(paypal.New(paypal.Config{
				Account: "M1", ClientID: "id", Secret: "s", Sandbox: true, BaseURL: fake.URL, Transport: fake.Transport(),
			}), memory.New(nil), &outbound.Options{Retry: outbound.Retry{Attempts: 1}})
			if err != nil {
				t.Fatal(err)
			}
			order := fake.Seed(c.order)
			if c.fault != nil {
				fake.Inject(*c.fault)
			}
			var booked, again bool
			err = readme.Capture(t.Context(), pp, readme.Row{CommandID: "cap_1"}, order,
				func(got paypal.Capture, err error) error {
					booked = err == nil && got.Status == "COMPLETED"
					return err
				},
				func(time.Duration) { again = true })
			if !errors.Is(err, c.want) || booked != c.booked || again != c.again {
				t.Errorf("got %v, booked %t, again %t; want %v, %t, %t", err, booked, again, c.want, c.booked, c.again)
			}
			work := readme.Work(t.Context(), pp, paypal.OrderCapture(outbound.Command{ID: "cap_1"}, order, nil),
				func(time.Duration) error { return errors.New("snoozed") }, func(err error) error { return err })
			if work != nil {
				t.Errorf("the job ended in %v, want an outcome: the second call finds it", work)
			}
			if n := fake.Effects("order.capture"); n > 1 {
				t.Errorf("%d captures", n)
			}
		})
	}
}
