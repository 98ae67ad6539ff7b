package receiver

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

const (
	// migrationLock is the advisory lock under which instances that start at
	// one moment take turns: the letters "whconfin".
	migrationLock = 0x7768636f6e66696e

	// writeBound is how long a commit may take on PostgreSQL, 8 s: within the
	// time that the receiver gives its store, so that the reason is known when
	// that is over.
	writeBound = 8 * time.Second

	// idleInTransaction ends the session of an instance that claimed a message
	// and then was not heard of any more, 60 s: twice what asking the provider
	// may take. A process that dies ends its session by itself, at once; this is
	// for machines that vanish from the network.
	idleInTransaction = 2 * lookupTimeout
)

// OpenPostgres opens the inbox in the PostgreSQL database at dsn, a URL
// (postgres://user:password@host/database) or keywords, for several instances of
// a receiver. The environment variables of libpq count, too.
//
// The schema is the same as in SQLite. Unless the DSN says otherwise, sessions
// wait for a lock no longer than 2 s, and commits wait for the disk
// (synchronous_commit). A DSN that turns that off is refused.
//
// A schema of a newer version is an error, a *[SchemaError]. Close the inbox
// after use.
func OpenPostgres(ctx context.Context, dsn string, o Options) (*Inbox, error) {
	if err := o.prepare(); err != nil {
		return nil, fmt.Errorf("configuring the inbox: %w", err)
	}
	config, err := postgresConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("opening the inbox: %w", err)
	}
	db := openConfig(config)
	// One connection each for the messages being processed, and some for the
	// writer, the metrics and whoever looks.
	db.SetMaxOpenConns(o.Workers + readers)
	db.SetMaxIdleConns(o.Workers + readers)
	p := &postgresDB{
		db:    db,
		title: net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port))) + "/" + config.Database,
	}
	err = migrate(ctx, migrationFiles, o.Clock.Now(), func(ctx context.Context, do func(context.Context, Tx) error) error {
		return p.update(ctx, func(ctx context.Context, tx Tx) error {
			if _, err := tx.ExecContext(ctx, `SELECT pg_advisory_xact_lock($1)`, int64(migrationLock)); err != nil {
				return err
			}
			return do(ctx, tx)
		})
	})
	if err == nil {
		err = p.warn(ctx, o.Logger)
	}
	if err != nil {
		_ = db.Close() // the first error says more
		return nil, fmt.Errorf("opening the inbox %s: %w", p.title, err)
	}
	return newInbox(p, newWriter(), o), nil
}

func openConfig(config *pgx.ConnConfig) *sql.DB { return stdlib.OpenDB(*config) }

// postgresConfig reads dsn. Its errors hold nothing of it: whatever part of it
// cannot be read may be the password.
func postgresConfig(dsn string) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, errors.New("the PostgreSQL address cannot be read (it is not shown, since it may hold a password): write postgres://user:password@host:5432/database, with %-escapes in the password, or host=… dbname=… user=…")
	}
	defaults := map[string]string{
		"synchronous_commit":                  "on",
		"lock_timeout":                        strconv.FormatInt(busyTimeout.Milliseconds(), 10),
		"idle_in_transaction_session_timeout": strconv.FormatInt(idleInTransaction.Milliseconds(), 10),
	}
	for name, value := range defaults {
		if _, given := config.RuntimeParams[name]; !given {
			config.RuntimeParams[name] = value
		}
	}
	if config.RuntimeParams["synchronous_commit"] == "off" {
		return nil, errors.New("the PostgreSQL address turns synchronous_commit off: a crash would lose events that were acknowledged. Leave it out")
	}
	return config, nil
}

// postgresDB is an inbox in PostgreSQL.
type postgresDB struct {
	db    *sql.DB
	title string
}

// warn tells of a server that promises more than its disk keeps.
func (p *postgresDB) warn(ctx context.Context, log *slog.Logger) error {
	var fsync string
	if err := p.db.QueryRowContext(ctx, "SHOW fsync").Scan(&fsync); err != nil {
		return fmt.Errorf("asking whether commits reach the disk: %w", err)
	}
	if fsync != "on" {
		log.Warn("the PostgreSQL server runs with fsync off: if its machine crashes, events that were acknowledged are lost", "database", p.title)
	}
	return nil
}

