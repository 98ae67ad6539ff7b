package receiver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
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
	// database, 2 s: the strictest provider waits 3 s for its answer, and a 503
	// in time is better than silence.
	busyTimeout = 2 * time.Second

	// checkpointPages is how many pages of 4 KiB gather in the write-ahead log
	// before the committing writer moves them into the database, 2,048 or 8 MiB:
	// twice the usual, since moving them costs two more waits for the disk. From
	// then on the log is written over in place, which waits less than appending.
	checkpointPages = 2048

	// readers is the number of connections that read beside the writer, 4: the
	// processor, the metrics, and whoever looks.
	readers = 4

	// insertRows is how many messages one statement inserts, 8: beyond, each row
	// costs more again, since the driver looks for every parameter among all.
	insertRows = 8

	// prefetch is how many waiting messages the processor takes from the queue
	// at a time, 64.
	prefetch = 64
)

// OpenSQLite opens the inbox in the file at path, or makes it. Several processes
// of one machine may share a file; on a network file system none should.
//
// The file is in WAL mode with synchronous=FULL: a commit is on the disk when it
// returns. (With NORMAL, SQLite's usual advice for WAL, a power failure takes
// the last commits along, and with them events that were acknowledged.)
//
// An inbox that cannot be written to is an error here already, and so is one
// that a newer version made, a *[SchemaError]. Close the inbox after use.
func OpenSQLite(ctx context.Context, path string, o Options) (*Inbox, error) {
	if err := o.prepare(); err != nil {
		return nil, fmt.Errorf("configuring the inbox: %w", err)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("opening the inbox: %w", err)
	}
	w := newWriter()
	s := &sqliteDB{path: path, clock: o.Clock, writer: w, working: map[string]bool{}}
	if err := s.open(ctx); err != nil {
		_ = s.close() // the first error says more
		if kind := s.fault(err); kind != faultOther {
			return nil, fmt.Errorf("opening the inbox %s: it %s: %w", path, kind, err)
		}
		return nil, fmt.Errorf("opening the inbox %s: %w", path, err)
	}
	return newInbox(s, w, o), nil
}

// sqliteDB is an inbox in a file.
type sqliteDB struct {
	path   string
	clock  clock.Clock
	writer *writer

	writing                     *sql.DB
	conn                        *sql.Conn // the writer's, and nobody else's
	insert, insertMany, requeue *sql.Stmt
	reading                     *sql.DB
	files                       *files

	mu      sync.Mutex
	waiting []*claim        // taken from the queue and not claimed yet
	working map[string]bool // ids in waiting, and those that are being processed
}

func (s *sqliteDB) open(ctx context.Context) (err error) {
	createPrivate(s.path)
	if s.writing, err = s.connect(1); err != nil {
		return err
	}
	// A connection that writes alone would be its transaction's only user; as a
	// *sql.Conn it stays one, also where a COMMIT fails and has to be taken back.
	if s.conn, err = s.writing.Conn(ctx); err != nil {
		return err
	}
	if err := s.durable(ctx); err != nil {
		return err
	}
	if err := migrate(ctx, migrationFiles, s.clock.Now(), s.transaction); err != nil {
		return err
	}
	if err := s.prepare(ctx); err != nil {
		return err
	}
	if s.reading, err = s.connect(readers, "query_only(1)"); err != nil {
		return err
	}
	if err := s.reading.PingContext(ctx); err != nil {
		return err
	}
	s.files, err = seeFiles(s.path)
	return err
}

func (s *sqliteDB) prepare(ctx context.Context) (err error) {
	if s.insert, err = s.conn.PrepareContext(ctx, insertMessages(1)+" ON CONFLICT (id) DO NOTHING"); err != nil {
		return err
	}
	if s.insertMany, err = s.conn.PrepareContext(ctx, insertMessages(insertRows)); err != nil {
		return err
	}
	s.requeue, err = s.conn.PrepareContext(ctx, requeueCopy)
	return err
}

func (s *sqliteDB) connect(connections int, pragmas ...string) (*sql.DB, error) {
	query := url.Values{"_pragma": append([]string{
		fmt.Sprintf("busy_timeout(%d)", busyTimeout.Milliseconds()),
		"journal_mode(WAL)",
		"synchronous(FULL)",
		"fullfsync(1)",       // on macOS a plain fsync leaves the data in the drive's cache
		"cache_size(-65536)", // 64 MiB: the index of a million ids
		fmt.Sprintf("wal_autocheckpoint(%d)", checkpointPages),
	}, pragmas...)}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: filepath.ToSlash(s.path), RawQuery: query.Encode()}).String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return db, nil
}

// durable verifies that the settings took: SQLite keeps its own mode in silence
// where the file system cannot do what was asked.
func (s *sqliteDB) durable(ctx context.Context) error {
	var mode string
	var synchronous int
	if err := s.conn.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode); err != nil {
		return err
	}
	if err := s.conn.QueryRowContext(ctx, "PRAGMA synchronous").Scan(&synchronous); err != nil {
		return err
	}
	const full = 2
	if mode != "wal" || synchronous != full {
		return fmt.Errorf("its journal mode is %q and synchronous is %d, and it needs \"wal\" and %d: use a local disk", mode, synchronous, full)
	}
	return nil
}

