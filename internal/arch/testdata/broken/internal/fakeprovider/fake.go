package fakeprovider

import (
	"github.com/seed-6b5e302b/samekey/outbound" // want imports
	"github.com/seed-6b5e302b/samekey/replaysemantics"
)

func Exported() {}
