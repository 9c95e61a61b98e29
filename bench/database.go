package main

import (
	"context"
	"fmt"
	"net/url"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-6b5e302b/samekey/internal/pgtest"
	"github.com/seed-6b5e302b/samekey/recordstore/postgres"
)

// connections is how many each contender's pool may hold.
const connections = 32

// database makes an empty database of that name on the run's own server, which
// is started by the first, and returns its URL.
func (b *bench) database(ctx context.Context, name string) (string, error) {
	if b.server == nil {
		s, err := pgtest.Start()
		if err != nil {
			return "", err
		}
		b.server = s
		b.onClose(s.Stop)
	}
	admin, err := pgxpool.New(ctx, b.server.DSN)
	if err != nil {
		return "", err
	}
	defer admin.Close()
	if b.result.Machine.PostgreSQL == "" {
		if err := admin.QueryRow(ctx, "SHOW server_version").Scan(&b.result.Machine.PostgreSQL); err != nil {
			return "", err
		}
	}
	if _, err := admin.Exec(ctx, fmt.Sprintf("CREATE DATABASE %q TEMPLATE template0", name)); err != nil {
		return "", err
	}
	at, err := url.Parse(b.server.DSN)
	if err != nil {
		return "", err
	}
	at.Path = "/" + name
	return at.String(), nil
}

// pool opens a contender's pool of connections to a database.
func (b *bench) pool(ctx context.Context, dsn string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	config.MaxConns = connections
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	b.onClose(pool.Close)
	return pool, nil
}

// ledger makes a database with an empty ledger.
func (b *bench) ledger(ctx context.Context, name string) (*pgxpool.Pool, string, error) {
	dsn, err := b.database(ctx, name)
	if err != nil {
		return nil, "", err
	}
	pool, err := b.pool(ctx, dsn)
	if err != nil {
		return nil, "", err
	}
	return pool, dsn, postgres.Migrate(ctx, pool, nil)
}
