package recordstoretest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

func gridCases() []testCase {
	return []testCase{
		{"grid/claim", "a store that decides in SQL must decide as Take does, in every combination of what a record can be", gridClaim},
		{"grid/new", "a store that decides in SQL must decide as Take does where there is no record", gridNew},
		{"grid/settle", "a store that settles in SQL must write what Settled does", gridSettle},
		{"grid/report", "a store that takes facts in SQL must write what Reported does", gridReport},
		{"grid/renew", "a store that renews in SQL must write what Renewed does", gridRenew},
	}
}

// enough is the number of differences after which a grid stops: more of them
// tell nothing new.
const enough = 8

var states = [...]recordstore.State{
	recordstore.Planned, recordstore.Sending, recordstore.Succeeded, recordstore.Refused,
	recordstore.NotExecuted, recordstore.Uncertain, recordstore.ManualReview, recordstore.Abandoned,
}

// found returns the record that c meets: of the same request, with every field
// filled, its lease dead, its window open.
func found(c recordstore.Claim) recordstore.Record {
	return recordstore.Record{
		ID: c.ID, Scope: c.Scope, Provider: c.Provider, Account: c.Account, Operation: c.Operation,
		CommandID: c.CommandID, Class: c.Class, Derivation: c.Derivation, Fingerprint: c.Fingerprints[0],
		State: recordstore.Sending, TakenFrom: recordstore.NotExecuted,
		Evidence: "status_code", Outcome: "pending",
		Holder: "earlier", Fence: 3, ClaimedAt: start.Add(-lease), LeaseEndsAt: start, SentUntil: start.Add(-time.Hour),
		Deliveries: 2, WindowEndsAt: start.Add(window - lease),
		SealVersion: 2, Request: []byte("frozen request"),
		ResponseStatus: 500, ResponseHeader: []byte("earlier header"), ResponseBody: []byte("earlier body"),
		ExternalRef: "re_1", ObjectStatus: "pending", RequestID: "req_1", ErrorCode: "unknown",
		AnsweredAt: start.Add(-time.Minute), DueAt: start.Add(time.Minute), Checks: 4,
		ReplayUntil: start.Add(c.Replay), EvidenceUntil: start.Add(c.Evidence), BodyPurgedAt: start.Add(-time.Second),
		CreatedAt: start.Add(-time.Hour), Version: 7,
	}
}

// meeting is a claim and the record that it meets.
type meeting struct {
	about string
	claim recordstore.Claim
	rec   recordstore.Record
}

// meetings returns every combination of what decides a claim. What only has to
// be carried over (doubt, request, the claim's own limit) varies by chance, the
// same in every run.
func meetings() []meeting {
	var out []meeting
	chance := rand.New(rand.NewPCG(1, 2))
	for _, state := range states {
		leases, notes := []time.Duration{0}, []recordstore.State{""}
		if state == recordstore.Sending {
			leases = []time.Duration{0, time.Microsecond} // From now: dead, alive.
			notes = []recordstore.State{"", recordstore.Succeeded, recordstore.Refused}
		}
		each(func(pick []int) {
			m := newMeeting(len(out), state, chance)
			m.rec.LeaseEndsAt = start.Add(leases[pick[0]])
			m.rec.Noted = notes[pick[1]]
			m.rec.Fingerprint = [][]byte{
				m.claim.Fingerprints[chance.IntN(2)], fingerprint(1, "another"), fingerprint(9, "newer"),
			}[pick[2]]
			m.rec.Derivation = []string{"k0", recordstore.Foreign, "k9"}[pick[3]]
			m.rec.SealVersion = []int{2, 4}[pick[4]]
			m.rec.WindowEndsAt = []time.Time{start.Add(time.Microsecond), start, {}}[pick[5]]
			m.rec.NotAfter = []time.Time{{}, start.Add(time.Microsecond), start}[pick[6]]
			if pick[7] == 1 {
				m.rec.Holder = m.claim.Holder
			}
			m.about = fmt.Sprintf("%s, lease %v, noted %q, fingerprint %d, derivation %s, seal %d, window %d, not after %d, own %d",
				state, leases[pick[0]], m.rec.Noted, pick[2], m.rec.Derivation, m.rec.SealVersion, pick[5], pick[6], pick[7])
			out = append(out, m)
		}, len(leases), len(notes), 3, 3, 2, 3, 3, 2)
	}
	return out
}

