package grpcadapter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/seed-6b5e302b/samekey/outbound"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// Send delivers a frozen request until an answer is worth no other attempt. All
// attempts carry the same bytes and key. Each has the deadline of
// Retry.AttemptTimeout and waits for no connection. An operation without a key is sent
// again only after a proof that nothing happened. Errors name no value of the request
// and repeat no text of the server.
func (a *Adapter) Send(ctx context.Context, d *outbound.Delivery) []outbound.Verdict {
	s := sending{a: a, d: d, method: a.methods[d.Operation.Name], retry: withDefaults(d.Retry), body: d.Message.Body}
	err := s.prepare()
	if err != nil {
		return []outbound.Verdict{{Effect: outbound.EffectNone, Code: outbound.ErrInvalid, Err: err}}
	}
	for {
		s.attempt(ctx)
		if !s.again(ctx) || !sleep(ctx, s.pause) {
			break
		}
	}
	last := s.last()
	if err := ctx.Err(); err != nil && last.Effect != outbound.EffectApplied && !errors.Is(last.Err, err) {
		last.Err = errors.Join(last.Err, err)
	}
	return s.verdicts
}

// sending is one call of Send.
type sending struct {
	a        *Adapter
	d        *outbound.Delivery
	method   Method
	retry    outbound.Retry
	body     []byte // with the key, where the row puts it there
	verdicts []outbound.Verdict
	attempts int
	pause    time.Duration // before the next attempt
}

func (s *sending) prepare() (err error) {
	op := s.d.Operation
	switch {
	case s.method.Request == nil:
		return fmt.Errorf("%s: no such method", op.Name)
	case s.d.Message.Target != op.Path:
		return fmt.Errorf("%s: the request is no %s", op.Name, op.Path)
	case op.HasKey() == s.d.Key.IsZero():
		return fmt.Errorf("%s: a delivery has a key exactly where the row has places for it", op.Name)
	case op.HasKey():
		s.body, err = s.a.withKey(op, s.body, s.d.Key.Raw())
	}
	return err
}

func withDefaults(r outbound.Retry) outbound.Retry {
	r.MinWait = cmp.Or(max(r.MinWait, 0), 500*time.Millisecond)
	r.MaxWait = cmp.Or(max(r.MaxWait, 0), 10*time.Second)
	r.MaxRetryAfter = cmp.Or(max(r.MaxRetryAfter, 0), 20*time.Second)
	r.AttemptTimeout = cmp.Or(max(r.AttemptTimeout, 0), 20*time.Second)
	r.Attempts = cmp.Or(max(r.Attempts, 0), 4)
	r.MinWait = min(r.MinWait, r.MaxWait)
	return r
}

// raw hands bytes through as the message: what is sent are the very bytes that were
// made, and what is kept those that came.
type raw struct{ bytes []byte }

type rawCodec struct{}

func (rawCodec) Marshal(v any) ([]byte, error) {
	r, ok := v.(*raw)
	if !ok {
		return nil, errors.New("not a raw message")
	}
	return r.bytes, nil
}

func (rawCodec) Unmarshal(data []byte, v any) error {
	r, ok := v.(*raw)
	if !ok {
		return errors.New("not a raw message")
	}
	r.bytes = slices.Clone(data)
	return nil
}

func (rawCodec) Name() string { return "proto" }

