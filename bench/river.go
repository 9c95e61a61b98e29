package main

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/seed-6b5e302b/samekey/outbound"
)

// refundJob makes one refund.
type refundJob struct {
	CommandID string `json:"command_id"`
}

// Kind implements river.JobArgs.
func (refundJob) Kind() string { return "refund" }

type refundWorker struct {
	river.WorkerDefaults[refundJob]
	post func(ctx context.Context, key string) error
	done *endings
}

// Work implements river.Worker.
func (w *refundWorker) Work(ctx context.Context, job *river.Job[refundJob]) error {
	err := w.post(ctx, job.Args.CommandID)
	w.done.of(job.ID) <- err
	return err
}

// river is River: a job that makes the refund, waited for until it is made. That it
// is completed River records a quarter of a second later, which is not waited for.
// River is made for work that nobody waits for: what its callers see here is mostly
// how soon a job is fetched.
func (b *bench) river(ctx context.Context, base string) (contender, error) {
	dsn, err := b.database(ctx, "river")
	if err != nil {
		return contender{}, err
	}
	pool, err := b.pool(ctx, dsn)
	if err != nil {
		return contender{}, err
	}
	driver := riverpgxv5.New(pool)
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return contender{}, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return contender{}, err
	}
	done := &endings{jobs: make(map[int64]chan error)}
	workers := river.NewWorkers()
	if err := river.AddWorkerSafely(workers, &refundWorker{post: poster(newTransport(), base), done: done}); err != nil {
		return contender{}, err
	}
	client, err := river.NewClient(driver, &river.Config{
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 64}}, Workers: workers,
		FetchCooldown: time.Millisecond, FetchPollInterval: 50 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return contender{}, err
	}
	if err := client.Start(ctx); err != nil {
		return contender{}, err
	}
	b.onClose(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := client.Stop(ctx); err != nil {
			b.say("stopping River: %v", err)
		}
	})
	return calling("River, a job waited for", func(ctx context.Context) error {
		inserted, err := client.Insert(ctx, refundJob{outbound.NewCommandID()}, nil)
		if err != nil {
			return err
		}
		return done.wait(ctx, inserted.Job.ID)
	}), nil
}

// endings hands the ends of jobs to those who wait for them.
type endings struct {
	mu   sync.Mutex
	jobs map[int64]chan error
}

// of is where the end of a job is told, whoever asks first.
func (e *endings) of(id int64) chan error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.jobs[id] == nil {
		e.jobs[id] = make(chan error, 1)
	}
	return e.jobs[id]
}

func (e *endings) wait(ctx context.Context, id int64) error {
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.jobs, id)
	}()
	select {
	case err := <-e.of(id):
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(30 * time.Second):
		return errors.New("a job of River was not worked on within 30 s")
	}
}
