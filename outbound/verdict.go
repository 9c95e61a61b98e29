package outbound

// VerdictOf is the verdict on an answer whose meaning the provider documents. Of an
// effect that the answer rules out, code says why: ErrRejected, ErrRefused, ErrAuth,
// ErrRateLimited, ErrUnavailable or ErrInvalid. ErrInFlight and
// ErrFingerprintConflict speak of another delivery of the key and prove nothing of
// this command; no more does any other code.
func VerdictOf(code Code) Verdict {
	switch code {
	case ErrRejected, ErrRefused, ErrAuth, ErrInvalid:
		return Verdict{Effect: EffectNone, Code: code}
	case ErrRateLimited, ErrUnavailable:
		return Verdict{Effect: EffectNone, Code: code, Again: true}
	case ErrFingerprintConflict:
		return Verdict{Look: true}
	}
	return Verdict{Again: true}
}
