package sender

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/benbjohnson/clock"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

const (
	// busyTimeout is how long a write waits for another process that holds the
	// database, 2 s: then publishing is an error that its caller can act on.
	busyTimeout = 2 * time.Second

	// checkpointPages is how many pages of 4 KiB gather in the write-ahead log
	// before they are moved into the database, 2,048 or 8 MiB: twice the usual,
	// since moving them costs two more waits for the disk.
	checkpointPages = 2048

	// readers is the number of connections that read beside the writer, 4:
	// attempts that fetch their bytes, the metrics, and whoever looks.
	readers = 4
)

// store is an outbox in an SQLite file.
type store struct {
	path   string
	sync   string // SQLite's synchronous
	clock  clock.Clock
	log    *slog.Logger
	writer *writer
	alive  *lock // tells other processes that this one lives
	me     string

	writing  *sql.DB
	session  *session      // the writer's connection, and nobody else's
	waits    bool          // whether its commits wait for the disk
	turn     chan struct{} // held by whoever writes, so that a caller's transaction and the writer take turns
	callers  *sql.DB       // for transactions of callers
	reading  *sql.DB
	prepared statements
	files    *files
	storing  *health
}

// openStore opens the outbox at path and registers this process in it.
func openStore(ctx context.Context, path string, o Options) (*store, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("opening the outbox: %w", err)
	}
	st := &store{path: path, sync: "FULL", waits: true, clock: o.Clock, log: o.Logger, writer: newWriter(), turn: make(chan struct{}, 1)}
	if o.Unsynced {
		st.sync = "OFF"
	}
	st.storing = newHealth(path, o, cannotStore, storesAgain)
	if err := st.open(ctx); err != nil {
		st.writer.start(st.flush, func(error) {})
		_ = st.close() // the first error says more
		if kind := describe(err); kind != faultOther {
			return nil, fmt.Errorf("opening the outbox %s: it %s: %w", path, kind, err)
		}
		return nil, fmt.Errorf("opening the outbox %s: %w", path, err)
	}
	st.writer.start(st.flush, func(err error) { st.storing.tell(err) })
	return st, nil
}

func (st *store) open(ctx context.Context) (err error) {
	createPrivate(st.path)
	if st.writing, err = st.connect(1); err != nil {
		return err
	}
	// A connection that writes alone would be its transaction's only user; as a
	// *sql.Conn it stays one, also where a COMMIT fails and has to be taken back.
	conn, err := st.writing.Conn(ctx)
	if err != nil {
		return err
	}
	st.session = &session{conn: conn}
	if err := st.durable(ctx); err != nil {
		return err
	}
	if err := migrate(ctx, migrationFiles, st.clock.Now(), st.transaction); err != nil {
		return err
	}
	if st.callers, err = st.connect(1); err != nil {
		return err
	}
	if st.reading, err = st.connect(readers, "query_only(1)"); err != nil {
		return err
	}
	if err := st.reading.PingContext(ctx); err != nil {
		return err
	}
	st.prepared.db = st.reading
	if st.files, err = seeFiles(st.path); err != nil {
		return err
	}
	return st.register(ctx)
}

func (st *store) connect(connections int, pragmas ...string) (*sql.DB, error) {
	query := url.Values{
		"_txlock": {"immediate"}, // a transaction that reads first and then wants to write would fail at once
		"_pragma": append([]string{
			fmt.Sprintf("busy_timeout(%d)", busyTimeout.Milliseconds()),
			"journal_mode(WAL)",
			"synchronous(" + st.sync + ")",
			"fullfsync(1)",       // on macOS a plain fsync leaves the data in the drive's cache
			"cache_size(-32768)", // 32 MiB: the indexes of a million messages
			fmt.Sprintf("wal_autocheckpoint(%d)", checkpointPages),
		}, pragmas...),
	}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: filepath.ToSlash(st.path), RawQuery: query.Encode()}).String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return db, nil
}

// durable verifies that the settings took: SQLite keeps its own mode in silence
// where the file system cannot do what was asked.
func (st *store) durable(ctx context.Context) error {
	var mode string
	var synchronous int
	if err := st.session.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode); err != nil {
		return err
	}
	if err := st.session.QueryRowContext(ctx, "PRAGMA synchronous").Scan(&synchronous); err != nil {
		return err
	}
	want := map[string]int{"OFF": 0, "FULL": 2}[st.sync]
	if mode != "wal" || synchronous != want {
		return fmt.Errorf("its journal mode is %q and synchronous is %d, and it needs \"wal\" and %d: use a local disk", mode, synchronous, want)
	}
	return nil
}

// transaction runs do in a transaction of the writer's connection.
func (st *store) transaction(ctx context.Context, do func(context.Context, Tx) error) error {
	st.turn <- struct{}{}
	defer func() { <-st.turn }()
	// IMMEDIATE takes the write lock at once, and waits for it. A transaction
	// that reads first and then wants to write fails at once instead.
	if _, err := st.session.conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := do(ctx, st.session)
	if err == nil {
		_, err = st.session.conn.ExecContext(ctx, "COMMIT")
	}
	if err != nil {
		// After some faults SQLite has rolled back by itself, and says so.
		_, _ = st.session.conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
	}
	return err
}

// flush does all the jobs in one commit, or none and returns an error. A job
// that fails for itself gets its err, and the others go on: without it, from the
// beginning. That is rare, and cheaper than a savepoint for each.
func (st *store) flush(batch []*job) error {
	// No job's context: what one caller gives up must not end the others' commit.
	ctx := context.Background()
	if err := st.present(ctx); err != nil {
		return err
	}
	if err := st.synchronize(ctx, slices.ContainsFunc(batch, func(j *job) bool { return j.durable })); err != nil {
		return err
	}
	for again := true; again; {
		again = false
		err := st.transaction(ctx, func(ctx context.Context, tx Tx) error {
			for i, j := range batch {
				if j.err = j.do(ctx, tx); j.err != nil {
					again = !broken(j.err)
					batch = slices.Concat(batch[:i], batch[i+1:])
					return j.err
				}
			}
			return nil
		})
		if err != nil && !again {
			return err
		}
	}
	return st.present(ctx) // a commit to a file that was removed meanwhile is none
}

