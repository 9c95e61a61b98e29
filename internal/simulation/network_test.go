package simulation

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
)

// provider is one fake and the network before it.
type provider struct {
	name    string
	account string
	fake    *fakeprovider.Fake
	server  *fakeprovider.Server
}

// network is a process's way to a provider. What goes wrong is the seed's choice
// at each request, so that it does not depend on the order of requests.
type network struct {
	http.RoundTripper
	at   *provider
	view *view
	sim  *run
}

// lateness is how late a request may still be performed: less than the horizon.
const lateness = 14 * time.Minute

var errUnreachable = errors.New("simulation: no answer")

// RoundTrip implements http.RoundTripper.
func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	if n.view.gone() {
		return nil, errDead
	}
	reads := r.Method == http.MethodGet || strings.HasSuffix(r.URL.Path, "/token")
	if n.view.luck != nil {
		if err := n.inject(reads); err != nil {
			return nil, err
		}
	}
	resp, err := n.RoundTripper.RoundTrip(r)
	if !reads {
		status := 0
		if err == nil {
			status = resp.StatusCode
		}
		n.sim.note("%s %s: %d", n.at.name, r.URL.Path, status)
	}
	if n.view.gone() && err == nil {
		_ = resp.Body.Close()
		return nil, errDead
	}
	return resp, err
}

// inject arms at most one fault for the request that follows. One that reads is
// sometimes lost.
func (n *network) inject(reads bool) error {
	n.sim.dice.Lock()
	defer n.sim.dice.Unlock()
	if reads {
		if n.sim.faults.IntN(10) == 0 {
			return errUnreachable
		}
		return nil
	}
	n.at.fake.ClearFaults()
	f, meets := fault(n.sim.faults)
	if !meets {
		return nil
	}
	n.sim.note("fault %s delay %v applied %v stored %v running %v", f.Kind, f.Delay, f.Applied, f.Stored, f.Running)
	if err := n.at.fake.Inject(f); err != nil {
		return fmt.Errorf("simulation: %w", err)
	}
	n.sim.sent(f.Delay)
	return nil
}

// fault is what goes wrong with one request.
func fault(luck *rand.Rand) (f fakeprovider.Fault, meets bool) {
	kinds := []fakeprovider.Kind{
		fakeprovider.DropBeforeApply, fakeprovider.DropAfterApply, fakeprovider.DropAfterApply, fakeprovider.LateApply, fakeprovider.LateApply,
		fakeprovider.LateApply, fakeprovider.LateApply, fakeprovider.LateApply, fakeprovider.SlowApply, fakeprovider.Hang, fakeprovider.Truncate, fakeprovider.Empty,
		fakeprovider.Status500, fakeprovider.HTML502, fakeprovider.Status503, fakeprovider.Status424, fakeprovider.RateLimit, fakeprovider.RateLimit, fakeprovider.RateLimit,
		fakeprovider.LockTimeout, fakeprovider.Unauthorized, fakeprovider.InFlight, fakeprovider.Redirect, fakeprovider.ResetReused,
	}
	if luck.IntN(100) < 40 {
		return f, false
	}
	coin := func() bool { return luck.IntN(2) == 0 }
	f.Kind = kinds[luck.IntN(len(kinds))]
	switch f.Kind {
	case fakeprovider.LateApply:
		f.Delay, f.Running = 1+rand64(luck, lateness), coin()
	case fakeprovider.SlowApply, fakeprovider.Hang:
		f.Delay, f.Applied = 1+rand64(luck, 10*time.Second), coin()
	case fakeprovider.Status500:
		f.Applied, f.Stored = coin(), coin()
	case fakeprovider.HTML502, fakeprovider.Status503, fakeprovider.Status424, fakeprovider.InFlight, fakeprovider.Redirect:
		f.Applied = coin()
	}
	return f, true
}

func rand64(luck *rand.Rand, below time.Duration) time.Duration {
	return time.Duration(luck.Int64N(int64(below)))
}
