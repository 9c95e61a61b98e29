package pgtest

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

const oldest = 15 // Major version that the ledger promises to run on.

// Programs returns the folder with the newest PostgreSQL server programs on this
// machine, version 15 or later.
func Programs() (string, error) {
	var folders []string
	if p, err := exec.LookPath("postgres"); err == nil {
		if p, err = filepath.EvalSymlinks(p); err == nil {
			folders = append(folders, filepath.Dir(p))
		}
	}
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin",         // Debian, Ubuntu
		"/usr/pgsql-*/bin",                  // Red Hat
		"/opt/homebrew/opt/postgresql*/bin", // macOS
		"/usr/local/opt/postgresql*/bin",
		"/usr/local/pgsql/bin", // built from source
	} {
		found, _ := filepath.Glob(pattern) // the patterns are well formed
		folders = append(folders, found...)
	}
	best, folder := 0, ""
	for _, f := range folders {
		if v := version(f); v > best {
			best, folder = v, f
		}
	}
	if best < oldest {
		return "", fmt.Errorf("no PostgreSQL %d or newer found: install the server (Debian: apt-get install postgresql; macOS: brew install postgresql), run `make test`, or set %s", oldest, EnvDSN)
	}
	return folder, nil
}

var versionOf = regexp.MustCompile(`\(PostgreSQL\) (\d+)`)

// version is the major version of the server programs in folder, 0 if they are
// not complete.
func version(folder string) int {
	if _, err := exec.LookPath(filepath.Join(folder, "initdb")); err != nil {
		return 0
	}
	out, err := exec.Command(filepath.Join(folder, "postgres"), "--version").Output()
	if err != nil {
		return 0
	}
	m := versionOf.FindStringSubmatch(strings.TrimSpace(string(out)))
	if m == nil {
		return 0
	}
	v, _ := strconv.Atoi(m[1])
	return v
}
