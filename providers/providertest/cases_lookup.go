package providertest

import (
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// What look-ups say, against what happened.
func lookupCases() []testCase {
	return []testCase{
		{
			name: "lookup/found", needs: findable, run: lookupFound,
			why:  "past the window the look-up is the only way to an effect whose answer was lost (R22)",
			mend: "Find reads what the row's Lookup promises, by key or mark, and returns Applied with the object's id; Sample.WeakLookup is for look-ups that need an id which no answer told",
		},
		{
			name: "lookup/nothing", needs: findable, run: lookupNothing,
			why:  "a look-up that finds what is not there books a payment that nobody made",
			mend: "Find returns Applied only for an object with our key or mark, or where the object's state is the operation's goal",
		},
		{
			name: "lookup/foreign", needs: findable, run: lookupForeign,
			why:  "another command's object looks like this one's: an amount alone finds nothing",
			mend: "Find compares key or mark, whole, and takes no object for its amount, time or order",
		},
		{
			name: "lookup/failing", needs: findable, run: lookupFailing,
			why:  "a 403 on the look-up was booked as a failed payment (C24)",
			mend: "Find returns an error, or the zero Finding, for every answer but the one that shows the list whole",
		},
	}
}

// past is when look-ups may speak: the window is over, and the horizon with it.
func (tr *trial) past() time.Duration {
	return max(tr.window(), tr.row.Window, tr.row.Horizon, 15*time.Minute) + lease + time.Hour
}

// lookUp makes the call again when only a look-up may answer.
func (tr *trial) lookUp(s settings) outcome {
	tr.Helper()
	tr.wait(tr.past())
	return tr.process(s).do(tr.Context())
}

func lookupFound(tr *trial) {
	tr.lose(DropAfterApply)
	sent := len(tr.requests())
	o := tr.lookUp(settings{})
	tr.wantEffects(1)
	if got := len(tr.requests()); got != sent {
		tr.Errorf("the window was over, and the call was sent again")
	}
	switch {
	case o.err != nil && !tr.sample.WeakLookup:
		tr.Errorf("the effect is there, and the look-up did not find it: %s", o.say())
	case o.err == nil && o.reply.Label != outbound.LatestStatus:
		tr.Errorf("what a look-up found is the latest status, and the reply is %s", o.say())
	}
	tr.truthful(o)
}

func lookupNothing(tr *trial) {
	tr.lose(DropBeforeApply)
	tr.truthful(tr.lookUp(settings{attempts: 2}))
}

func lookupForeign(tr *trial) {
	tr.lose(DropBeforeApply)
	theirs := tr.process(settings{}).make(tr.Context(), tr.sample.Call(outbound.Command{ID: "kit-other-command"}, tr.seed))
	if theirs.err != nil || tr.effects() != 1 {
		return // the operation goes only once, so that there is no other command's object
	}
	o := tr.lookUp(settings{attempts: 2})
	if o.err == nil && tr.effects() == 1 && o.reply.Evidence != rs.ByStateGuard {
		tr.Errorf("only another command's effect is there, and the look-up took it for this one's: %s", o.say())
	}
}

// turnedAway answers every GET with a status.
type turnedAway struct {
	http.RoundTripper
	status int
}

func (t turnedAway) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		return t.RoundTripper.RoundTrip(r)
	}
	return &http.Response{
		StatusCode: t.status, Status: http.StatusText(t.status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(`{}`)), Request: r,
	}, nil
}

func lookupFailing(tr *trial) {
	for _, status := range []int{http.StatusForbidden, http.StatusTooManyRequests, http.StatusInternalServerError} {
		t := newTrial(tr.TB, tr.kit, tr.sample)
		t.lose(DropAfterApply)
		o := t.lookUp(settings{transport: turnedAway{t.fake.Transport(), status}, attempts: 2})
		if got := t.effects(); got != 1 || o.err == nil || outbound.EffectOf(o.err) != outbound.EffectUnknown {
			tr.Errorf("the look-up was answered with %d, and the call ended in %s with %d effects; want effect unknown, and one effect", status, o.say(), got)
		}
	}
}
