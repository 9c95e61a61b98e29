package grpcadapter_test

import (
	"os"
	"strings"
	"testing"
)

// Every Go block of docs/entrances.md stands in the entrances' code, in one piece.
func TestPageIsThisCode(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/entrances.md")
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile("internal/incidents/entrances.go")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(page), "```go\n")[1:]
	if len(blocks) != 5 {
		t.Errorf("the page has %d Go blocks, want 5", len(blocks))
	}
	for _, block := range blocks {
		block, _, _ = strings.Cut(block, "```")
		if !strings.Contains(string(code), block) {
			t.Errorf("this block is not in the code:\n%s", block)
		}
	}
}