// flush implements database: one statement, and so one round trip, for all the
// messages.
func (p *postgresDB) flush(batch []*job) error {
	ctx, cancel := context.WithTimeout(context.Background(), writeBound)
	defer cancel()
	// Two instances that insert the same ids in different orders would wait for
	// each other for ever.
	slices.SortStableFunc(batch, func(a, b *job) int { return cmp.Compare(a.message.ID, b.message.ID) })
	var ids, types, keys []string
	var bodies [][]byte
	var times []int64
	for _, j := range batch {
		m := j.message
		ids, types, keys = append(ids, m.ID), append(types, m.Type), append(keys, m.Key)
		bodies, times = append(bodies, m.Body), append(times, m.ReceivedAt.UnixMicro())
	}
	added, err := p.ids(ctx, `INSERT INTO messages (id, type, body, key_label, status, received_at, due_at)
		SELECT id, type, body, key_label, 'received', at, at
		FROM unnest($1::text[], $2::text[], $3::bytea[], $4::text[], $5::bigint[]) AS new (id, type, body, key_label, at)
		ON CONFLICT (id) DO NOTHING RETURNING id`, ids, types, bodies, keys, times)
	if err != nil {
		return err
	}
	var queued map[string]bool
	if len(added) < len(batch) { // copies: of messages that failed, perhaps
		queued, err = p.ids(ctx, `UPDATE messages SET status = 'received', due_at = $2, finished_at = NULL
			WHERE id IN (SELECT id FROM messages WHERE id = ANY($1) AND status = 'failed' ORDER BY id FOR UPDATE)
			RETURNING id`, ids, times[len(times)-1])
		if err != nil {
			return err
		}
	}
	for _, j := range batch {
		id := j.message.ID
		// Of copies in one batch, one was added.
		j.added, j.queued = added[id], added[id] || queued[id]
		delete(added, id)
		delete(queued, id)
	}
	return nil
}

// ids is the set of ids that a statement returns.
func (p *postgresDB) ids(ctx context.Context, query string, args ...any) (map[string]bool, error) {
	rows, err := p.db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	set := map[string]bool{}
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		set[id] = true
	}
	return set, rows.Err()
}

// update implements database.
func (p *postgresDB) update(ctx context.Context, do func(context.Context, Tx) error) error {
	tx, err := p.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(ctx, tx); err != nil {
		_ = tx.Rollback() // the first error says more
		return err
	}
	return tx.Commit()
}

// claim implements database: the claim is the lock on the message's row, which
// other instances pass by and which ends with the connection, however that ends.
func (p *postgresDB) claim(ctx context.Context, now time.Time) (*claim, error) {
	tx, err := p.db.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	c, err := scanClaim(tx.QueryRowContext(ctx, selectDue+p.rowLock(), now.UnixMicro(), 1))
	if err != nil {
		_ = tx.Rollback() // the first error says more
		if errors.Is(err, sql.ErrNoRows) {
			return nil, nil
		}
		return nil, err
	}
	c.settle = func(ctx context.Context, do func(context.Context, Tx) error) error {
		if err := do(ctx, tx); err != nil {
			return err
		}
		return tx.Commit()
	}
	c.release = func() { _ = tx.Rollback() } // nothing to take back once settled
	return c, nil
}

func (p *postgresDB) reader() *sql.DB { return p.db }
func (p *postgresDB) rowLock() string { return " FOR UPDATE SKIP LOCKED" }
func (p *postgresDB) name() string    { return p.title }
func (p *postgresDB) check() error    { return nil }
func (p *postgresDB) close() error    { return p.db.Close() }

// fault implements database.
func (p *postgresDB) fault(err error) string {
	_, connecting := errors.AsType[*pgconn.ConnectError](err)
	e, answered := errors.AsType[*pgconn.PgError](err)
	if connecting || !answered {
		return faultUnreachable
	}
	switch e.Code {
	case "55P03", "40P01": // lock_not_available, deadlock_detected
		return faultLocked
	case "25006": // read_only_sql_transaction
		return faultReadOnly
	case "53100": // disk_full
		return faultFull
	case "57P01", "57P02", "57P03": // shut down, crashed, starting
		return faultUnreachable
	}
	return faultOther
}