// broken tells whether err is the database's fault, after which nothing of a
// transaction can be kept, and not that of a single statement.
func broken(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return false
	}
	const primary = 0xff // the rest of an extended code refines it
	switch e.Code() & primary {
	case sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_RANGE:
		return false
	}
	return true
}

// update makes a change, in a commit that it may share with others. It returns
// when the commit is on the disk, or with an error and nothing changed.
func (st *store) update(ctx context.Context, do func(context.Context, Tx) error) error {
	return st.writer.submit(ctx, true, do)
}

// note is update for what the dispatcher does by itself: a message is claimed, an
// attempt has ended. It survives this process from the commit on, but a failure
// of power only once a later update waits for the disk, or SQLite does. What is
// lost by that is an outcome and no message: the attempt is made again.
func (st *store) note(ctx context.Context, do func(context.Context, Tx) error) error {
	return st.writer.submit(ctx, false, do)
}

// synchronize has commits of the writer wait for the disk, or not.
func (st *store) synchronize(ctx context.Context, wait bool) error {
	if st.sync == "OFF" || st.waits == wait {
		return nil
	}
	mode := "NORMAL"
	if wait {
		mode = "FULL"
	}
	if _, err := st.session.conn.ExecContext(ctx, "PRAGMA synchronous = "+mode); err != nil {
		return err
	}
	st.waits = wait
	return nil
}

// close closes everything, in the reverse order of opening.
func (st *store) close() error {
	var errs []error
	if st.alive != nil {
		st.resign()
	}
	st.writer.stop()
	if st.reading != nil {
		st.prepared.close()
		errs = append(errs, st.reading.Close())
	}
	if st.callers != nil {
		errs = append(errs, st.callers.Close())
	}
	if st.session != nil {
		errs = append(errs, st.session.close())
	}
	if st.writing != nil {
		errs = append(errs, st.writing.Close())
	}
	if st.alive != nil {
		errs = append(errs, st.alive.release())
	}
	return errors.Join(errs...)
}

// statements are prepared as they are first used, and kept: parsing costs more
// than most of them.
type statements struct {
	db *sql.DB
	mu sync.Mutex
	of map[string]*sql.Stmt
}

func (p *statements) get(ctx context.Context, query string) (*sql.Stmt, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.of[query]; s != nil {
		return s, nil
	}
	s, err := p.db.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	if p.of == nil {
		p.of = map[string]*sql.Stmt{}
	}
	p.of[query] = s
	return s, nil
}

func (p *statements) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.of {
		_ = s.Close()
	}
	p.of = nil
}

// query reads with a fixed statement, which is kept prepared.
func (st *store) query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	s, err := st.prepared.get(ctx, query)
	if err != nil {
		return nil, err
	}
	return s.QueryContext(ctx, args...)
}

// session is the writer's connection, with its prepared statements. Only the
// writer uses it.
type session struct {
	conn *sql.Conn
	of   map[string]*sql.Stmt
}

func (s *session) get(ctx context.Context, query string) (*sql.Stmt, error) {
	if p := s.of[query]; p != nil {
		return p, nil
	}
	p, err := s.conn.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	if s.of == nil {
		s.of = map[string]*sql.Stmt{}
	}
	s.of[query] = p
	return p, nil
}

// ExecContext implements Tx. A query without parameters is not prepared: it may
// be a whole migration.
func (s *session) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if len(args) == 0 {
		return s.conn.ExecContext(ctx, query)
	}
	p, err := s.get(ctx, query)
	if err != nil {
		return nil, err
	}
	return p.ExecContext(ctx, args...)
}

// QueryContext implements Tx.
func (s *session) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	p, err := s.get(ctx, query)
	if err != nil {
		return nil, err
	}
	return p.QueryContext(ctx, args...)
}

// QueryRowContext implements Tx.
func (s *session) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	p, err := s.get(ctx, query)
	if err != nil {
		return s.conn.QueryRowContext(ctx, query, args...) // a *sql.Row cannot be made of an error
	}
	return p.QueryRowContext(ctx, args...)
}

func (s *session) close() error {
	for _, p := range s.of {
		_ = p.Close() // or SQLite would keep the connection open for it
	}
	return s.conn.Close()
}

// What an operator is told about a database that does not work, after "it …".
const (
	faultLocked   = "is locked by another process"
	faultReadOnly = "is read-only"
	faultFull     = "is full, or its disk is"
	faultRemoved  = "was removed or replaced while it was in use"
	faultUnopened = "cannot be opened: its folder must exist and be writable"
	faultDamaged  = "is damaged, or no database"
	faultDisk     = "cannot be read or written: the disk fails or is full"
	faultOther    = "failed"
)

// describe says in a few words what an error of the database means.
func describe(err error) string {
	if errors.Is(err, errRemoved) {
		return faultRemoved
	}
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return faultOther
	}
	const primary = 0xff // the rest of an extended code refines it
	switch e.Code() & primary {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return faultLocked
	case sqlite3.SQLITE_READONLY:
		return faultReadOnly
	case sqlite3.SQLITE_FULL:
		return faultFull
	case sqlite3.SQLITE_CANTOPEN:
		return faultUnopened
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return faultDamaged
	case sqlite3.SQLITE_IOERR:
		return faultDisk
	}
	return faultOther
}