// transaction runs do in a transaction of the writer's connection, which must
// not have begun to write otherwise.
func (s *sqliteDB) transaction(ctx context.Context, do func(context.Context, Tx) error) error {
	// IMMEDIATE takes the write lock at once, and waits for it. A transaction
	// that reads first and then wants to write fails at once instead.
	if _, err := s.conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := do(ctx, s.conn)
	if err == nil {
		_, err = s.conn.ExecContext(ctx, "COMMIT")
	}
	if err != nil {
		// After some faults SQLite has rolled back by itself, and says so.
		_, _ = s.conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
	}
	return err
}

// flush implements database.
func (s *sqliteDB) flush(batch []*job) error {
	// No job's context: what one caller gives up must not end the others' commit.
	ctx := context.Background()
	if err := s.present(ctx); err != nil {
		return err
	}
	err := s.transaction(ctx, func(ctx context.Context, tx Tx) error {
		messages := make([]*job, 0, len(batch))
		for _, j := range batch {
			if j.message != nil {
				messages = append(messages, j)
			} else if err := perform(ctx, tx, j); err != nil {
				return err
			}
		}
		return s.addAll(ctx, messages)
	})
	if err != nil {
		return err
	}
	return s.present(ctx) // a commit to a file that was removed meanwhile is none
}

// perform does a job that is no message.
func perform(ctx context.Context, tx Tx, j *job) error {
	j.err = j.do(ctx, tx)
	if errors.Is(j.err, errNotTakenBack) {
		return j.err
	}
	return nil // its own fault, if any
}

// addAll inserts messages, several by one statement as long as none is a copy:
// that halves the time that the others wait for the commit.
func (s *sqliteDB) addAll(ctx context.Context, jobs []*job) error {
	args := make([]any, 0, 5*insertRows)
	for group := range slices.Chunk(jobs, insertRows) {
		if len(group) == insertRows {
			args = args[:0]
			for _, j := range group {
				args = append(args, messageArgs(j.message)...)
			}
			_, err := s.insertMany.ExecContext(ctx, args...)
			if err == nil {
				for _, j := range group {
					j.added, j.queued = true, true
				}
				continue
			}
			if !isConflict(err) {
				return err
			}
			// The whole statement is taken back: one of them is a copy.
		}
		for _, j := range group {
			if err := s.add(ctx, j); err != nil {
				return err
			}
		}
	}
	return nil
}

// add inserts a message that may be a copy.
func (s *sqliteDB) add(ctx context.Context, j *job) error {
	n, err := changed(s.insert.ExecContext(ctx, messageArgs(j.message)...))
	j.added, j.queued = n > 0, n > 0
	if err != nil || j.added {
		return err
	}
	n, err = changed(s.requeue.ExecContext(ctx, j.message.ID, j.message.ReceivedAt.UnixMicro()))
	j.queued = n > 0
	return err
}

// messageArgs are the parameters of a message's row.
func messageArgs(m *Message) []any {
	return []any{m.ID, m.Type, m.Body, m.Key, m.ReceivedAt.UnixMicro()}
}

// isConflict tells whether a row with the same key was there already.
func isConflict(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && e.Code() == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY
}

// update implements database. A do that fails is taken back alone: others share
// its transaction.
func (s *sqliteDB) update(ctx context.Context, do func(context.Context, Tx) error) error {
	return s.writer.submit(&job{ctx: ctx, done: make(chan struct{}), do: func(ctx context.Context, tx Tx) error {
		return within(ctx, tx, "job", do)
	}})
}

// claim implements database. Claims are kept in memory, since a process that
// dies must not take messages along. Two processes on one file may therefore
// work on one message; the second one finds it done when it is about to settle.
func (s *sqliteDB) claim(ctx context.Context, now time.Time) (*claim, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 {
		if err := s.fetch(ctx, now); err != nil {
			return nil, err
		}
	}
	if len(s.waiting) == 0 {
		return nil, nil
	}
	c := s.waiting[0]
	s.waiting = s.waiting[1:]
	return c, nil
}

// fetch refills waiting from the queue.
func (s *sqliteDB) fetch(ctx context.Context, now time.Time) error {
	rows, err := s.reading.QueryContext(ctx, selectDue, now.UnixMicro(), prefetch+len(s.working))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		c, err := scanClaim(rows)
		if err != nil {
			return err
		}
		if s.working[c.ID] {
			continue
		}
		s.working[c.ID] = true
		c.settle = s.update
		c.release = func() { s.forget(c.ID) }
		s.waiting = append(s.waiting, c)
	}
	return rows.Err()
}

func (s *sqliteDB) forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.working, id)
}

func (s *sqliteDB) reader() *sql.DB { return s.reading }
func (s *sqliteDB) rowLock() string { return "" } // one writer at a time, whoever it is
func (s *sqliteDB) name() string    { return s.path }
func (s *sqliteDB) check() error    { return s.files.present() }

func (s *sqliteDB) close() error {
	var errs []error
	for _, statement := range []*sql.Stmt{s.insert, s.insertMany, s.requeue} {
		if statement != nil { // or SQLite would keep the connection open for it
			errs = append(errs, statement.Close())
		}
	}
	if s.reading != nil {
		errs = append(errs, s.reading.Close())
	}
	if s.conn != nil {
		errs = append(errs, s.conn.Close())
	}
	if s.writing != nil {
		errs = append(errs, s.writing.Close())
	}
	return errors.Join(errs...)
}

// fault implements database.
func (s *sqliteDB) fault(err error) string {
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