func newMeeting(n int, state recordstore.State, chance *rand.Rand) meeting {
	c := newClaim(n)
	c.Holder = "asking"
	c.NotAfter = []time.Time{{}, {}, start.Add(time.Second), start.Add(-time.Second)}[chance.IntN(4)]
	if chance.IntN(3) == 0 {
		c.Request = nil
	}
	if chance.IntN(3) == 0 {
		c.Window = 0
	}
	rec := found(c)
	rec.State = state
	if chance.IntN(3) > 0 { // A restore before or after the record's last change decides whether it is believed.
		c.LostBefore = start.Add([]time.Duration{-time.Minute, time.Microsecond - time.Minute, -time.Second}[chance.IntN(3)])
		switch chance.IntN(4) { // The last change is a settlement's, a claim's or the plan's.
		case 0:
			rec.AnsweredAt, rec.ClaimedAt = time.Time{}, start.Add(-time.Minute)
		case 1:
			rec.AnsweredAt, rec.ClaimedAt, rec.CreatedAt = time.Time{}, time.Time{}, start.Add(-time.Minute)
		}
		rec.SentUntil = []time.Time{{}, start.Add(-time.Hour), start}[chance.IntN(3)]
	}
	if chance.IntN(2) == 0 {
		rec.BodyPurgedAt = time.Time{} // else nothing is stored again
	}
	rec.Doubt = chance.IntN(2) == 0
	rec.FromPlan = chance.IntN(2) == 0
	if chance.IntN(4) == 0 {
		rec.DueAt = time.Time{}
	}
	if chance.IntN(2) == 0 {
		rec.ReplayUntil, rec.EvidenceUntil = start.Add(2*c.Replay), time.Time{}
	}
	rec.LookOnly = chance.IntN(4) == 0
	rec.Blurred = chance.IntN(2) == 0
	rec.TakenFrom = append([]recordstore.State{""}, states[:]...)[chance.IntN(len(states)+1)]
	if state.Final() || chance.IntN(2) == 0 {
		rec.Request = nil
	}
	return meeting{claim: c, rec: rec}
}

// each calls f with every combination of indices below sizes.
func each(f func(pick []int), sizes ...int) {
	pick := make([]int, len(sizes))
	for {
		f(pick)
		i := len(sizes) - 1
		for ; i >= 0 && pick[i] == sizes[i]-1; i-- {
			pick[i] = 0
		}
		if i < 0 {
			return
		}
		pick[i]++
	}
}

func gridClaim(l *ledger) {
	all := meetings()
	recs := make([]recordstore.Record, len(all))
	for i, m := range all {
		recs[i] = m.rec
	}
	l.seed(recs...)
	wrong := 0
	for _, m := range all {
		want, decision := recordstore.Take(m.claim, &m.rec, 0, start)
		if !l.compareClaim(m.about, m.claim, want, decision) {
			if wrong++; wrong == enough {
				return
			}
		}
	}
}

// compareClaim claims and compares answer and stored record with what Take said.
func (l *ledger) compareClaim(about string, c recordstore.Claim, want recordstore.Record, decision recordstore.Decision) bool {
	l.Helper()
	got, err := l.Claim(l.Context(), c)
	if err != nil {
		l.Errorf("%s: Claim: %v", about, err)
		return false
	}
	if got.Decision != decision {
		l.Errorf("%s: decided %q, want %q", about, got.Decision, decision)
		return false
	}
	if want.ID == (recordstore.ID{}) {
		return l.same(about+": returned record", got.Record, want) && l.absent(c.ID)
	}
	return l.same(about+": returned record", got.Record, want) && l.same(about+": stored record", l.stored(c.ID), want)
}

func gridNew(l *ledger) {
	frontier := int32(0)
	if l.can("Forgetter") {
		frontier = today(start) - 10
		l.raise("money", frontier)
	}
	n := 0
	each(func(pick []int) {
		c := newClaim(n)
		n++
		day := today(start)
		c.ID.Day = []int32{0, 1, day - 11, day - 10, day - 9, day, day + 1, day + 2}[pick[0]]
		c.NotAfter = []time.Time{{}, start.Add(time.Microsecond), start, start.Add(-time.Hour)}[pick[1]]
		c.Window = []time.Duration{window, 0, -time.Second}[pick[2]]
		if pick[3] == 1 {
			c.Request = nil
		}
		c.LostBefore = []time.Time{{}, start.Add(-time.Microsecond)}[pick[4]]
		want, decision := recordstore.Take(c, nil, frontier, start)
		l.compareClaim(fmt.Sprintf("no record, day %d, not after %d, window %v, lost %d", c.ID.Day-day, pick[1], c.Window, pick[4]), c, want, decision)
	}, 8, 4, 3, 2, 2)
}

