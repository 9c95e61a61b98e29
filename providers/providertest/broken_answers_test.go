package providertest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

const keyHeader = "Idempotency-Key"

func brokenWires() []brokenAdapter {
	return []brokenAdapter{
		{"the key is changed on its way", "wire/key", byHeader,
			sent(func(r *http.Request, _, _ int) { r.Header.Set(keyHeader, strings.ToUpper(r.Header.Get(keyHeader))) })},
		{"the row names a place where no key is read", "wire/key", byHeader, func(s *shape) {
			s.row.Keys = append(s.row.Keys, rs.JSON("/id"))
			s.adapter = func(a *httpadapter.Adapter) outbound.Adapter {
				return &wrapped{Adapter: a, send: func(ctx context.Context, a *httpadapter.Adapter, d *outbound.Delivery) []outbound.Verdict {
					d.Operation.Keys = d.Operation.Keys[:1]
					return a.Send(ctx, d)
				}}
			}
		}},
		{"a third attempt makes a key of its own", "wire/same_key", byHeader,
			sent(func(r *http.Request, _, try int) {
				if try == 2 {
					r.Header.Set(keyHeader, "another-key")
				}
			})},
		{"a third attempt says that it is one", "wire/same_bytes", byHeader,
			sent(func(r *http.Request, _, try int) {
				if try == 2 {
					body, _ := io.ReadAll(r.Body)
					setBody(r, append(body, ' '))
				}
			})},
		{"the body tells the process", "wire/takeover", byHeader,
			sent(func(r *http.Request, process, _ int) {
				body, _ := io.ReadAll(r.Body)
				setBody(r, append(body, strings.Repeat(" ", process)...))
			})},
		{"the key tells the process", "wire/takeover", byHeader,
			sent(func(r *http.Request, process, _ int) {
				if process > 2 { // the first adapter of a case shows its profile only
					r.Header.Set(keyHeader, fmt.Sprint("key-of-process-", process))
				}
			})},
		{"the message is not marked", "wire/mark", func() *shape {
			s := byHeader()
			s.row.Lookup = "" // what is not marked cannot be found either
			return s
		}, with(wrapped{freeze: func(f outbound.Frozen, _ rs.Operation, m outbound.Message) outbound.Frozen {
			f.Message.Body = m.Body
			return f
		}})},
		{"the caller's token is frozen", "wire/frozen", byHeader,
			with(wrapped{freeze: func(f outbound.Frozen, _ rs.Operation, m outbound.Message) outbound.Frozen {
				for _, h := range m.Header {
					if h.Name == "Authorization" {
						f.Message.Header = append(f.Message.Header, h)
					}
				}
				return f
			}})},
		{"trace ids count in the fingerprint", "fingerprint/headers", byHeader,
			with(wrapped{canonical: func(a *httpadapter.Adapter, w io.Writer, version int, op rs.Operation, m outbound.Message, sensitive bool) error {
				for _, h := range m.Header {
					fmt.Fprintln(w, h.Name, h.Value)
				}
				return a.Canonical(w, version, op, m, sensitive)
			}})},
	}
}

