package sqlite

import (
	"sync/atomic"
	"time"
)

// clock gives the ledger's time in microseconds since 1970, which is how the file
// keeps times. It never goes back.
//
// Nothing is written for it: the statements themselves take the later of this
// clock and the newest claimed_at in the file, which its index gives at once, and
// what they found is remembered here.
type clock struct {
	own  func() time.Time
	seen atomic.Int64
}

// read returns the later of the machine's time and the latest time seen.
func (c *clock) read() int64 { return c.observe(c.own().UnixMicro()) }

// observe takes note of a time and returns the latest one seen.
func (c *clock) observe(t int64) int64 {
	for {
		seen := c.seen.Load()
		if t <= seen {
			return seen
		}
		if c.seen.CompareAndSwap(seen, t) {
			return t
		}
	}
}

// nowSQL is the ledger's time inside a statement.
const nowSQL = `max(:now, coalesce((SELECT max(claimed_at) FROM samekey_records), 0))`
