package reprocess

import (
	"context"
	"fmt"
	"math"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

// Plan is what a run would find, counted from the ledger. Nothing was sent.
type Plan struct {
	Digest string `json:"digest"`

	Targets int `json:"targets"`
	Done    int `json:"done"`    // At this version: applied, a run sends nothing.
	Ended   int `json:"ended"`   // At this version: refused, abandoned, in review or of another request, a run sends nothing.
	Begun   int `json:"begun"`   // At this version: not ended yet, a run finds out or sends again with the same key.
	Calls   int `json:"calls"`   // Targets that a run calls the provider for, those begun among them.
	Earlier int `json:"earlier"` // Whose effect an earlier version applied.
	Unknown int `json:"unknown"` // Of whose earlier effect nobody knows.
	Higher  int `json:"higher"`  // Of which the ledger has a record at a higher version: a run is refused.

	ShadowNeeded bool     `json:"shadow_needed"`
	Differs      []string `json:"differs"` // Where the manifest says something else: a run is refused.

	highest int // version above the manifest's that was met
}

// Plan checks all targets, and the manifest's numbers against them and the ledger.
// progress hears how many were read, and may be nil.
func (r *Runner) Plan(ctx context.Context, progress func(int)) (*Plan, error) {
	p := &Plan{Digest: r.batch.Digest, Differs: []string{}}
	deep := r.batch.deep()
	for _, t := range r.batch.targets {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		now, err := r.compare(ctx, t, r.batch.Manifest.EffectVersion)
		if err != nil {
			return nil, err
		}
		before, known, err := r.earlier(ctx, t)
		if err != nil {
			return nil, err
		}
		upTo := r.batch.Manifest.EffectVersion + versionsAbove
		if deep[t] {
			upTo = maxVersion
		}
		above, err := r.higher(ctx, t, upTo)
		if err != nil {
			return nil, err
		}
		p.count(now, before, known)
		if above > 0 {
			p.Higher++
			p.highest = max(p.highest, above)
		}
		if progress != nil {
			progress(p.Targets)
		}
	}
	p.ShadowNeeded = p.Targets > ShadowOver
	p.judge(&r.batch.Manifest)
	return p, nil
}

func (p *Plan) count(now *outbound.Comparison, before int, known *outbound.Comparison) {
	p.Targets++
	switch {
	case now.State == recordstore.Succeeded && (now.Same || !now.Read):
		p.Done++
	case ends(now.State):
		p.Ended++
	default:
		p.Calls++
		if now.State != "" {
			p.Begun++
		}
	}
	switch {
	case before == 0:
	case known.Effect == outbound.EffectApplied:
		p.Earlier++
	case known.Effect == outbound.EffectUnknown:
		p.Unknown++
	}
}

// judge compares with what the manifest expects. A run that was begun has fewer calls
// left than were expected, which is no difference.
func (p *Plan) judge(m *Manifest) {
	if p.Higher > 0 {
		p.Differs = append(p.Differs, fmt.Sprintf("effect_version is %d, and the ledger has effects of version %d for %d targets, which a lower version would repeat: correct it, or raise it above", m.EffectVersion, p.highest, p.Higher))
	}
	if p.Calls > m.ExpectedCalls {
		p.Differs = append(p.Differs, fmt.Sprintf("expected_external_calls is %d, and %d would be made", m.ExpectedCalls, p.Calls))
	}
	if made := p.Calls + p.Done + p.Ended; made < m.ExpectedCalls {
		p.Differs = append(p.Differs, fmt.Sprintf("expected_external_calls is %d, and there are %d targets", m.ExpectedCalls, made))
	}
	if share := float64(p.Earlier) / float64(p.Targets); math.Abs(share-m.ShareDone) > 0.01+1e-9 {
		p.Differs = append(p.Differs, fmt.Sprintf("share_already_done is %.4g, and an earlier version applied %d of %d, %.4g", m.ShareDone, p.Earlier, p.Targets, share))
	}
}
