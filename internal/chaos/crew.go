package chaos

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// crew are the workers of a run. Who is killed is replaced at once.
type crew struct {
	order    order
	programs []program
	free     chan *child // One entry for each job that a worker may still take.

	mu      sync.Mutex
	members []*child
}

func newCrew(o order, programs []program, size int) *crew {
	// Room for the entries of dead workers, which are thrown away when they are met.
	return &crew{order: o, programs: programs, members: make([]*child, size), free: make(chan *child, 1<<20)}
}

func (c *crew) start() error {
	for i := range c.members {
		if err := c.replace(i); err != nil {
			return err
		}
	}
	return nil
}

// replace starts the i-th worker.
func (c *crew) replace(i int) error {
	w, err := c.programs[i%len(c.programs)].start(c.order)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.members[i] = w
	c.mu.Unlock()
	for range slots {
		c.free <- w
	}
	return nil
}

// do hands j to the next worker that is free and alive.
func (c *crew) do(ctx context.Context, j job) (said, error) {
	for {
		var w *child
		select {
		case w = <-c.free:
		case <-ctx.Done():
			return said{}, ctx.Err()
		}
		select {
		case <-w.dead:
			continue
		default:
		}
		s, err := w.do(j)
		if err == nil {
			c.free <- w
		}
		return s, err
	}
}

// killAtRandom kills and replaces a worker every killEvery until ctx ends.
func (c *crew) killAtRandom(ctx context.Context, r *rand.Rand) (kills int, err error) {
	tick := time.NewTicker(killEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return kills, nil
		case <-tick.C:
		}
		i := r.IntN(len(c.members))
		c.members[i].kill()
		kills++
		if err := c.replace(i); err != nil {
			return kills, err
		}
	}
}

// stop kills all workers. Stopping twice does nothing.
func (c *crew) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.members {
		if w != nil {
			w.kill()
		}
	}
}
