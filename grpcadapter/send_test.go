package grpcadapter_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/seed-6b5e302b/samekey/grpcadapter"
	"github.com/seed-6b5e302b/samekey/grpcadapter/internal/incidents"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore/memory"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// scripted is a server whose answers a test scripts.
type scripted struct {
	types  incidents.Types
	calls  atomic.Int32
	answer func(ctx context.Context, n int, request proto.Message) (string, error)
}

func (s *scripted) server(opts ...grpc.ServerOption) *grpc.Server {
	server := grpc.NewServer(opts...)
	server.RegisterService(&grpc.ServiceDesc{ServiceName: "incidents.v1.Incidents", Methods: []grpc.MethodDesc{{
		MethodName: "Create",
		Handler: func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			request := s.types.CreateRequest.New().Interface()
			if err := decode(request); err != nil {
				return nil, err
			}
			id, err := s.answer(ctx, int(s.calls.Add(1)), request)
			if err != nil {
				return nil, err
			}
			response := s.types.Incident.New().Interface()
			incidents.Set(response, "id", id)
			return response, nil
		},
	}}}, nil)
	return server
}

func newScripted(t *testing.T, answer func(ctx context.Context, n int, request proto.Message) (string, error)) *scripted {
	t.Helper()
	types, err := incidents.NewTypes()
	if err != nil {
		t.Fatal(err)
	}
	return &scripted{types: types, answer: answer}
}

// config adapts the incident service behind conn.
func (s *scripted) config(conn grpc.ClientConnInterface) grpcadapter.Config {
	return grpcadapter.Config{
		Provider: "incidents", Account: "eu", Mode: "test", Conn: conn, Methods: []grpcadapter.Method{incidents.Method(s.types)},
	}
}

// do makes one call with these retries and returns its answer.
func (s *scripted) do(t *testing.T, cfg grpcadapter.Config, opts outbound.Options) (*outbound.Reply, error) {
	t.Helper()
	opts.Retry.MinWait = time.Millisecond
	opts.Retry.MaxWait = time.Millisecond
	c, err := outbound.New(grpcadapter.New(cfg), memory.New(nil), &opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.WithoutCancel(t.Context())) })
	request := s.types.CreateRequest.New().Interface()
	incidents.Set(request, "alert", "a-17")
	return c.Do(t.Context(), cfg.Methods[0].Call(outbound.Command{ID: "alert-a-17"}, request))
}

func attempts(n int) outbound.Options { return outbound.Options{Retry: outbound.Retry{Attempts: n}} }

// R9, R12: a status proves nothing unless the service says what it means, and of those
// that gRPC gives by itself only if the error shows that it is the service's.
func TestStatuses(t *testing.T) {
	t.Parallel()
	info := func(reason string) *errdetails.ErrorInfo { return &errdetails.ErrorInfo{Reason: reason} }
	for name, c := range map[string]struct {
		code   codes.Code
		detail *errdetails.ErrorInfo
		want   outbound.Code
	}{
		"unavailable":                    {codes.Unavailable, nil, outbound.ErrUncertain},
		"deadline":                       {codes.DeadlineExceeded, nil, outbound.ErrUncertain},
		"cancelled":                      {codes.Canceled, nil, outbound.ErrUncertain},
		"internal":                       {codes.Internal, nil, outbound.ErrUncertain},
		"unknown":                        {codes.Unknown, nil, outbound.ErrUncertain},
		"failed precondition":            {codes.FailedPrecondition, nil, outbound.ErrUncertain},
		"unauthenticated":                {codes.Unauthenticated, nil, outbound.ErrUncertain},
		"documented":                     {codes.InvalidArgument, nil, outbound.ErrRejected},
		"exhausted, perhaps by gRPC":     {codes.ResourceExhausted, nil, outbound.ErrUncertain},
		"exhausted, said by the service": {codes.ResourceExhausted, info("QUOTA"), outbound.ErrRateLimited},
		"reason before code":             {codes.InvalidArgument, info("KEY_REUSED"), outbound.ErrUncertain},
		"key in flight":                  {codes.Aborted, info("KEY_IN_FLIGHT"), outbound.ErrUncertain},
	} {
		s := newScripted(t, func(context.Context, int, proto.Message) (string, error) {
			st := status.New(c.code, "secret words of the request")
			if c.detail != nil {
				st, _ = st.WithDetails(c.detail)
			}
			return "", st.Err()
		})
		_, err := s.do(t, s.config(serve(t, s.server())), attempts(1))
		if !errors.Is(err, c.want) || (outbound.EffectOf(err) == outbound.EffectNone) != (c.want != outbound.ErrUncertain) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
		if strings.Contains(err.Error(), "secret words") {
			t.Errorf("%s: the error repeats the server's text", name)
		}
	}
}

