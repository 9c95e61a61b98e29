package outbound

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

// ReconcilerOptions are the optional settings of a Reconciler. Every zero value
// is usable.
type ReconcilerOptions struct {
	Every       time.Duration // Pause after a sweep that found nothing. Defaults to 5 s.
	Concurrency int           // Look-ups and resends at once, per account of a provider. Defaults to 4.
	Batch       int           // Records taken at once. Defaults to 100, or a quarter of what Rate sends in a lease, if that is less.

	// Rate is how many requests go out a second, per account of a provider: each GET
	// of a look-up and each attempt of a send is one. It is halved when the provider
	// answers 429 or 5xx, and a Retry-After of up to an hour is obeyed. Defaults to 10.
	Rate float64

	// ResendFor is how long after the first claim the frozen bytes are resent before
	// a look-up is asked. Defaults to 15 minutes.
	ResendFor time.Duration

	// Ladder are the pauses before each check of one record; after the last the record
	// goes to review. The pause before the first check is in place of the first here:
	// Options.FirstCheck of the client whose call ended uncertain. A plan that the
	// provider turned away, as by a 401 or a 429, is sent again after the same pauses
	// and then, since nothing is unknown of it, after the last one again and again
	// until its NotAfter, or an Abandon. Defaults to 1 min, 5 min, 15 min, 1 h, 6 h,
	// then daily 5 times. Each pause varies by a tenth.
	Ladder []time.Duration

	FullSweep time.Duration // How often all records are searched for dead senders. Defaults to 24 h.
	Purge     bool          // Remove what retention allows. One instance with true is enough, several do no harm.
}

func (o *ReconcilerOptions) complete() error {
	fill(&o.Every, 5*time.Second)
	fill(&o.Concurrency, 4)
	fill(&o.Rate, 10)
	fill(&o.ResendFor, 15*time.Minute)
	fill(&o.FullSweep, day)
	if len(o.Ladder) == 0 {
		o.Ladder = []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 6 * time.Hour, day, day, day, day, day}
	}
	for _, pause := range o.Ladder {
		if pause <= 0 {
			return errors.New("ReconcilerOptions.Ladder holds a pause that is not positive")
		}
	}
	if o.Every < 0 || o.Concurrency < 0 || o.Rate < 0 || o.Batch < 0 || o.ResendFor < 0 || o.FullSweep < 0 {
		return errors.New("ReconcilerOptions hold a negative number: times and counts count from 0, which means the default")
	}
	return nil
}

// Reconciler finds out unknown outcomes and sends what was planned, from the
// ledger alone: it needs no process that saw the call. Any number may run, in any
// number of processes. It is safe for concurrent use.
type Reconciler struct {
	opts    ReconcilerOptions
	lanes   *lanes
	workers []*worker
}

// worker reconciles the records of one client.
type worker struct {
	*Client
	queue recordstore.Queue
	opts  *ReconcilerOptions
	lanes *lanes

	mu        sync.Mutex
	fullSwept time.Time
	gauged    time.Time
}

// Swept counts what a sweep did.
type Swept struct {
	Found     int // Senders that died without anybody being told.
	Sent      int // Planned commands, and those proved absent, sent.
	Resent    int // Same key, same bytes.
	LookedUp  int
	Settled   int // Uncertain records that are no longer.
	Postponed int // To be asked about, or sent, again later.
	ToReview  int
	Purged    int // Bodies and records.
}

func (s *Swept) add(o Swept) {
	s.Found += o.Found
	s.Sent += o.Sent
	s.Resent += o.Resent
	s.LookedUp += o.LookedUp
	s.Settled += o.Settled
	s.Postponed += o.Postponed
	s.ToReview += o.ToReview
	s.Purged += o.Purged
}

// NewReconciler returns an error if an adapter has no credentials of its own or
// a ledger is no recordstore.Queue. opts may be nil.
func NewReconciler(opts *ReconcilerOptions, clients ...*Client) (*Reconciler, error) {
	r := &Reconciler{}
	if opts != nil {
		r.opts = *opts
	}
	bad := func(why string) (*Reconciler, error) { return nil, &Error{Code: ErrInvalid, Err: errors.New(why)} }
	if err := r.opts.complete(); err != nil {
		return bad(err.Error())
	}
	r.lanes = newLanes(&r.opts)
	if len(clients) == 0 {
		return bad("NewReconciler needs at least one client")
	}
	for _, c := range clients {
		queue, able := c.ledger.(recordstore.Queue)
		switch {
		case !able:
			return bad("the ledger of provider " + c.profile.Provider + " cannot be reconciled: it is no recordstore.Queue")
		case !c.profile.Credentials:
			return bad("the adapter of provider " + c.profile.Provider + " has no credentials of its own: nobody can look anything up in the background")
		}
		if _, able := c.ledger.(recordstore.Purger); r.opts.Purge && !able {
			return bad("the ledger of provider " + c.profile.Provider + " cannot be purged: it is no recordstore.Purger")
		}
		r.workers = append(r.workers, &worker{Client: c, queue: queue, opts: &r.opts, lanes: r.lanes})
	}
	return r, nil
}

