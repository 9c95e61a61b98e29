package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// broken reports whether err says that a connection went away under a statement,
// so that a new one may serve it. A server that could not be reached at all is
// not asked again.
func broken(err error) bool {
	if err == nil || errors.Is(err, pgx.ErrNoRows) {
		return false
	}
	if _, unreachable := errors.AsType[*pgconn.ConnectError](err); unreachable {
		return false
	}
	if e, said := errors.AsType[*pgconn.PgError](err); said {
		switch e.Code[:2] {
		case "08", "57": // connection exception; shutdown, crash, not yet ready
			return e.Code != "57014" // the statement was cancelled by its own limit
		}
		return false
	}
	return true
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