func gridSettle(l *ledger) {
	chance := rand.New(rand.NewPCG(3, 4))
	targets := []recordstore.State{
		recordstore.Succeeded, recordstore.Refused, recordstore.NotExecuted, recordstore.Uncertain, recordstore.ManualReview,
	}
	notes := []recordstore.State{"", recordstore.Succeeded, recordstore.Refused}
	l.gridMoves(func(rec *recordstore.Record, pick []int) move {
		if pick[0]+pick[6] > 0 && rec.State != recordstore.Sending {
			return move{} // Nothing else carries a note, or is changed.
		}
		rec.Noted = notes[pick[0]]
		rec.Doubt, rec.LookOnly, rec.Blurred = pick[6]&1 == 1, pick[6]&2 == 2, pick[6]&2 == 2
		s := recordstore.Settlement{
			ID: rec.ID, Holder: []string{rec.Holder, "another"}[pick[1]], Fence: rec.Fence - int64(pick[2]),
			Noted: notes[pick[3]], Result: gridResult(targets[pick[4]], pick[5]), Uncounted: chance.IntN(2) == 0,
		}
		rec.FromPlan, rec.Checks = chance.IntN(2) == 0, chance.IntN(3)
		if chance.IntN(2) == 0 {
			rec.BodyPurgedAt = time.Time{}
		}
		rec.DueAt = []time.Time{{}, rec.LeaseEndsAt, start.Add(time.Second), start.Add(-time.Second)}[chance.IntN(4)]
		want, wantErr := recordstore.Settled(*rec, s, start)
		return move{
			about: fmt.Sprintf("%s noted %q settled to %s (noted %q, holder %d, fence %d, result %d, before %d)",
				rec.State, rec.Noted, s.State, s.Noted, pick[1], pick[2], pick[5], pick[6]),
			want: want, wantErr: wantErr,
			do: func() (recordstore.Record, error) { return l.Settle(l.Context(), s) },
		}
	}, 3, 2, 2, 3, len(targets), 2, 4)
}

func gridReport(l *ledger) {
	facts := []recordstore.State{recordstore.Succeeded, recordstore.Refused, recordstore.NotExecuted}
	notes := []recordstore.State{"", recordstore.Succeeded, recordstore.Refused}
	l.gridMoves(func(rec *recordstore.Record, pick []int) move {
		if pick[0] > 0 && rec.State != recordstore.Sending {
			return move{} // Nothing else carries a note.
		}
		rec.Noted = notes[pick[0]]
		rec.LeaseEndsAt = start.Add(time.Duration(pick[1]) * time.Microsecond)
		rec.Doubt, rec.LookOnly, rec.Blurred = pick[4] == 1, pick[4] == 1, pick[4] == 1
		if pick[1] == 0 {
			rec.BodyPurgedAt = time.Time{}
		}
		if pick[3] == 1 {
			rec.Evidence = "operator" // a person's verdict, which a fact may contradict
		}
		r := gridResult(facts[pick[2]], pick[3])
		return move{
			about: fmt.Sprintf("%s noted %q, lease %d, report of %s (result %d, before %d)", rec.State, rec.Noted, pick[1], r.State, pick[3], pick[4]),
			want:  recordstore.Reported(*rec, r, start),
			do:    func() (recordstore.Record, error) { return l.Report(l.Context(), rec.ID, r) },
		}
	}, 3, 2, len(facts), 2, 2)
}

func gridRenew(l *ledger) {
	l.gridMoves(func(rec *recordstore.Record, pick []int) move {
		rec.LeaseEndsAt = start.Add([]time.Duration{0, time.Microsecond, 10 * lease}[pick[0]])
		rec.DueAt = []time.Time{{}, rec.LeaseEndsAt, start.Add(time.Hour)}[pick[3]]
		holder, fence := []string{rec.Holder, "another"}[pick[1]], rec.Fence-int64(pick[2])
		want, wantErr := recordstore.Renewed(*rec, holder, fence, lease, start)
		return move{
			about: fmt.Sprintf("%s, lease %d, renewed (holder %d, fence %d)", rec.State, pick[0], pick[1], pick[2]),
			want:  want, wantErr: wantErr,
			do: func() (recordstore.Record, error) {
				err := l.Renew(l.Context(), rec.ID, holder, fence, lease)
				return want, err
			},
		}
	}, 3, 2, 2, 3)
}

// gridResult returns a result that fills every field, or as few as it can.
func gridResult(to recordstore.State, sparse int) recordstore.Result {
	if sparse == 1 {
		return recordstore.Result{State: to, SealVersion: 1, DueIn: time.Minute, LookOnly: true, Blurred: true}
	}
	return result(to)
}

// move is one step on a seeded record and what it must lead to.
type move struct {
	about   string
	want    recordstore.Record
	wantErr error
	do      func() (recordstore.Record, error)
}

// gridMoves seeds a record for each state and combination below sizes, as prepare
// makes it, and compares what the moves lead to. A combination that does not occur
// is prepared as the zero move.
func (l *ledger) gridMoves(prepare func(rec *recordstore.Record, pick []int) move, sizes ...int) {
	l.Helper()
	var recs []recordstore.Record
	var moves []move
	for _, state := range states {
		each(func(pick []int) {
			rec := found(newClaim(len(recs)))
			rec.State = state
			if state.Final() {
				rec.Request = nil
			}
			if m := prepare(&rec, slices.Clone(pick)); m.do != nil {
				moves, recs = append(moves, m), append(recs, rec)
			}
		}, sizes...)
	}
	l.seed(recs...)
	wrong := 0
	for i, m := range moves {
		got, err := m.do()
		ok := isErr(err, m.wantErr)
		if !ok {
			l.Errorf("%s: error is %v, want %v", m.about, err, m.wantErr)
		}
		ok = ok && l.same(m.about+": returned record", got, m.want)
		if !l.same(m.about+": stored record", l.stored(recs[i].ID), m.want) || !ok {
			if wrong++; wrong == enough {
				return
			}
		}
	}
}
