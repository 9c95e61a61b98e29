package providertest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// deaf drops a Retry-After that is longer or shorter than a minute.
func deaf(long bool) func(*shape) {
	return received(func(_ http.RoundTripper, _ *http.Request, resp *http.Response) {
		if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && (s > 60) == long {
			resp.Header.Del("Retry-After")
		}
	})
}

func brokenTimes() []brokenAdapter {
	return []brokenAdapter{
		{"the row believes in minutes", "window/open", byHeader, row(func(op *rs.Operation) { op.Window = 10 * time.Minute })},
		{"the row believes in days", "window/closed", byHeader, row(func(op *rs.Operation) { op.Window *= 3 })},
		{"Retry-After is not read", "retry/after", byHeader, deaf(false)},
		{"an hour is not read", "retry/long_after", byHeader, deaf(true)},
		{"what failed thrice is tried thrice again", "retry/bounded", byHeader,
			with(wrapped{send: func(ctx context.Context, a *httpadapter.Adapter, d *outbound.Delivery) []outbound.Verdict {
				all := a.Send(ctx, d)
				if len(all) == 3 && all[2].Code == outbound.ErrRateLimited {
					all = append(all, a.Send(ctx, d)...)
				}
				return all
			}})},
		{"hidden resends are not counted", "hidden/counted", byHeader, func(s *shape) {
			s.wire = resending
			s.adapter = func(a *httpadapter.Adapter) outbound.Adapter {
				return &wrapped{Adapter: a, send: func(ctx context.Context, a *httpadapter.Adapter, d *outbound.Delivery) []outbound.Verdict {
					all := a.Send(ctx, d)
					for i := range all {
						all[i].Deliveries = min(all[i].Deliveries, 1)
					}
					return all
				}}
			}
		}},
		{"giving up early is doubt", "cancel/before_write", byHeader, func(s *shape) {
			verdicts(func(v *outbound.Verdict) {
				if errors.Is(v.Err, context.Canceled) && v.Deliveries == 0 {
					*v = outbound.Verdict{Deliveries: 1, Err: v.Err}
				}
			})(s)
		}},
		{"giving up is no payment", "cancel/after_write", byHeader, func(s *shape) {
			verdicts(func(v *outbound.Verdict) {
				if errors.Is(v.Err, context.Canceled) {
					none(outbound.ErrUnavailable)(v)
				}
			})(s)
		}},
		{"waits outlive their caller", "cancel/waiting", byHeader,
			with(wrapped{send: func(ctx context.Context, a *httpadapter.Adapter, d *outbound.Delivery) []outbound.Verdict {
				if d.Retry.Attempts == 3 {
					all := a.Send(context.WithoutCancel(ctx), d)
					if ctx.Err() != nil {
						all[len(all)-1].Err = errors.Join(all[len(all)-1].Err, ctx.Err())
					}
					return all
				}
				return a.Send(ctx, d)
			}})},
		{"without a key it is sent again", "keyless/never_resent", unkeyed,
			with(wrapped{send: func(ctx context.Context, a *httpadapter.Adapter, d *outbound.Delivery) []outbound.Verdict {
				all := a.Send(ctx, d)
				if v := all[0]; d.Retry.Attempts == 4 && v.Effect == outbound.EffectUnknown && v.Again {
					all = append(all, a.Send(ctx, d)...)
				}
				return all
			}})},
		{"without a key net/http sends it again", "keyless/never_resent", unkeyed, func(s *shape) { s.wire = resending }},
	}
}

// resending allows net/http to send a request again by itself.
func resending(_ int, rt http.RoundTripper) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodPost {
			body, _ := io.ReadAll(r.Body)
			setBody(r, body)
			r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(string(body))), nil }
			r.Header["X-Idempotency-Key"] = []string{} // net/http looks for it and sends nothing
			r.Close = false
		}
		return rt.RoundTrip(r)
	})
}

func brokenLookups() []brokenAdapter {
	found := func(change func(l *outbound.Lookup, list []payment, f *outbound.Finding, err *error)) func(*shape) {
		return func(s *shape) {
			s.find = func(l *outbound.Lookup, list []payment, f outbound.Finding, err error) (outbound.Finding, error) {
				change(l, list, &f, &err)
				return f, err
			}
		}
	}
	return []brokenAdapter{
		{"nothing is ever found", "lookup/found", byHeader, found(func(_ *outbound.Lookup, _ []payment, f *outbound.Finding, _ *error) {
			if f.Effect == outbound.EffectApplied {
				*f = outbound.Finding{}
			}
		})},
		{"what is not there is found", "lookup/nothing", byHeader, found(func(_ *outbound.Lookup, list []payment, f *outbound.Finding, err *error) {
			if *err == nil && len(list) == 0 {
				*f = outbound.Finding{Effect: outbound.EffectApplied, ExternalRef: "pay_0"}
			}
		})},
		{"any payment will do", "lookup/foreign", byHeader, found(func(_ *outbound.Lookup, list []payment, f *outbound.Finding, _ *error) {
			if len(list) > 0 {
				*f = outbound.Finding{Effect: outbound.EffectApplied, ExternalRef: list[0].ID}
			}
		})},
		{"an error is absence", "lookup/failing", byHeader, found(func(_ *outbound.Lookup, _ []payment, f *outbound.Finding, err *error) {
			if *err != nil {
				*f, *err = outbound.Finding{Effect: outbound.EffectNone}, nil
			}
		})},
	}
}

func brokenSecrets() []brokenAdapter {
	return []brokenAdapter{
		{"the request id is the key", "secrets/told", byHeader,
			with(wrapped{send: func(ctx context.Context, a *httpadapter.Adapter, d *outbound.Delivery) []outbound.Verdict {
				all := a.Send(ctx, d)
				for i := range all {
					all[i].RequestID = d.Key.Raw()
				}
				return all
			}})},
		{"the error shows a secret of the adapter's", "secrets/told", byHeader,
			verdicts(func(v *outbound.Verdict) { v.Err = errors.Join(v.Err, errors.New("signed with "+signingSecret)) })},
		{"the error shows the request", "secrets/told", unkeyed,
			with(wrapped{send: func(ctx context.Context, a *httpadapter.Adapter, d *outbound.Delivery) []outbound.Verdict {
				all := a.Send(ctx, d)
				for i := range all {
					all[i].Err = errors.Join(all[i].Err, errors.New(string(d.Message.Body)))
				}
				return all
			}})},
		{"the provider's message is its code", "secrets/told", byHeader,
			func(s *shape) {
				s.judge = func(x *httpadapter.Exchange, v outbound.Verdict) outbound.Verdict {
					v.ProviderCode = x.Header.Get("X-Echo")
					return v
				}
			}},
		{"the card's number is not declared", "card/never_stored", byHeader, row(func(op *rs.Operation) { op.Sensitive, op.Codes = nil, nil })},
		{"cards are frozen as anything else", "card/never_stored", byHeader,
			with(wrapped{freeze: func(f outbound.Frozen, _ rs.Operation, _ outbound.Message) outbound.Frozen {
				f.Sensitive = false
				return f
			}})},
	}
}
