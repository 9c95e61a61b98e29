package postgres

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// broken reports whether err says that a connection went away under a statement,
// so that a new one may serve it. A server that could not be reached at all, and
// a pool that its owner closed, are not asked again.
func broken(err error) bool {
	if _, unreachable := errors.AsType[*pgconn.ConnectError](err); unreachable {
		return false
	}
	if e, said := errors.AsType[*pgconn.PgError](err); said {
		// Connection exceptions, and the server's going down or coming up.
		return strings.HasPrefix(e.Code, "08") || strings.HasPrefix(e.Code, "57P")
	}
	_, network := errors.AsType[net.Error](err)
	return network || pgconn.SafeToRetry(err) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// rescue opens a connection beside the pool, as the pool itself would.
func (s *Store) rescue(ctx context.Context) (*pgx.Conn, error) {
	select {
	case s.rescues <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	conn, err := s.connect(ctx)
	if err != nil {
		<-s.rescues
		return nil, err
	}
	return conn, nil
}

func (s *Store) connect(ctx context.Context) (*pgx.Conn, error) {
	config := s.pool.Config()
	if config.BeforeConnect != nil { // it may fetch a password that changes
		if err := config.BeforeConnect(ctx, config.ConnConfig); err != nil {
			return nil, err
		}
	}
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil {
		return nil, err
	}
	if config.AfterConnect != nil {
		if err := config.AfterConnect(ctx, conn); err != nil {
			return nil, errors.Join(err, conn.Close(ctx))
		}
	}
	return conn, nil
}

// release closes a connection that rescue opened. What it carried is done, so
// that an error of closing says nothing.
func (s *Store) release(ctx context.Context, conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = conn.Close(ctx)
	<-s.rescues
}
