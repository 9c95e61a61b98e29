package httpadapter

import (
	"io"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/replaysemantics"
)

func (a *Adapter) Canonical(w io.Writer, version int, op replaysemantics.Operation, m outbound.Message, sensitive bool) error {
	return nil
}
