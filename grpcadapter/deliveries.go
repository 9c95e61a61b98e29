package grpcadapter

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"
)

// DialOptions are what a connection for writes needs: gRPC sends nothing again by
// itself that a server may have seen, neither by a service's own configuration nor by
// default, and what it does send is counted. Options that the caller adds after them
// must not undo it.
func DialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithDisableRetry(),
		grpc.WithDisableServiceConfig(),
		grpc.WithStatsHandler(counter{}),
	}
}

type deliveriesKey struct{}

// deliveries counts what one call wrote. gRPC creates a stream on a connection before
// anything of it can be written, and reports that; a stream that the server refused
// unread is sent once more and counted again.
type deliveries struct {
	seen    atomic.Bool // The connection reports.
	streams atomic.Int32
}

func (d *deliveries) watch(ctx context.Context) context.Context {
	return context.WithValue(ctx, deliveriesKey{}, d)
}

// count is how many requests may have reached the wire. A connection that does not
// report counts as one that wrote.
func (d *deliveries) count() int {
	if !d.seen.Load() {
		return 1
	}
	return int(d.streams.Load())
}

// counter is a stats.Handler that counts for the calls of this package only.
type counter struct{}

func (counter) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	if d, ok := ctx.Value(deliveriesKey{}).(*deliveries); ok {
		d.seen.Store(true)
	}
	return ctx
}

func (counter) HandleRPC(ctx context.Context, s stats.RPCStats) {
	d, ok := ctx.Value(deliveriesKey{}).(*deliveries)
	if _, header := s.(*stats.OutHeader); ok && header {
		d.streams.Add(1)
	}
}

func (counter) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

func (counter) HandleConn(context.Context, stats.ConnStats) {}