// R9: a connection that was refused proves that nothing was written, but only a
// connection that counts can show it.
func TestNothingWritten(t *testing.T) {
	t.Parallel()
	s := newScripted(t, nil)
	nobody := grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return nil, errors.New("refused") })
	_, err := s.do(t, s.config(connect(t, "passthrough:///nobody", nobody)), attempts(1))
	e, ok := errors.AsType[*outbound.Error](err)
	if !ok || e.Code != outbound.ErrUnavailable || e.Effect != outbound.EffectNone || e.Sent {
		t.Errorf("counted: %+v, want a proof that nothing was sent", err)
	}
	foreign, failed := grpc.NewClient("passthrough:///nobody", grpc.WithTransportCredentials(insecure.NewCredentials()), nobody)
	if failed != nil {
		t.Fatal(failed)
	}
	t.Cleanup(func() { foreign.Close() })
	if _, err := s.do(t, s.config(foreign), attempts(1)); !errors.Is(err, outbound.ErrUncertain) {
		t.Errorf("not counted: %v, want unknown", err)
	}
}

// R8: a resend carries the key and the bytes of the first delivery, and gRPC resends
// nothing by itself, whatever the service configures.
func TestResends(t *testing.T) {
	t.Parallel()
	var seen []string
	s := newScripted(t, func(_ context.Context, n int, request proto.Message) (string, error) {
		seen = append(seen, incidents.Text(request, "idempotency_key")+" "+incidents.Text(request, "alert"))
		if n < 3 {
			return "", status.Error(codes.Unavailable, "try later")
		}
		return "inc_1", nil
	})
	retries := grpc.WithDefaultServiceConfig(`{"methodConfig":[{"name":[{}],"retryPolicy":{"maxAttempts":5,"initialBackoff":"0.001s","maxBackoff":"0.001s","backoffMultiplier":1,"retryableStatusCodes":["UNAVAILABLE"]}}]}`)
	pipe := s.server()
	conn := serve(t, pipe)
	r, err := s.do(t, s.config(conn), attempts(3))
	if err != nil || r.ExternalRef != "inc_1" || r.Deliveries != 3 || r.Label != outbound.LatestStatus {
		t.Fatalf("%+v, %v", r, err)
	}
	if len(seen) != 3 || seen[0] != seen[1] || seen[1] != seen[2] || len(seen[0]) != 36+len(" a-17") {
		t.Errorf("the server saw %d requests, not three of one key and content", len(seen))
	}
	s.calls.Store(0)
	if _, err := s.do(t, s.config(serve(t, s.server(), retries)), attempts(1)); !errors.Is(err, outbound.ErrUncertain) || s.calls.Load() != 1 {
		t.Errorf("with a service's retries: %v after %d requests, want 1", err, s.calls.Load())
	}
}

// R15: a resend that gRPC makes beside us, as an interceptor's, is counted.
func TestHiddenDeliveriesCount(t *testing.T) {
	t.Parallel()
	s := newScripted(t, func(_ context.Context, n int, _ proto.Message) (string, error) {
		if n == 1 {
			return "", status.Error(codes.Unavailable, "try later")
		}
		return "inc_1", nil
	})
	twice := grpc.WithUnaryInterceptor(func(ctx context.Context, method string, request, response any, c *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if err := invoke(ctx, method, request, response, c, opts...); err == nil {
			return nil
		}
		return invoke(ctx, method, request, response, c, opts...)
	})
	r, err := s.do(t, s.config(serve(t, s.server(), twice)), attempts(1))
	if err != nil || r.Deliveries != 2 || r.Label != outbound.LatestStatus {
		t.Errorf("%+v, %v, want two deliveries and the weaker label", r, err)
	}
}

