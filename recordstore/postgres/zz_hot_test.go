package postgres_test

import (
	"context"
	"fmt"
	mrand "math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/internal/pgtest"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/postgres"
)

func TestZHot(t *testing.T) {
	if os.Getenv("ZZ") == "" {
		return
	}
	ctx := context.Background()
	dsn := pgtest.DSN(t)
	pool := pgtest.Open(t, dsn)
	n := 0
	for _, sz := range [][2]int{{256, 256}, {1024, 1024}, {2048, 2048}} {
		for _, ff := range []int{100, 95, 90, 80, 70, 60, 50, 45} {
			for _, mode := range []string{"now8", "flight64", "batch25"} {
				n++
				opts := &postgres.Options{Schema: fmt.Sprintf("s%d", n)}
				migrate(t, pool, opts)
				if _, err := pool.Exec(ctx, fmt.Sprintf("ALTER TABLE s%d.record SET (fillfactor=%d)", n, ff)); err != nil {
					t.Fatal(err)
				}
				store := postgres.New(pool, opts)
				const total = 3200
				var wg sync.WaitGroup
				if mode == "batch25" {
					for range 8 {
						wg.Go(func() {
							for range total / 8 / 25 {
								claimThenSettle(t, ctx, store, 25, sz[0])
							}
						})
					}
				} else if mode == "flight64" {
					var done sync.WaitGroup
					stop := make(chan bool)
					done.Go(func() {
						for {
							select {
							case <-stop:
								return
							case <-time.After(700 * time.Millisecond):
								pool.Exec(ctx, fmt.Sprintf("VACUUM s%d.record", n))
							}
						}
					})
					for range 64 {
						wg.Go(func() {
							for range total / 64 {
								got, err := store.Claim(ctx, claimOf(sz[0]))
								if err != nil {
									t.Error(err)
								}
								time.Sleep(time.Duration(10+mrand.IntN(60)) * time.Millisecond)
								if _, err := store.Settle(ctx, settlementOf(got.Record, sz[1])); err != nil {
									t.Error(err)
								}
							}
						})
					}
					wg.Wait()
					close(stop)
					done.Wait()
				} else if mode == "now8" {
					for range 8 {
						wg.Go(func() {
							for range total / 8 {
								got, _ := store.Claim(ctx, claimOf(sz[0]))
								if _, err := store.Settle(ctx, settlementOf(got.Record, sz[1])); err != nil {
									t.Error(err)
								}
							}
						})
					}
				} else {
					q := make(chan recordstore.Record, 256)
					left := make(chan int, total)
					for i := range total {
						left <- i
					}
					close(left)
					var cw sync.WaitGroup
					for range 8 {
						cw.Go(func() {
							for range left {
								got, _ := store.Claim(ctx, claimOf(sz[0]))
								q <- got.Record
							}
						})
					}
					wg.Go(func() { cw.Wait(); close(q) })
					for range 8 {
						wg.Go(func() {
							buf := []recordstore.Record{}
							flush := func() {
								for _, r := range buf {
									if _, err := store.Settle(ctx, settlementOf(r, sz[1])); err != nil {
										t.Error(err)
									}
								}
								buf = buf[:0]
							}
							for r := range q {
								if buf = append(buf, r); len(buf) == 32 {
									flush()
								}
							}
							flush()
						})
					}
				}
				wg.Wait()
				pool.Reset()
				time.Sleep(1500 * time.Millisecond)
				var upd, hot, size, heap, toast, idx int64
				p2 := pgtest.Open(t, dsn)
				if err := p2.QueryRow(ctx, fmt.Sprintf(`SELECT n_tup_upd, n_tup_hot_upd, pg_total_relation_size(relid), pg_relation_size(relid), pg_total_relation_size(reltoastrelid), pg_indexes_size(relid) FROM pg_stat_all_tables join pg_class c on c.oid=relid WHERE schemaname='s%d' AND pg_stat_all_tables.relname='record'`, n)).Scan(&upd, &hot, &size, &heap, &toast, &idx); err != nil {
					t.Fatal(err)
				}
				p2.Close()
				fmt.Printf("req/resp %v ff %d %s: upd %d HOT %.1f%%  bytes/rec %d (heap %d toast %d idx %d)\n", sz, ff, mode, upd, 100*float64(hot)/float64(upd), size/total, heap/total, toast/total, idx/total)
			}
		}
	}
}
