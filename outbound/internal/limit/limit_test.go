package limit_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound/internal/limit"
)

var errLate = errors.New("late")

// both runs test on a limit, and on what the standard library makes of the same: the
// one is to be told from the other by nothing.
func both(t *testing.T, test func(t *testing.T, after func(context.Context, time.Duration) (context.Context, func()))) {
	t.Helper()
	for name, after := range map[string]func(context.Context, time.Duration) (context.Context, func()){
		"limit": func(ctx context.Context, d time.Duration) (context.Context, func()) {
			c := limit.After(ctx, d, errLate)
			return c, c.End
		},
		"standard_library": func(ctx context.Context, d time.Duration) (context.Context, func()) {
			return context.WithTimeoutCause(ctx, d, errLate)
		},
	} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { test(t, after) }) })
	}
}

// want holds that ctx is as it should be, and that it stays so once somebody waits.
func want(t *testing.T, ctx context.Context, err, cause error) {
	t.Helper()
	for range 2 {
		if got := ctx.Err(); !errors.Is(got, err) || (got == nil) != (err == nil) {
			t.Errorf("Err is %v, want %v", got, err)
		}
		if got := context.Cause(ctx); !errors.Is(got, cause) || (got == nil) != (cause == nil) {
			t.Errorf("the cause is %v, want %v", got, cause)
		}
		select {
		case <-ctx.Done():
			if err == nil {
				t.Error("it is done")
			}
		default:
			if err != nil {
				t.Error("it is not done")
			}
		}
	}
}

func TestTimeEnds(t *testing.T) {
	both(t, func(t *testing.T, after func(context.Context, time.Duration) (context.Context, func())) {
		begun := time.Now()
		unwatched, end1 := after(t.Context(), time.Second)
		defer end1()
		watched, end2 := after(t.Context(), time.Second)
		defer end2()
		if until, ok := unwatched.Deadline(); !ok || until.Sub(begun) != time.Second {
			t.Errorf("the deadline is %v, %v", until, ok)
		}
		if unwatched.Err() != nil || watched.Err() != nil {
			t.Error("it ended before its time")
		}
		<-watched.Done()
		if took := time.Since(begun); took != time.Second {
			t.Errorf("it took %v", took)
		}
		synctest.Wait()
		want(t, unwatched, context.DeadlineExceeded, errLate)
		want(t, watched, context.DeadlineExceeded, errLate)
	})
}

func TestEnd(t *testing.T) {
	both(t, func(t *testing.T, after func(context.Context, time.Duration) (context.Context, func())) {
		watched, end := after(t.Context(), time.Second)
		done := watched.Done()
		end()
		<-done
		want(t, watched, context.Canceled, context.Canceled)
		unwatched, end := after(t.Context(), time.Second)
		want(t, unwatched, nil, nil)
		end()
		want(t, unwatched, context.Canceled, context.Canceled)
		never, end := after(t.Context(), time.Second)
		end()
		<-time.After(2 * time.Second)
		want(t, never, context.Canceled, context.Canceled)
	})
}

func TestParent(t *testing.T) {
	both(t, func(t *testing.T, after func(context.Context, time.Duration) (context.Context, func())) {
		type key struct{}
		parent, cancel := context.WithCancelCause(context.WithValue(t.Context(), key{}, "of the parent"))
		unwatched, end1 := after(parent, time.Second)
		defer end1()
		watched, end2 := after(parent, time.Second)
		defer end2()
		done := watched.Done()
		for _, ctx := range []context.Context{unwatched, watched} {
			if got := ctx.Value(key{}); got != "of the parent" {
				t.Errorf("the value is %v", got)
			}
		}
		errWhy := errors.New("why")
		cancel(errWhy)
		<-done
		want(t, unwatched, context.Canceled, errWhy)
		want(t, watched, context.Canceled, errWhy)
		short, end3 := context.WithTimeout(t.Context(), time.Millisecond)
		defer end3()
		within, end4 := after(short, time.Second)
		defer end4()
		first, _ := short.Deadline()
		if got, ok := within.Deadline(); !ok || !got.Equal(first) {
			t.Errorf("the deadline is %v, %v; the parent's is %v", got, ok, first)
		}
		<-within.Done()
		want(t, within, context.DeadlineExceeded, context.DeadlineExceeded)
	})
}

// What is made of it ends with it.
func TestChildren(t *testing.T) {
	both(t, func(t *testing.T, after func(context.Context, time.Duration) (context.Context, func())) {
		outer, end := after(t.Context(), time.Second)
		inner, end2 := after(outer, time.Minute)
		defer end2()
		child, cancel := context.WithCancel(context.WithValue(inner, errLate, 1))
		defer cancel()
		want(t, child, nil, nil)
		end()
		<-child.Done()
		want(t, child, context.Canceled, context.Canceled)
		want(t, inner, context.Canceled, context.Canceled)
	})
}

// Many may ask, wait and end at once; the race detector is the judge.
func TestConcurrency(t *testing.T) {
	both(t, func(t *testing.T, after func(context.Context, time.Duration) (context.Context, func())) {
		ctx, end := after(t.Context(), time.Second)
		for range 8 {
			go func() {
				<-ctx.Done()
				if ctx.Err() == nil || ctx.Value(errLate) != nil {
					t.Error("it is done without an error")
				}
			}()
			go end()
		}
		synctest.Wait()
		want(t, ctx, context.Canceled, context.Canceled)
	})
}

// BenchmarkAfter is a step that ends in time and asks once whether it may go on.
func BenchmarkAfter(b *testing.B) {
	b.Run("limit", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c := limit.After(b.Context(), time.Minute, nil)
			if err := c.Err(); err != nil {
				b.Fatal(err)
			}
			c.End()
		}
	})
	b.Run("standard_library", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c, cancel := context.WithTimeout(b.Context(), time.Minute)
			if err := c.Err(); err != nil {
				b.Fatal(err)
			}
			cancel()
		}
	})
}
