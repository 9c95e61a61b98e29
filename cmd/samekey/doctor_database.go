package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-6b5e302b/samekey/cmd/samekey/explain"
)

// leastServer is the oldest PostgreSQL that the ledger's schema works on.
const leastServer = 150_000

// server looks at the settings of PostgreSQL and at the statistics of the ledger's
// table.
func (d *doctor) server(ctx context.Context) error {
	pool, err := d.flags.pool(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	for _, check := range []func(context.Context, *pgxpool.Pool) error{d.settings, d.pooler, d.table} {
		if err := check(ctx, pool); err != nil {
			return err
		}
	}
	return nil
}

// settings looks for what loses claims that were acknowledged.
func (d *doctor) settings(ctx context.Context, pool *pgxpool.Pool) error {
	var version int
	var standby, fsync, commits, pages, autovacuum bool
	var level string
	err := pool.QueryRow(ctx, `SELECT current_setting('server_version_num')::integer, pg_is_in_recovery(), current_setting('fsync')::boolean,
		current_setting('synchronous_commit') <> 'off', current_setting('full_page_writes')::boolean, current_setting('autovacuum')::boolean,
		current_setting('synchronous_commit')`).Scan(&version, &standby, &fsync, &commits, &pages, &autovacuum, &level)
	if err != nil {
		return err
	}
	const lost = "a crash of the server loses claims, and what they sent is then unknown to the ledger: turn it on"
	const check = "database"
	before := len(d.findings)
	if version < leastServer {
		d.add(problem(check, "use PostgreSQL 15 or newer", "the server has version %d", version/10_000))
	}
	if standby {
		d.add(problem(check, "let the DSN lead to the primary, as with target_session_attrs=read-write", "this server is a standby: nothing can be claimed on it"))
	}
	if !fsync || !pages {
		d.add(problem(check, lost, "fsync or full_page_writes is off"))
	}
	if !commits {
		d.add(problem(check, lost, "synchronous_commit is off"))
	}
	if !autovacuum {
		d.add(problem(check, "turn it on, or vacuum the ledger's tables yourself", "autovacuum is off on this server"))
	}
	if len(d.findings) == before {
		d.add(ok(check, "PostgreSQL %d, a primary; fsync on, synchronous_commit %s, autovacuum on", version/10_000, level))
	}
	return nil
}

// pooler finds out whether something stands between: PgBouncer gives its clients
// process numbers of its own.
func (d *doctor) pooler(ctx context.Context, pool *pgxpool.Pool) error {
	config, err := d.flags.config()
	if err != nil {
		return err
	}
	return pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) error {
		var pid uint32
		if err := conn.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&pid); err != nil {
			return err
		}
		const check = "pooler"
		switch mode := config.ConnConfig.DefaultQueryExecMode; {
		case pid == conn.Conn().PgConn().PID():
			d.add(ok(check, "this DSN leads to the server itself"))
		case mode == pgx.QueryExecModeCacheStatement || mode == pgx.QueryExecModeDescribeExec:
			d.add(note(check, "PgBouncer needs version 1.21 or newer with max_prepared_statements above 0; else put default_query_exec_mode=exec into the services' DSN",
				"a pooler stands before the server, and this DSN prepares statements (%s)", mode))
		default:
			d.add(ok(check, "a pooler stands before the server, and this DSN prepares nothing (%s)", mode))
		}
		return nil
	})
}

// tableHealth is what the server counted of the ledger's table.
type tableHealth struct {
	off            bool
	live, dead     int64
	updates, hot   int64
	vacuumed       *time.Time
	frozenAge, max int64
}

func (d *doctor) table(ctx context.Context, pool *pgxpool.Pool) error {
	var h tableHealth
	name := pgx.Identifier{d.flags.schema, "record"}.Sanitize()
	err := pool.QueryRow(ctx, `SELECT COALESCE('autovacuum_enabled=false' = ANY(c.reloptions) OR 'autovacuum_enabled=off' = ANY(c.reloptions), false),
		COALESCE(n_live_tup, 0), COALESCE(n_dead_tup, 0), COALESCE(n_tup_upd, 0), COALESCE(n_tup_hot_upd, 0),
		GREATEST(last_vacuum, last_autovacuum), age(c.relfrozenxid), current_setting('autovacuum_freeze_max_age')::bigint
		FROM pg_class AS c LEFT JOIN pg_stat_all_tables AS s ON s.relid = c.oid WHERE c.oid = $1::text::regclass`, name).
		Scan(&h.off, &h.live, &h.dead, &h.updates, &h.hot, &h.vacuumed, &h.frozenAge, &h.max)
	if err != nil {
		return err
	}
	d.add(h.findings(d.about.Now)...)
	return nil
}

func (h tableHealth) findings(now time.Time) (found []finding) {
	const check = "autovacuum"
	last := "never"
	if h.vacuumed != nil {
		last = explain.Ago(now.Sub(*h.vacuumed))
	}
	const do = "see why autovacuum does not come through: a long transaction, a replication slot, its cost limits"
	if h.off {
		found = append(found, problem(check, "ALTER TABLE … RESET (autovacuum_enabled)", "it is turned off for the ledger's table"))
	}
	if h.dead > 10_000 && h.dead > h.live/3 {
		found = append(found, problem(check, do, "%d dead rows beside %d live ones, last vacuumed %s", h.dead, h.live, last))
	}
	if h.frozenAge > 2*h.max {
		found = append(found, problem(check, do, "the table was not frozen for %d transactions", h.frozenAge))
	}
	if len(found) == 0 {
		found = append(found, ok(check, "%d live rows, %d dead, last vacuumed %s", h.live, h.dead, last))
	}
	if h.updates > 10_000 && h.hot < h.updates/10*8 {
		found = append(found, note("updates", "see whether somebody added an index on a column that calls change, or lowered the fill factor's room: docs/design.md",
			"only %d of %d updates stayed on their page: calls write more than they need", h.hot, h.updates))
	}
	return found
}

// file looks at a ledger in SQLite.
func (d *doctor) file(context.Context) error {
	info, err := os.Stat(d.flags.sqlite)
	if err != nil {
		return err
	}
	const check = "file"
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		d.add(note(check, "chmod 600, for it and the files beside it", "others on this machine may read or write the ledger (%v)", mode))
	}
	if kind := networkFileSystem(filepath.Dir(d.flags.sqlite)); kind != "" {
		d.add(problem(check, "move it to a local disk, or use PostgreSQL", "the ledger lies on a network file system (%s), where SQLite's locks do not hold", kind))
		return nil
	}
	d.add(ok(check, "%s on disk, write-ahead log included", bytesOf(d.about.Bytes)))
	return nil
}

// networkFileSystem names the kind of network file system that a folder lies on, ""
// for none, or where this system does not tell.
func networkFileSystem(folder string) string {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return ""
	}
	folder, err = filepath.Abs(folder)
	if err != nil {
		return ""
	}
	return mountedAs(string(mounts), folder)
}

func mountedAs(mounts, folder string) (kind string) {
	at := ""
	for line := range strings.Lines(mounts) {
		f := strings.Fields(line)
		if len(f) < 3 || !(f[1] == "/" || folder == f[1] || strings.HasPrefix(folder, f[1]+"/")) || len(f[1]) < len(at) {
			continue
		}
		at, kind = f[1], f[2]
	}
	for _, network := range []string{"nfs", "cifs", "smb", "9p", "ceph", "glusterfs", "fuse.sshfs", "afs"} {
		if strings.HasPrefix(kind, network) {
			return kind
		}
	}
	return ""
}
