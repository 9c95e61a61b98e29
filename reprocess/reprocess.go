// Package reprocess runs past events again, on purpose: after a consumer's effect
// version was raised, or where effects are missing. A manifest says who wants what
// and why; the plan holds its numbers against the ledger, the shadow compares what
// would be sent with what earlier versions sent, and the run makes each target's
// effect at most once, however often it is interrupted and begun anew. The ledger
// alone is the truth of what is done.
package reprocess

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/replaysemantics"
)

const (
	// ShadowOver is the number of targets above which a run needs a shadow of the
	// same manifest first.
	ShadowOver = 10_000

	// SampleSize is how many targets a shadow compares; all where there are fewer.
	SampleSize = 100

	// versionsAbove is how many effect versions above the manifest's are looked for at
	// each target, and deepTargets at how many all up to maxVersion are.
	versionsAbove = 2
	deepTargets   = 20
)

// Admitted is outbound.Options.EffectVersions for services whose consumers live on
// with the versions that these manifests raised. A manifest that allows no external
// writes admits nothing.
func Admitted(batches ...*Batch) map[string]int {
	versions := make(map[string]int)
	for _, b := range batches {
		if m := b.Manifest; m.ExternalWrites {
			versions[m.Consumer] = max(versions[m.Consumer], m.EffectVersion)
		}
	}
	return versions
}

// Runner is one batch in the hands of a client of its provider. Its methods send
// nothing, except Run.
type Runner struct {
	batch  *Batch
	client *outbound.Client
	rows   []replaysemantics.Operation
}

// New returns a Runner. It is an error where the manifest names another provider
// than the client's, where a target cannot be a call of it, and where two targets are
// the same effect once the default account is filled in. Give the client
// Options.Retry.Attempts 1: the run repeats by itself, and attempts inside of Do keep
// to no rate. Whose the credential is, the run does not ask: httpadapter.Adapter's
// CheckOwner does, and under a wrong account everything looks undone.
func New(b *Batch, c *outbound.Client) (*Runner, error) {
	profile, err := c.Adapter().Profile()
	if err != nil {
		return nil, err
	}
	if profile.Provider != b.Manifest.Provider {
		return nil, fmt.Errorf("the manifest is for provider %q, and the client calls %s", b.Manifest.Provider, profile.Provider)
	}
	r := &Runner{b, c, profile.Operations}
	if err := r.check(profile.Account); err != nil {
		return nil, err
	}
	return r, nil
}

// check holds the targets against the provider's table. account is the default one.
func (r *Runner) check(account string) error {
	seen := make(map[[sha256.Size]byte]int)
	for _, t := range r.batch.targets {
		op, known := replaysemantics.Find(r.rows, t.Operation)
		if !known {
			return fmt.Errorf("targets, line %d: provider %s has no operation %q", t.line, r.batch.Manifest.Provider, t.Operation)
		}
		if err := t.fits(op); err != nil {
			return fmt.Errorf("targets, line %d: %w", t.line, err)
		}
		id, err := t.identity(&r.batch.Manifest, account)
		if err != nil {
			return fmt.Errorf("targets, line %d: %w", t.line, err)
		}
		if first := seen[id]; first > 0 {
			return fmt.Errorf("targets, line %d: it is the same effect as line %d, whose account is the default one: leave one of them, or give each a \"step\"", t.line, first)
		}
		seen[id] = t.line
	}
	return nil
}

// compare reads what the ledger knows of a target at an effect version.
func (r *Runner) compare(ctx context.Context, t *Target, version int) (*outbound.Comparison, error) {
	call, err := r.batch.call(t, version, r.rows)
	if err != nil {
		return nil, fmt.Errorf("targets, line %d: %w", t.line, err)
	}
	c, err := r.client.Compare(ctx, call)
	switch {
	case errors.Is(err, outbound.ErrInvalid):
		return nil, fmt.Errorf("targets, line %d: %w", t.line, err)
	case err != nil:
		return nil, err
	}
	return c, nil
}

// earlier returns the version below the manifest's whose record counts; 0 if the
// ledger has none. An applied effect counts before one of which nobody knows, and
// that before none; of equals the highest version. So a later version that failed
// hides nothing.
func (r *Runner) earlier(ctx context.Context, t *Target) (version int, known *outbound.Comparison, err error) {
	known = &outbound.Comparison{}
	for v := r.batch.Manifest.EffectVersion - 1; v >= 1 && known.Effect != outbound.EffectApplied; v-- {
		c, err := r.compare(ctx, t, v)
		if err != nil {
			return 0, nil, err
		}
		if c.State != "" && (version == 0 || weight(c.Effect) > weight(known.Effect)) {
			version, known = v, c
		}
	}
	return version, known, nil
}

func weight(e outbound.Effect) int {
	switch e {
	case outbound.EffectApplied:
		return 2
	case outbound.EffectUnknown:
		return 1
	}
	return 0
}

// higher returns the lowest version above the manifest's, and not above upTo, of
// which the ledger has a record; 0 if there is none.
func (r *Runner) higher(ctx context.Context, t *Target, upTo int) (int, error) {
	for v := r.batch.Manifest.EffectVersion + 1; v <= min(upTo, maxVersion); v++ {
		if c, err := r.compare(ctx, t, v); err != nil || c.State != "" {
			return v, err
		}
	}
	return 0, nil
}

// ends reports whether a record of this state is never sent again by itself.
func ends(s recordstore.State) bool {
	return s == recordstore.Succeeded || s == recordstore.Refused || s == recordstore.Abandoned || s == recordstore.ManualReview
}

// keep writes a report whole or not at all.
func keep(path string, content []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("the report cannot be kept: %w", err)
	}
	defer func() { _ = os.Remove(file.Name()) }() // gone once it has its name
	_, err = file.Write(content)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("the report cannot be kept: %w", err)
	}
	return nil
}
