package outbound

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// The lanes of accounts that have nothing to do are forgotten, and none that is at
// work, slowed down or told to pause.
func TestLanesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ls := newLanes(&ReconcilerOptions{Concurrency: 1, Rate: 10})
		for i := range manyLanes {
			ls.get("bank", fmt.Sprint(i))
		}
		busy, slow, paused := ls.get("bank", "0"), ls.get("bank", "1"), ls.get("bank", "2")
		busy.slots <- struct{}{}
		slow.now /= 2
		paused.next = time.Now().Add(time.Hour)
		time.Sleep(2 * laneIdle)
		fresh := ls.get("bank", "new")
		if len(ls.of) != 4 {
			t.Errorf("%d lanes are kept, want 4", len(ls.of))
		}
		for account, l := range map[string]*lane{"0": busy, "1": slow, "2": paused, "new": fresh} {
			if ls.get("bank", account) != l {
				t.Errorf("the lane of account %q was forgotten", account)
			}
		}
	})
}