// attempt sends once and judges.
func (s *sending) attempt(ctx context.Context) {
	s.attempts++
	err := ctx.Err()
	if err == nil && s.d.Allow != nil {
		err = s.d.Allow()
	}
	if err != nil {
		s.refuse(outbound.ErrUnavailable, err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, s.retry.AttemptTimeout)
	defer cancel()
	sent, err := s.metadata(ctx)
	if err != nil {
		code := outbound.ErrUnavailable
		if errors.Is(err, outbound.ErrAuth) {
			code = outbound.ErrAuth
		}
		s.refuse(code, errors.New("there are no credentials for the attempt"))
		return
	}
	var wrote deliveries
	var header, trailer metadata.MD
	request, response := raw{s.body}, raw{}
	limit := s.a.cfg.MaxResponse
	if s.d.MaxBody > 0 {
		limit = int(min(s.d.MaxBody, 1<<30))
	}
	err = s.a.cfg.Conn.Invoke(metadata.NewOutgoingContext(wrote.watch(ctx), sent), s.d.Operation.Path, &request, &response,
		grpc.ForceCodec(rawCodec{}), grpc.WaitForReady(false), grpc.MaxCallRecvMsgSize(limit),
		grpc.Header(&header), grpc.Trailer(&trailer))
	v := s.judge(response.bytes, err)
	v.Deliveries = wrote.count()
	if err != nil && v.Deliveries == 0 {
		v = outbound.Verdict{Effect: outbound.EffectNone, Code: outbound.ErrUnavailable, Again: true, Err: v.Err}
	} else if v.Answer != nil {
		v.Answer.Header = s.fields(header, trailer)
	}
	s.conceal(&v, sent)
	s.verdicts = append(s.verdicts, v)
}

// metadata is what one attempt carries beside the body.
func (s *sending) metadata(ctx context.Context) (metadata.MD, error) {
	md := metadata.MD{}
	if s.a.cfg.Credentials != nil {
		own, err := s.a.cfg.Credentials(ctx, s.d.Account)
		if err != nil {
			return nil, err
		}
		for name, values := range own {
			md.Set(name, values...)
		}
	}
	for _, f := range s.d.Credentials {
		md.Set(f.Name, f.Value)
	}
	for _, f := range s.d.Message.Header {
		md.Append(f.Name, f.Value)
	}
	for _, place := range s.d.Operation.Keys {
		if place.Kind == rs.InHeader {
			md.Set(place.Name, s.d.Key.Raw())
		}
	}
	return md, nil
}

// judge says what one answer teaches, taken alone. A status says by itself only who
// gave it up, not what happened: what it means is the method's to say. UNIMPLEMENTED
// and the like are no exception, since a proxy may give them.
func (s *sending) judge(body []byte, err error) outbound.Verdict {
	if err == nil {
		return s.applied(body)
	}
	st, ok := status.FromError(err)
	if !ok {
		return outbound.Verdict{Again: true, Err: errors.New("the call failed without a status")}
	}
	v := outbound.Verdict{Again: again(st.Code())}
	if means, known := s.method.Errors[st.Code()]; known && (!made(st.Code()) || len(st.Details()) > 0) {
		v = outbound.VerdictOf(means)
	}
	v.ProviderCode = st.Code().String()
	for _, detail := range st.Details() {
		switch d := detail.(type) {
		case *errdetails.ErrorInfo:
			if means, known := s.method.Reasons[d.GetReason()]; known {
				v.Effect, v.Code, v.Again, v.Look = meaning(means)
			}
			v.ProviderCode = cmp.Or(word(d.GetReason()), v.ProviderCode)
		case *errdetails.RetryInfo:
			v.RetryAfter = min(max(0, d.GetRetryDelay().AsDuration()), 365*24*time.Hour)
		case *errdetails.RequestInfo:
			v.RequestID = word(d.GetRequestId())
		}
	}
	v.Err = fmt.Errorf("the call ended with %s", st.Code())
	if v.Effect == outbound.EffectNone { // an unknown one may be gRPC's own, and no answer
		v.Answer = &outbound.Answer{Status: int(st.Code())}
	}
	return v
}

// made reports whether gRPC gives a code by itself to a call that may have been
// executed, as RESOURCE_EXHAUSTED where the response is too long. What the service gave
// shows by its details, which gRPC's own have not. Source: gRPC's doc/statuscodes.md.
func made(code codes.Code) bool {
	switch code {
	case codes.Canceled, codes.Unknown, codes.DeadlineExceeded, codes.ResourceExhausted,
		codes.Unimplemented, codes.Internal, codes.Unavailable:
		return true
	}
	return false
}

func meaning(code outbound.Code) (outbound.Effect, outbound.Code, bool, bool) {
	v := outbound.VerdictOf(code)
	return v.Effect, v.Code, v.Again, v.Look
}

// again reports whether another attempt can end otherwise than with the same code.
func again(code codes.Code) bool {
	switch code {
	case codes.InvalidArgument, codes.NotFound, codes.PermissionDenied, codes.Unauthenticated,
		codes.FailedPrecondition, codes.OutOfRange, codes.Unimplemented:
		return false
	}
	return true
}

// applied judges a response. One that does not decode proves nothing.
func (s *sending) applied(body []byte) outbound.Verdict {
	response, err := s.method.response(body)
	if err != nil {
		return outbound.Verdict{Again: true, Err: errors.New("the response does not decode")}
	}
	v := outbound.Verdict{Effect: outbound.EffectApplied}
	if s.method.Applied != nil {
		v = s.method.Applied(response)
	}
	v.Answer = &outbound.Answer{Status: int(codes.OK), Body: body}
	return v
}

// refuse notes that an attempt was not made. After another attempt that is no news of
// the command: the earlier verdict stands, and says why there was none.
func (s *sending) refuse(code outbound.Code, err error) {
	if len(s.verdicts) == 0 {
		s.verdicts = append(s.verdicts, outbound.Verdict{Effect: outbound.EffectNone, Code: code, Err: err})
		return
	}
	s.last().Again = false
	s.last().Err = errors.Join(s.last().Err, err)
}

func (s *sending) last() *outbound.Verdict { return &s.verdicts[len(s.verdicts)-1] }

// again decides about another attempt and the pause before it.
func (s *sending) again(ctx context.Context) bool {
	v := s.last()
	safe := s.d.Operation.HasKey() || v.Deliveries == 0 || v.Effect == outbound.EffectNone && v.Deliveries == 1
	if !v.Again || v.Effect == outbound.EffectApplied || !safe || v.RetryAfter > s.retry.MaxRetryAfter || s.attempts >= s.retry.Attempts {
		return false
	}
	backoff := s.retry.MaxWait
	if shift := s.attempts - 1; shift < 30 {
		backoff = min(s.retry.MinWait<<shift, s.retry.MaxWait)
	}
	s.pause = backoff/2 + rand.N(backoff/2+1)
	if v.RetryAfter > s.pause {
		s.pause = min(v.RetryAfter+rand.N(s.retry.MinWait/2+1), s.retry.MaxRetryAfter)
	}
	end, bounded := ctx.Deadline()
	return ctx.Err() == nil && (!bounded || time.Until(end) > s.pause)
}

// sleep waits, and reports whether the context lived so long.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// fields is an answer's metadata as it is kept: bounded, without the key and without
// binary values.
func (s *sending) fields(of ...metadata.MD) (fields []outbound.Field) {
	size := 0
	for _, md := range of {
		for name, values := range md {
			for _, value := range values {
				hidden := s.d.Operation.HasKey() && strings.Contains(value, s.d.Key.Raw())
				if size += len(name) + len(value); hidden || size > maxMetadata || strings.HasSuffix(name, "-bin") || name == "set-cookie" {
					continue
				}
				fields = append(fields, outbound.Field{Name: name, Value: value})
			}
		}
	}
	slices.SortFunc(fields, func(x, y outbound.Field) int {
		return cmp.Or(strings.Compare(x.Name, y.Name), strings.Compare(x.Value, y.Value))
	})
	return fields
}

// conceal drops the provider's words that repeat the key or a credential: they are
// logged, and stored in clear.
func (s *sending) conceal(v *outbound.Verdict, sent metadata.MD) {
	for _, text := range []*string{&v.ProviderCode, &v.ExternalRef, &v.ObjectStatus, &v.RequestID} {
		*text = word(*text)
		for _, values := range sent {
			for _, secret := range values {
				_, token, _ := strings.Cut(secret, " ") // behind the scheme
				if token = cmp.Or(token, secret); len(token) >= 8 && strings.Contains(*text, token) {
					*text = ""
				}
			}
		}
		if s.d.Operation.HasKey() && strings.Contains(*text, s.d.Key.Raw()) {
			*text = ""
		}
	}
}

// word returns s if it has the form of a code or an id, and "" else.
func word(s string) string {
	other := func(r rune) bool {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
		return !letter && !strings.ContainsRune(".:_-", r)
	}
	if len(s) > 255 || strings.ContainsFunc(s, other) {
		return ""
	}
	return s
}
