package recordstore

import "time"

// Emptied returns rec without its sealed bodies, and false where they stay: the
// record is not settled, its time for replays is not over, or it holds none. An
// unresolved record keeps its bodies, because they may be needed to find out.
func Emptied(rec Record, now time.Time) (Record, bool) {
	if !settled(rec) || !past(rec.ReplayUntil, now) || !hasBodies(rec) {
		return rec, false
	}
	return Erased(rec, now), true
}

// Erased returns rec without its sealed bodies, whatever its state. Who holds the
// claim keeps what it has in memory; afterwards only a caller who brings the
// request again can have it resent.
func Erased(rec Record, now time.Time) Record {
	rec.Request, rec.ResponseHeader, rec.ResponseBody = nil, nil, nil
	rec.BodyPurgedAt = now
	rec.Version++
	return rec
}

// Purgeable reports whether rec may be deleted: it is settled, its bodies went
// before, its evidence is over, and it has a day that ended at least one day ago.
// Whoever deletes it first raises the frontier of its class to rec.ID.Day, in a step
// that every later claim sees. Its command is then Forgotten and can never be
// written anew; while the record is there, it is found before the frontier is
// asked. As the frontier is raised to days that are over only, it stays behind the
// commands of today, whatever retention a client declared.
func Purgeable(rec Record, now time.Time) bool {
	return outlived(rec, now) && rec.ID.Day > 0 && rec.ID.Day < dayOf(now)-1
}

// Tombstone returns what stays of a settled record of day 0 whose bodies went and
// whose evidence is over, and false where it is not such a one. Nothing tells such
// a command from a new one, so that its record is never deleted: identity,
// fingerprint, state, outcome, external reference, evidence and the code of a
// refusal stay, the provider's words go. EvidenceUntil is zero in a tombstone.
func Tombstone(rec Record, now time.Time) (Record, bool) {
	if !outlived(rec, now) || rec.ID.Day != 0 {
		return rec, false
	}
	rec.ObjectStatus, rec.RequestID = "", ""
	rec.EvidenceUntil = time.Time{}
	rec.Version++
	return rec, true
}

// outlived reports whether nothing of rec is needed as evidence any more.
func outlived(rec Record, now time.Time) bool {
	return settled(rec) && !hasBodies(rec) && past(rec.EvidenceUntil, now)
}

func hasBodies(rec Record) bool {
	return len(rec.Request)+len(rec.ResponseHeader)+len(rec.ResponseBody) > 0
}

// settled reports whether retention counts for rec. All others are unresolved and
// stay until somebody resolves them; so does a plan that is to be sent again.
func settled(rec Record) bool {
	return rec.State.Final() || rec.State == NotExecuted && rec.DueAt.IsZero() || rec.State == Abandoned
}

// dayOf returns the day of t, counted as ID.Day.
func dayOf(t time.Time) int32 { return int32(t.Unix() / (24 * 60 * 60)) }
