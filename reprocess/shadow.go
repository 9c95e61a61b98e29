package reprocess

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

// Shadow is the report of a run that sent nothing.
type Shadow struct {
	Plan
	Manifest Manifest  `json:"manifest"`
	Keys     string    `json:"keys"` // SHA-256 over the sample's keys, hex: it follows from secret, account and mode.
	At       time.Time `json:"at"`
	Compared int       `json:"compared"` // Of the sample: all of it.
	Same     int       `json:"same"`     // An earlier version sent a request that means the same.
	Changed  int       `json:"changed"`  // It sent another one.
	New      int       `json:"new"`      // It sent none that the ledger knows.
	Unread   int       `json:"unread"`   // A fingerprint that this build cannot compare.
	Twice    int       `json:"twice"`    // Same, and applied: the run would repeat that effect.
	Sample   []Sampled `json:"sample"`
}

// Sampled is one target of the sample beside what an earlier version did.
type Sampled struct {
	Line      int               `json:"line"` // Of the targets' file.
	Event     string            `json:"event"`
	Operation string            `json:"operation"`
	Command   string            `json:"command"`                   // At the manifest's version.
	Earlier   int               `json:"earlier_version,omitempty"` // Whose record is compared.
	ID        string            `json:"earlier_command,omitempty"`
	State     recordstore.State `json:"earlier_state,omitempty"`
	Effect    string            `json:"earlier_effect,omitempty"`
	Verdict   string            `json:"verdict"` // same, changed, new or unread.
}

// Shadow derives the key and fingerprint of every target, compares a sample with what
// the ledger knows of earlier versions, and keeps the report at Batch.ShadowPath.
// The sample follows from the batch's digest: the same batch has the same one.
func (r *Runner) Shadow(ctx context.Context, progress func(int)) (*Shadow, error) {
	plan, err := r.Plan(ctx, progress)
	if err != nil {
		return nil, err
	}
	s := &Shadow{Plan: *plan, Manifest: r.batch.Manifest, Keys: r.keys(), At: time.Now().UTC(), Sample: []Sampled{}}
	for _, t := range r.batch.sample() {
		one, err := r.sampled(ctx, t)
		if err != nil {
			return nil, err
		}
		s.add(one)
	}
	content, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, err
	}
	return s, keep(r.batch.ShadowPath(), append(content, '\n'))
}

func (s *Shadow) add(one Sampled) {
	s.Compared++
	s.Sample = append(s.Sample, one)
	switch one.Verdict {
	case "same":
		s.Same++
		if one.Effect == "applied" {
			s.Twice++
		}
	case "changed":
		s.Changed++
	case "new":
		s.New++
	case "unread":
		s.Unread++
	}
}

func (r *Runner) sampled(ctx context.Context, t *Target) (Sampled, error) {
	m := &r.batch.Manifest
	one := Sampled{Line: t.line, Event: t.Event, Operation: t.Operation, Verdict: "new"}
	cmd, err := t.command(m.Consumer, m.EffectVersion)
	if err != nil {
		return one, err
	}
	one.Command = cmd.ID
	version, c, err := r.earlier(ctx, t)
	if err != nil || version == 0 {
		return one, err
	}
	old, err := t.command(m.Consumer, version)
	one.Earlier, one.ID, one.State, one.Effect = version, old.ID, c.State, c.Effect.String()
	switch {
	case !c.Read:
		one.Verdict = "unread"
	case c.Same:
		one.Verdict = "same"
	default:
		one.Verdict = "changed"
	}
	return one, err
}

// sample returns SampleSize targets that the digest chooses, in the file's order.
func (b *Batch) sample() []*Target {
	type lot struct {
		t    *Target
		hash [sha256.Size]byte
	}
	lots := make([]lot, len(b.targets))
	for i, t := range b.targets {
		lots[i] = lot{t, sha256.Sum256([]byte(b.Digest + " " + strconv.Itoa(i)))}
	}
	slices.SortFunc(lots, func(x, y lot) int { return bytes.Compare(x.hash[:], y.hash[:]) })
	lots = lots[:min(len(lots), SampleSize)]
	slices.SortFunc(lots, func(x, y lot) int { return x.t.line - y.t.line })
	chosen := make([]*Target, len(lots))
	for i, l := range lots {
		chosen[i] = l.t
	}
	return chosen
}

// deep are those targets of the sample at which all versions are looked for.
func (b *Batch) deep() map[*Target]bool {
	sample, chosen := b.sample(), make(map[*Target]bool)
	n := min(deepTargets, len(sample))
	for i := range n {
		chosen[sample[i*len(sample)/n]] = true
	}
	return chosen
}

// keys is what the sample's keys hash to. Operations without a key count by their
// command alone.
func (r *Runner) keys() string {
	h := sha256.New()
	for _, t := range r.batch.sample() {
		cmd, err := t.command(r.batch.Manifest.Consumer, r.batch.Manifest.EffectVersion)
		if err != nil {
			continue // Load has refused it
		}
		key, err := r.client.Key(cmd, t.Operation, t.Account)
		hash := key.Hash()
		if err != nil {
			copy(hash[:], cmd.ID)
		}
		h.Write(hash[:])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// shadowed is nil if the report of this very batch, made with the same secret,
// account and mode, lies beside its manifest, with its whole sample compared, and
// the ledger still says of the sample what it said then.
func (r *Runner) shadowed(ctx context.Context) error {
	s, err := r.batch.readShadow()
	if err != nil {
		return err
	}
	if s.Keys != r.keys() {
		return errors.New("the shadow's report was made with another secret, account or mode: " + doShadow)
	}
	for i, t := range r.batch.sample() {
		one, err := r.sampled(ctx, t)
		if err != nil {
			return err
		}
		if then := s.Sample[i]; one.Line != then.Line || one.Verdict != then.Verdict {
			return fmt.Errorf("the shadow's report is of another ledger, or of long ago: of line %d it says %q, and the ledger %q: %s", one.Line, then.Verdict, one.Verdict, doShadow)
		}
	}
	return nil
}

const doShadow = "run `samekey reprocess shadow` first, and read its report"

// readShadow reads the report of this batch, whole.
func (b *Batch) readShadow() (*Shadow, error) {
	content, err := readFile(b.ShadowPath(), maxManifest+SampleSize*maxManifest)
	if err != nil {
		return nil, fmt.Errorf("over %d targets need a shadow: %s", ShadowOver, doShadow)
	}
	var s Shadow
	if err := json.Unmarshal(content, &s); err != nil {
		return nil, errors.New("the shadow's report cannot be read: " + doShadow)
	}
	if _, err := hex.DecodeString(s.Digest); err != nil || s.Digest != b.Digest {
		return nil, errors.New("the shadow's report is of other targets or another manifest: " + doShadow)
	}
	if want := min(SampleSize, len(b.targets)); s.Compared < want || len(s.Sample) != want {
		return nil, fmt.Errorf("the shadow's report compares %d targets, not %d: %s", s.Compared, want, doShadow)
	}
	return &s, nil
}
