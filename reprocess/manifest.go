package reprocess

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

const (
	maxManifest = 64 << 10  // bytes
	maxTargets  = 256 << 20 // bytes of the targets' file, which is held in memory
	maxLine     = 1 << 20   // bytes of one target
	maxVersion  = 100       // of an effect: each version below is looked for
)

// Manifest says what is to be run again, who wants it and why. It is a JSON object.
type Manifest struct {
	Consumer      string `json:"consumer"`       // As in keyderive.Event.
	EffectVersion int    `json:"effect_version"` // That the targets get; 1 for effects that are missing.
	Provider      string `json:"provider"`       // "stripe", "paypal".
	Reason        string `json:"reason"`
	Who           string `json:"who"`

	Targets       string `json:"targets"`           // File of JSON lines, one Target each, relative to the manifest.
	TargetCount   int    `json:"number_of_targets"` // Lines of that file.
	ExpectedCalls int    `json:"expected_external_calls"`

	// ShareDone is the share of the targets, 0 to 1, whose effect an earlier version
	// applied: those will have two. It may be wrong by 0.01.
	ShareDone float64 `json:"share_already_done"`

	// ExternalWrites allows the run to call the provider. Without it there are plan
	// and shadow only.
	ExternalWrites bool `json:"external_writes"`
}

func (m *Manifest) check() error {
	for _, f := range []struct{ name, value string }{
		{"consumer", m.Consumer}, {"provider", m.Provider}, {"reason", m.Reason}, {"who", m.Who}, {"targets", m.Targets},
	} {
		if strings.TrimSpace(f.value) == "" {
			return fmt.Errorf("%q is missing", f.name)
		}
	}
	switch {
	case m.EffectVersion < 1 || m.EffectVersion > maxVersion:
		return fmt.Errorf("\"effect_version\" is %d: it counts from 1 to %d", m.EffectVersion, maxVersion)
	case m.TargetCount < 1:
		return errors.New("\"number_of_targets\" is missing: count the lines of the targets' file")
	case m.ExpectedCalls < 0 || m.ExpectedCalls > m.TargetCount:
		return errors.New("\"expected_external_calls\" must lie between 0 and the number of targets: each makes one call at most")
	case m.ShareDone < 0 || m.ShareDone > 1:
		return errors.New("\"share_already_done\" is a share: give 0 to 1")
	}
	return nil
}

// Batch is a manifest with its targets, read and checked.
type Batch struct {
	Manifest Manifest
	Digest   string // SHA-256 of manifest and targets, hex: another byte is another batch.

	path    string
	targets []*Target
}

// Load reads a manifest and the file of its targets. Errors say which line is wrong
// and what to do.
func Load(path string) (*Batch, error) {
	content, err := readFile(path, maxManifest)
	if err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	b := &Batch{path: path}
	if err := decode(content, &b.Manifest); err != nil {
		return nil, fmt.Errorf("manifest %s: %w", path, err)
	}
	m := &b.Manifest
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("manifest %s: %w", path, err)
	}
	beside := m.Targets
	if !filepath.IsAbs(beside) {
		beside = filepath.Join(filepath.Dir(path), beside)
	}
	lines, err := readFile(beside, maxTargets)
	if err != nil {
		return nil, fmt.Errorf("targets: %w", err)
	}
	if err := b.read(lines); err != nil {
		return nil, fmt.Errorf("targets %s, %w", beside, err)
	}
	if n := len(b.targets); n != m.TargetCount {
		return nil, fmt.Errorf("manifest %s: \"number_of_targets\" is %d, and %s holds %d: which of them is meant?", path, m.TargetCount, m.Targets, n)
	}
	b.Digest = digest(content, lines)
	return b, nil
}

// digest is SHA-256 over both, each behind its length.
func digest(parts ...[]byte) string {
	h := sha256.New()
	for _, p := range parts {
		_ = binary.Write(h, binary.BigEndian, uint64(len(p))) // a hash takes all
		h.Write(p)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// read takes the targets, and refuses two lines that are the same effect.
func (b *Batch) read(lines []byte) error {
	seen := make(map[[sha256.Size]byte]int)
	for number, line := range bytes.Split(lines, []byte("\n")) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		if len(line) > maxLine {
			return fmt.Errorf("line %d: it has more than %d bytes", number+1, maxLine)
		}
		t := &Target{line: number + 1}
		err := decode(line, t)
		if err == nil {
			err = t.check()
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", number+1, err)
		}
		id, err := t.identity(&b.Manifest, "")
		if err != nil {
			return fmt.Errorf("line %d: %w", number+1, err)
		}
		if first := seen[id]; first > 0 {
			return fmt.Errorf("line %d: it is the same effect as line %d: leave one of them, or give each a \"step\"", number+1, first)
		}
		seen[id] = number + 1
		b.targets = append(b.targets, t)
	}
	return nil
}

func readFile(path string, limit int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	content, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(content)) > limit {
		err = fmt.Errorf("%s has more than %d bytes: split it", path, limit)
	}
	return content, err
}

// ShadowPath is where the batch's shadow report is kept: beside the manifest.
func (b *Batch) ShadowPath() string { return b.beside("shadow") }

func (b *Batch) beside(kind string) string {
	return strings.TrimSuffix(b.path, ".json") + "." + kind + ".json"
}
