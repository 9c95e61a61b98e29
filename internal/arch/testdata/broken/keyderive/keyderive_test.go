package keyderive_test

import (
	"testing"
	"time"

	"github.com/hashicorp/go-retryablehttp" // want confined_packages
	"github.com/jackc/pgx/v5"
	"github.com/stripe/stripe-go/v86" // want confined_packages
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/seed-6b5e302b/samekey/recordstore" // tests may look across
)

func TestSkips(t *testing.T) {
	if testing.Short() {
		t.Skip("slow") // want no_skipped_test
	}
	time.Sleep(time.Second)
	t.Run("inner", func(t *testing.T) {
		t.SkipNow() // want no_skipped_test
	})
}

func TestDraws(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rt.Skip("draws another example")
	})
}

func FuzzSkips(f *testing.F) {
	f.Fuzz(func(t *testing.T, _ int) {
		t.Skipf("%d", 1) // want no_skipped_test
	})
}
