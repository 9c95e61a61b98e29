// Package reprocess runs past events again, on purpose: after a consumer's effect
// version was raised, or where effects are missing. A manifest says who wants what
// and why; the plan holds its numbers against the ledger, the shadow compares what
// would be sent with what earlier versions sent, and the run makes each target's
// effect at most once, however often it is interrupted and begun anew. The ledger
// alone is the truth of what is done.
package reprocess

import (
	"context"
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
// than the client's.
func New(b *Batch, c *outbound.Client) (*Runner, error) {
	profile, err := c.Adapter().Profile()
	if err != nil {
		return nil, err
	}
	if profile.Provider != b.Manifest.Provider {
		return nil, fmt.Errorf("the manifest is for provider %q, and the client calls %s", b.Manifest.Provider, profile.Provider)
	}
	return &Runner{b, c, profile.Operations}, nil
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

// earlier returns the highest version below the manifest's of which the ledger has
// a record; 0 if there is none.
func (r *Runner) earlier(ctx context.Context, t *Target) (version int, c *outbound.Comparison, err error) {
	for v := r.batch.Manifest.EffectVersion - 1; v >= 1; v-- {
		if c, err = r.compare(ctx, t, v); err != nil || c.State != "" {
			return v, c, err
		}
	}
	return 0, &outbound.Comparison{}, nil
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
