package replaysemantics // want doc_comments

import (
	"time"

	"github.com/seed-6b5e302b/samekey/keyderive" // want imports
)

// No sleep ends with its context.
func wait() {
	time.Sleep(time.Second) // want no_sleep
}