// Run works until ctx ends, finishes what it holds and returns nil then. A ledger
// that cannot be asked is asked again later.
func (r *Reconciler) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	for _, w := range r.workers {
		wg.Go(func() {
			for ctx.Err() == nil {
				swept, err := w.sweep(ctx)
				if err != nil && ctx.Err() == nil {
					w.tel.log.WarnContext(ctx, "samekey: a sweep failed", "provider", w.profile.Provider, "error", err.Error())
				}
				if err == nil && swept != (Swept{}) {
					continue
				}
				select {
				case <-ctx.Done():
				case <-time.After(jittered(w.opts.Every)):
				}
			}
		})
	}
	wg.Wait()
	return nil
}

// Sweep works off what is due now and returns: for cron, Lambda and tests.
func (r *Reconciler) Sweep(ctx context.Context) (Swept, error) {
	var all Swept
	var errs []error
	for _, w := range r.workers {
		for {
			swept, err := w.sweep(ctx)
			all.add(swept)
			if err != nil {
				errs = append(errs, err)
			}
			if err != nil || swept == (Swept{}) || ctx.Err() != nil {
				break
			}
		}
	}
	return all, errors.Join(errs...)
}

// sweep does one round: it finds dead senders, works off one batch of due
// records, and removes one batch of what is over.
func (w *worker) sweep(ctx context.Context) (Swept, error) {
	var s Swept
	if !w.enter() {
		return s, errors.New("the client is closed")
	}
	defer w.work.Done()
	if err := w.attach(ctx); err != nil {
		return s, err
	}
	var err error
	if s.Found, err = w.findCrashed(ctx); err != nil {
		return s, err
	}
	asked := time.Now()
	records, now, err := w.take(ctx)
	if err != nil {
		return s, err
	}
	s.add(w.workOff(ctx, records, asked, now))
	if w.opts.Purge {
		purged, err := w.ledger.(recordstore.Purger).Purge(ctx, 1000)
		if err != nil {
			return s, err
		}
		s.Purged = purged.Bodies + purged.Records
	}
	w.gauge(ctx)
	return s, nil
}

// gauge tells how much waits, at most every 15 seconds.
func (w *worker) gauge(ctx context.Context) {
	w.mu.Lock()
	due := time.Since(w.gauged) >= 15*time.Second
	if due {
		w.gauged = time.Now()
	}
	w.mu.Unlock()
	if !due {
		return
	}
	if b, err := w.queue.Backlog(ctx, w.profile.Provider); err == nil {
		w.tel.backlog(ctx, b)
	}
}

const crashedLimit = 1000

func (w *worker) findCrashed(ctx context.Context) (int, error) {
	w.mu.Lock()
	full := time.Since(w.fullSwept) >= w.opts.FullSweep
	w.mu.Unlock()
	n, err := w.queue.FindCrashed(ctx, full, crashedLimit)
	if err == nil && full && n < crashedLimit {
		w.mu.Lock()
		w.fullSwept = time.Now()
		w.mu.Unlock()
	}
	return n, err
}

// take takes due records that this build understands, no more than can be worked
// off while their lease lives.
func (w *worker) take(ctx context.Context) ([]recordstore.Record, time.Time, error) {
	limit := w.opts.Batch
	if limit == 0 {
		limit = max(1, min(100, int(w.opts.Rate*w.Client.opts.Lease.Seconds()/4)))
	}
	q := recordstore.DueQuery{
		Provider: w.profile.Provider, Mode: w.profile.Mode, Accounts: w.Client.opts.accounts(w.profile.Mode),
		Derivations: []string{keyderive.Version, recordstore.Foreign}, SealVersion: sealVersion,
		LostBefore: w.restoredAt(), Holder: uuid.NewString(), Lease: w.Client.opts.Lease, Limit: limit,
	}
	for _, v := range w.profile.Canonicals {
		q.Fingerprints = append(q.Fingerprints, byte(v))
	}
	return w.queue.TakeDue(ctx, q)
}

// rederive makes the key of a record again.
func (c *core) rederive(rec recordstore.Record) (keyderive.Key, error) {
	key, err := c.opts.Secret.Rederive(keyderive.Input{
		Provider: rec.Provider, Account: rec.Account, Operation: rec.Operation, CommandID: rec.CommandID,
	}, rec.Scope)
	if err == nil && (key.Day() != rec.ID.Day || key.Hash() != rec.ID.KeyHash) {
		err = errors.New("the record does not make its key again: it was written with another secret or another account")
	}
	return key, err
}

// revive makes an order of a record alone.
func (c *Client) revive(rec recordstore.Record) (*order, error) {
	now := time.Now()
	o := &order{claimed: now, begun: now}
	var known bool
	if o.row, known = c.rows[rec.Operation]; !known {
		return nil, fmt.Errorf("no operation %q in the table of provider %s", cleanText(rec.Operation), c.profile.Provider)
	}
	var err error
	if o.key, err = c.rederive(rec); err != nil {
		return nil, err
	}
	o.Call = Call{Operation: rec.Operation, Account: accountOf(rec.Account), Command: commandOf(rec)}
	o.claim.ID = rec.ID
	if plain, err := c.bodies.open(rec.ID, "request", rec.Request); err == nil {
		if o.frozen.Message, err = decodeMessage(plain); err == nil {
			o.revived = true
		}
	}
	return o, nil
}
