package readme_test

import (
	"bytes"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/seed-6b5e302b/samekey/integration/fakeserver"
)

// The commands of docs/testing.md against the fakes do what stands above them.
// fakeserver.Start has run the first of them, on other addresses.
func TestShellCommandsOfTesting(t *testing.T) {
	t.Parallel()
	page := strings.Join(read(t, "../../docs/testing.md"), "\n")
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(page, -1)
	if len(blocks) != 2 || strings.TrimSpace(blocks[0][1]) != "go run ./cmd/samekey fake --stripe 127.0.0.1:12111 --paypal 127.0.0.1:12112" {
		t.Fatalf("the page has %d blocks of commands, the first %q", len(blocks), blocks[0][1])
	}
	fakes := fakeserver.Start(t)
	lines := strings.NewReplacer("http://127.0.0.1:12111", fakes["stripe"], "http://127.0.0.1:12112", fakes["paypal"], "curl ", "curl -sS --fail-with-body ").Replace(blocks[1][1])
	cmd := exec.CommandContext(t.Context(), "bash", "-eu", "-c", strings.ReplaceAll(lines, "\n#", "\necho; #"))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s%s", err, lines, out, stderr.Bytes())
	}
	want := `^\{"id":"ch_\w+"\}\s+\{"armed":1\}\s+\{"id":"\w+"\}\s+\{"now":"[^"]+"\}\s+\{"effects":\{\},"total":0,"duplicates":0,"requests":0\}\s*$`
	if !regexp.MustCompile(want).Match(out) {
		t.Errorf("these commands\n%s\nprint\n%s", lines, out)
	}
}