// RetryInfo is obeyed: a pause that is longer than allowed ends the call and is handed
// on.
func TestRetryInfo(t *testing.T) {
	t.Parallel()
	s := newScripted(t, func(context.Context, int, proto.Message) (string, error) {
		st, err := status.New(codes.ResourceExhausted, "slow down").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(time.Hour)})
		if err != nil {
			return "", err
		}
		return "", st.Err()
	})
	_, err := s.do(t, s.config(serve(t, s.server())), attempts(4))
	if pause, again := outbound.RetryAfter(err); !errors.Is(err, outbound.ErrRateLimited) || pause != time.Hour || !again || s.calls.Load() != 1 {
		t.Errorf("%v, again %v after %v, %d requests", err, again, pause, s.calls.Load())
	}
}

// A response that is longer than allowed is not read, and proves nothing: the effect may
// be there.
func TestLongResponse(t *testing.T) {
	t.Parallel()
	s := newScripted(t, func(context.Context, int, proto.Message) (string, error) { return strings.Repeat("x", 5000), nil })
	opts := attempts(1)
	opts.MaxBody = 4096
	if _, err := s.do(t, s.config(serve(t, s.server())), opts); !errors.Is(err, outbound.ErrUncertain) || outbound.EffectOf(err) != outbound.EffectUnknown {
		t.Errorf("%v, want unknown", err)
	}
}

// An attempt ends by its own deadline, which the server sees; the effect is unknown.
func TestDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bounded := make(chan bool, 1)
		s := newScripted(t, func(ctx context.Context, _ int, _ proto.Message) (string, error) {
			_, ok := ctx.Deadline()
			bounded <- ok
			<-ctx.Done()
			return "", ctx.Err()
		})
		opts := attempts(1)
		opts.Retry.AttemptTimeout = 5 * time.Second
		if _, err := s.do(t, s.config(serve(t, s.server())), opts); !errors.Is(err, outbound.ErrUncertain) || !<-bounded {
			t.Errorf("%v, want unknown and a deadline at the server", err)
		}
	})
}

// R2, R14: a key in the metadata goes under the service's name, credentials go beside
// it, and neither is in the answer that is kept.
func TestMetadata(t *testing.T) {
	t.Parallel()
	got := make(chan metadata.MD, 1)
	s := newScripted(t, func(ctx context.Context, _ int, _ proto.Message) (string, error) {
		md, _ := metadata.FromIncomingContext(ctx)
		got <- md
		grpc.SetTrailer(ctx, metadata.Pairs("x-key", md.Get("x-request-key")[0], "x-region", "eu"))
		return md.Get("x-request-key")[0], nil
	})
	cfg := s.config(serve(t, s.server()))
	cfg.Methods[0].Row.Keys = []rs.Place{rs.Header("X-Request-Key")}
	cfg.Credentials = func(context.Context, string) (metadata.MD, error) {
		return metadata.Pairs("authorization", "Bearer token-123"), nil
	}
	r, err := s.do(t, cfg, attempts(1))
	if err != nil {
		t.Fatal(err)
	}
	md := <-got
	if len(md.Get("x-request-key")[0]) != 36 || md.Get("authorization")[0] != "Bearer token-123" {
		t.Error("the server got no key or no credentials")
	}
	if r.ExternalRef != "" {
		t.Error("an id that repeats the key is stored in clear")
	}
	for _, f := range r.Header {
		if f.Name == "x-key" {
			t.Error("the answer's metadata holds the key")
		}
	}
	if response, err := cfg.Methods[0].Read(r); err != nil || incidents.Text(response, "id") != md.Get("x-request-key")[0] {
		t.Errorf("the reply does not read as the response: %v", err)
	}
	cfg.Credentials = func(context.Context, string) (metadata.MD, error) { return nil, outbound.ErrAuth }
	if _, err := s.do(t, cfg, attempts(1)); !errors.Is(err, outbound.ErrAuth) || s.calls.Load() != 1 {
		t.Errorf("without credentials: %v", err)
	}
}