func brokenUnknowns() []brokenAdapter {
	unavailable, rejected := none(outbound.ErrUnavailable), none(outbound.ErrRejected)
	html := func(x *httpadapter.Exchange) bool { return x.Status == http.StatusBadGateway }
	empty := func(x *httpadapter.Exchange) bool { return len(x.Body) == 0 }
	replayed500 := func(x *httpadapter.Exchange) bool { return x.Status == 500 && x.Header.Get(replayHeader) != "" }
	conflict := func(resend bool) func(*httpadapter.Exchange) bool {
		return func(x *httpadapter.Exchange) bool { return x.Status == http.StatusConflict && x.Resend == resend }
	}
	return []brokenAdapter{
		{"a lost answer is no payment", "unknown/lost", byHeader,
			sentOnce(1, func(v *outbound.Verdict) {
				if v.Err != nil && strings.HasSuffix(v.Err.Error(), "EOF") && !strings.Contains(v.Err.Error(), "whole") {
					unavailable(v)
				}
			})},
		{"a timeout is no payment", "unknown/no_answer", byHeader, failed("no answer within", unavailable)},
		{"500 is no payment", "unknown/500", byHeader, judged(func(x *httpadapter.Exchange) bool { return x.Status == 500 && !replayed500(x) }, unavailable)},
		{"502 is no payment", "unknown/502", byHeader, judged(html, unavailable)},
		{"503 is no payment", "unknown/503", byHeader, judged(status(503), unavailable)},
		{"424 is no payment", "unknown/424", byHeader, judged(status(424), unavailable)},
		{"half an answer is no payment", "unknown/truncated", byHeader, failed("was not read whole", unavailable)},
		{"an endless answer is no payment", "unknown/oversized", byHeader, failed("more than", unavailable)},
		{"an endless answer is a payment", "unknown/oversized", byHeader, failed("more than", func(v *outbound.Verdict) { v.Effect = outbound.EffectApplied })},
		{"an answer without a body is no payment", "unknown/empty", byHeader, judged(empty, rejected)},
		{"a redirect is a success", "unknown/redirect", byHeader, failed("status 302", func(v *outbound.Verdict) { v.Effect = outbound.EffectApplied })},
		{"redirects are followed", "unknown/redirect", byHeader,
			received(func(rt http.RoundTripper, r *http.Request, resp *http.Response) {
				if to, err := resp.Location(); err == nil {
					next := r.Clone(r.Context())
					next.Method, next.URL, next.Body, next.ContentLength = http.MethodGet, to, http.NoBody, 0
					if got, err := rt.RoundTrip(next); err == nil {
						got.Body.Close()
					}
				}
			})},
		{"a stored 500 is final", "unknown/stored_500", byHeader, judged(replayed500, none(outbound.ErrRefused))},
		{"in flight is a refusal", "unknown/in_flight", byHeader, judged(conflict(false), rejected)},
		{"in flight on a resend is a proof", "unknown/late", byHeader, judged(conflict(true), func(v *outbound.Verdict) {
			unavailable(v)
			v.Again = true
		})},
	}
}

func brokenProofs() []brokenAdapter {
	patient := func(x *httpadapter.Exchange) bool {
		return x.Status == 429 && x.Header.Get("Retry-After") == "" && !x.Resend
	}
	return []brokenAdapter{
		{"429 is final", "proof/rate_limited", byHeader, judged(patient, none(outbound.ErrRefused))},
		{"429 is unknown without a key", "proof/rate_limited", unkeyed, judged(patient, func(v *outbound.Verdict) { *v = outbound.Verdict{} })},
		{"401 is final", "proof/unauthorized", byHeader, judged(status(401), none(outbound.ErrRefused))},
		{"only the last verdict is told", "proof/after_doubt", byHeader,
			with(wrapped{send: func(ctx context.Context, a *httpadapter.Adapter, d *outbound.Delivery) []outbound.Verdict {
				all := a.Send(ctx, d)
				last := all[len(all)-1]
				if last.Code != outbound.ErrRateLimited { // a success tells enough by itself
					return all
				}
				return all[len(all)-1:]
			}})},
		{"no connection may have paid", "proof/unreachable", byHeader, failed("no route", func(v *outbound.Verdict) { *v = outbound.Verdict{Deliveries: 1} })},
		{"validation is a decline", "proof/rejected", byHeader, judged(status(400), none(outbound.ErrRefused))},
		{"a decline is validation", "refused/final", unkeyed, judged(status(402), none(outbound.ErrRejected))},
		{"declines are believed to be stored", "refused/after_loss", inBody, row(func(op *rs.Operation) { op.Failures = rs.Stored })},
	}
}

func brokenLabels() []brokenAdapter {
	original := func(v *outbound.Verdict) { v.Evidence = rs.ByReplayHeader }
	return []brokenAdapter{
		{"an echo of the key is a replay", "label/first", byHeader,
			judged(func(x *httpadapter.Exchange) bool {
				return x.Status == 201 && !x.Resend && x.Header.Get(keyHeader) != ""
			}, original)},
		{"a replay is an execution", "label/replay", byHeader,
			judged(func(x *httpadapter.Exchange) bool {
				return x.Resend && x.Status == 201 && x.Header.Get(replayHeader) != ""
			},
				func(v *outbound.Verdict) { v.Evidence = rs.ByNoReplayHeader })},
		{"every resend is a replay", "label/executed_later", byHeader,
			judged(func(x *httpadapter.Exchange) bool { return x.Resend && x.Status == 201 }, original)},
		{"the fingerprint has no body", "mismatch/local", byHeader,
			with(wrapped{canonical: func(_ *httpadapter.Adapter, w io.Writer, _ int, op rs.Operation, _ outbound.Message, _ bool) error {
				_, err := io.WriteString(w, op.Name)
				return err
			}})},
		{"the provider's mismatch is validation", "mismatch/provider", byHeader, judged(status(422), none(outbound.ErrRejected))},
	}
}
