package adyen

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
)

type codec struct{}

// The errorCode and the words of a key that is being worked on, or was. Either is
// enough: the code alone is not documented.
const (
	codeInProgress = "704"
	saysInProgress = "in progress"
)

// Judge says what one answer teaches, taken alone. The key that an answer repeats is
// not looked at: it stands on first answers too.
func (codec) Judge(x *httpadapter.Exchange) outbound.Verdict {
	var a struct {
		PspReference, ResultCode, Status, RefusalReasonCode, ErrorCode httpadapter.JSONWord

		Message string
	}
	if err := json.Unmarshal(x.Body, &a); err != nil {
		return outbound.Verdict{Again: true}
	}
	v := outbound.Verdict{Again: true}
	switch {
	case x.Status < 300 && a.ResultCode != "":
		v = judgeResult(string(a.ResultCode))
		v.ProviderCode = string(a.RefusalReasonCode)
	case x.Status < 300 && a.PspReference != "":
		v = outbound.Verdict{Effect: outbound.EffectApplied, Outcome: outbound.Pending, ObjectStatus: string(a.Status)}
	case a.ErrorCode == codeInProgress, strings.Contains(a.Message, saysInProgress):
		v.ProviderCode = string(a.ErrorCode)
	case x.Status == http.StatusUnprocessableEntity && a.ErrorCode != "":
		v = outbound.Verdict{Effect: outbound.EffectNone, Code: outbound.ErrRejected, ProviderCode: string(a.ErrorCode)}
	case x.Status >= 300:
		v = httpadapter.ByStatus(x.Status)
		v.ProviderCode = string(a.ErrorCode)
	}
	if v.Effect == outbound.EffectApplied {
		v.ExternalRef = string(a.PspReference)
	}
	v.RequestID = httpadapter.Word(x.Header.Get(headerReference))
	return v
}

// judgeResult judges what Adyen made of a payment.
func judgeResult(code string) outbound.Verdict {
	v := outbound.Verdict{ObjectStatus: code}
	v.Effect, v.Outcome = result(code)
	switch v.Effect {
	case outbound.EffectNone:
		v.Code = outbound.ErrRefused
	case outbound.EffectUnknown:
		v.Look = true
	}
	return v
}
