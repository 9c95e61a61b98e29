// Package fakeserver runs samekey's standalone fakes for tests, and reads what
// docs/fake-server.md says of them. It is for tests only.
package fakeserver

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Page is the documentation that the tests of this module execute, from the
// folder of a package of this module.
const Page = "../../docs/fake-server.md"

// Build compiles the program samekey and returns where it is. It fails the test
// if that is not possible.
func Build(tb testing.TB) string {
	tb.Helper()
	program := filepath.Join(tb.TempDir(), "samekey")
	build := exec.CommandContext(tb.Context(), "go", "build", "-o", program, "./cmd/samekey")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		tb.Fatalf("go build: %v\n%s", err, out)
	}
	return program
}

// Start builds samekey fake and runs it until the test ends. It returns the
// addresses by provider, as http://127.0.0.1:40001 without a slash at the end.
func Start(tb testing.TB) map[string]string {
	tb.Helper()
	cmd := exec.CommandContext(tb.Context(), Build(tb), "fake", "--stripe", "127.0.0.1:0", "--paypal", "127.0.0.1:0")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // its error is the kill
	})
	fakes := map[string]string{}
	for lines := bufio.NewScanner(out); len(fakes) < 2; {
		if !lines.Scan() {
			tb.Fatalf("samekey fake ended early: %v", lines.Err())
		}
		if words := strings.Fields(lines.Text()); len(words) > 1 {
			fakes[words[0]] = words[1]
		}
	}
	return fakes
}

// Blocks returns the fenced blocks of one language in Page, in order, with the
// addresses in it replaced by those of the fakes.
func Blocks(tb testing.TB, language string, fakes map[string]string) []string {
	tb.Helper()
	text, err := os.ReadFile(Page)
	if err != nil {
		tb.Fatal(err)
	}
	stripe, paypal := strings.TrimPrefix(fakes["stripe"], "http://"), strings.TrimPrefix(fakes["paypal"], "http://")
	_, port, _ := strings.Cut(paypal, ":")
	moved := strings.NewReplacer("127.0.0.1:12111", stripe, "127.0.0.1:12112", paypal, "connect(12112,", "connect("+port+",")
	var blocks []string
	parts := strings.Split(string(text), "\n```"+language+"\n")
	for _, part := range parts[1:] {
		block, _, closed := strings.Cut(part, "\n```\n")
		if !closed {
			tb.Fatalf("%s: a block of %s has no end", Page, language)
		}
		blocks = append(blocks, moved.Replace(block))
	}
	return blocks
}
