package outbound

import (
	"errors"
	"fmt"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/replaysemantics"
)

const day = 24 * time.Hour

// defaultRetention is how long records are kept where Options say nothing.
func defaultRetention(class replaysemantics.Class) Retention {
	switch class {
	case replaysemantics.Object:
		return Retention{3 * day, 90 * day}
	case replaysemantics.Notification:
		return Retention{1 * day, 30 * day}
	}
	return Retention{7 * day, 400 * day}
}

// complete fills in the defaults and refuses what cannot work.
func (o *Options) complete() error {
	fill(&o.Lease, 120*time.Second)
	fill(&o.ClaimTimeout, 2*time.Second)
	fill(&o.SettleTimeout, 5*time.Second)
	fill(&o.Horizon, 15*time.Minute)
	fill(&o.WindowMargin, o.Lease+o.Horizon)
	fill(&o.FirstCheck, time.Minute)
	fill(&o.MaxBody, 4<<20)
	fill(&o.MaxLookup, 8<<20)
	r := &o.Retry
	fill(&r.Attempts, 4)
	fill(&r.MinWait, 500*time.Millisecond)
	fill(&r.MaxWait, max(10*time.Second, r.MinWait))
	fill(&r.MaxRetryAfter, 20*time.Second)
	fill(&r.AttemptTimeout, min(20*time.Second, o.Lease/2))
	fill(&r.CallTimeout, min(45*time.Second, o.Lease/4*3))
	switch {
	case o.Lease < 0 || o.ClaimTimeout < 0 || o.SettleTimeout < 0 || o.WindowMargin < 0 || o.Horizon < 0 || o.FirstCheck < 0 || o.MaxBody < 0 || o.MaxLookup < 0,
		r.Attempts < 0 || r.MinWait < 0 || r.MaxRetryAfter < 0 || r.AttemptTimeout < 0 || r.CallTimeout < 0:
		return errors.New("Options hold a negative number: times and sizes count from 0, which means the default")
	case o.Lease < time.Millisecond:
		return fmt.Errorf("Options.Lease of %v is too short for any call: make it seconds", o.Lease)
	case r.MaxWait < r.MinWait:
		return errors.New("Options.Retry.MaxWait is shorter than MinWait")
	case r.AttemptTimeout >= o.Lease || r.CallTimeout >= o.Lease:
		return fmt.Errorf("Options.Lease of %v does not outlive a call: make it longer than Retry.AttemptTimeout (%v) and Retry.CallTimeout (%v)", o.Lease, r.AttemptTimeout, r.CallTimeout)
	}
	return nil
}

func fill[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}

// rows joins the provider's table with windows and retention.
func (o *Options) rows(ops []replaysemantics.Operation) (map[string]row, error) {
	if len(ops) == 0 {
		return nil, errors.New("the adapter's Profile holds no operations")
	}
	if err := replaysemantics.Check(ops); err != nil {
		return nil, err
	}
	rows := make(map[string]row, len(ops))
	for _, op := range ops {
		keep, stated := o.Retention[op.Class]
		if !stated {
			keep = defaultRetention(op.Class)
			keep.Replay = max(keep.Replay, op.Window)
			keep.Evidence = max(keep.Evidence, keep.Replay)
		}
		if keep.Replay < op.Window {
			return nil, fmt.Errorf("Options.Retention of class %s keeps answers for %v, but the provider knows the key of %s for %v: keep them at least as long", op.Class, keep.Replay, op.Name, op.Window)
		}
		if keep.Evidence < keep.Replay {
			return nil, fmt.Errorf("Options.Retention of class %s keeps evidence for %v, shorter than answers (%v)", op.Class, keep.Evidence, keep.Replay)
		}
		rows[op.Name] = row{
			Operation: op, window: op.Window - min(o.WindowMargin, op.Window/2),
			replay: keep.Replay, evidence: keep.Evidence,
		}
	}
	return rows, nil
}

// accounts are Options.Accounts as records state them, with the mode.
func (o *Options) accounts(mode string) []string {
	all := make([]string, len(o.Accounts))
	for i, a := range o.Accounts {
		all[i] = a + "/" + mode
	}
	return all
}

func isDurable(s recordstore.Store) bool {
	d, ok := s.(recordstore.Durable)
	return ok && d.Durable()
}
