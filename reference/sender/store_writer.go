package sender

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"sync"
)

// maxBatch is how many changes share a commit at most, 256: more than attempts
// are under way, so that nobody waits for a second commit.
const maxBatch = 256

// Tx is a transaction: a *sql.Tx is one, and so is the writer's own.
type Tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// errClosed is returned by a sender after Close.
var errClosed = fmt.Errorf("%w: it is closed", ErrUnavailable)

// job is a change that waits for its commit. do may run more than once, each time
// after all that it did has been taken back.
type job struct {
	ctx     context.Context
	do      func(context.Context, Tx) error
	durable bool // it is confirmed to somebody, so its commit waits for the disk
	err     error
	done    chan struct{}
}

// writer is the one goroutine that writes. While a commit waits for the disk the
// next changes gather, and share the next commit: the busier the sender, the
// fewer commits a message costs.
type writer struct {
	jobs  chan *job
	quit  chan struct{}
	ended chan struct{}
	once  sync.Once
}

func newWriter() *writer {
	// Unbuffered: a job that was handed over is one that will be done.
	return &writer{jobs: make(chan *job), quit: make(chan struct{}), ended: make(chan struct{})}
}

// start begins to write by flush, and reports how each flush went.
func (w *writer) start(flush func([]*job) error, report func(error)) {
	go func() {
		defer close(w.ended)
		for {
			select {
			case <-w.quit:
				return
			case j := <-w.jobs:
				commit(w.gather(j), flush, report)
			}
		}
	}()
}

// stop waits for the commit under way and ends the writer.
func (w *writer) stop() {
	w.once.Do(func() { close(w.quit) })
	<-w.ended
}

// submit hands a change over and waits until it is committed, however long: what
// it does is its caller's code, which must not run on behind its back.
func (w *writer) submit(ctx context.Context, durable bool, do func(context.Context, Tx) error) error {
	j := &job{ctx: ctx, do: do, durable: durable, done: make(chan struct{})}
	select {
	case w.jobs <- j:
	case <-ctx.Done():
		return fmt.Errorf("%w: waiting for the writer: %w", ErrUnavailable, context.Cause(ctx))
	case <-w.quit:
		return errClosed
	}
	<-j.done
	return j.err
}

// gather returns first and all the jobs that wait behind it.
func (w *writer) gather(first *job) []*job {
	batch := append(make([]*job, 0, 64), first)
	for yielded := false; len(batch) < maxBatch; {
		select {
		case j := <-w.jobs:
			batch, yielded = append(batch, j), false
		default:
			if yielded {
				return batch
			}
			// Whoever was told of the last commit and has more to do comes in
			// time for this one.
			runtime.Gosched()
			yielded = true
		}
	}
	return batch
}

// commit does the jobs whose callers still wait, and tells all of them.
func commit(batch []*job, flush func([]*job) error, report func(error)) {
	alive := batch[:0:0]
	for _, j := range batch {
		if err := j.ctx.Err(); err != nil {
			j.err = fmt.Errorf("%w: %w", ErrUnavailable, err)
			close(j.done)
			continue
		}
		alive = append(alive, j)
	}
	if len(alive) == 0 {
		return
	}
	err := flush(alive)
	report(err) // before anybody is told, so that the log is never behind
	for _, j := range alive {
		if err != nil {
			j.err = fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		close(j.done)
	}
}

// errNotTakenBack ends a whole transaction: what it holds is not known any more.
var errNotTakenBack = errors.New("a part of a transaction could not be taken back")

// within runs do as a part of tx that can be taken back alone.
func within(ctx context.Context, tx Tx, do func(context.Context, Tx) error) error {
	if _, err := tx.ExecContext(ctx, "SAVEPOINT part"); err != nil {
		return err
	}
	err := do(ctx, tx)
	if err != nil {
		if _, back := tx.ExecContext(ctx, "ROLLBACK TO SAVEPOINT part"); back != nil {
			return errors.Join(err, fmt.Errorf("%w: %w", errNotTakenBack, back))
		}
	}
	if _, release := tx.ExecContext(ctx, "RELEASE SAVEPOINT part"); release != nil {
		return errors.Join(err, fmt.Errorf("%w: %w", errNotTakenBack, release))
	}
	return err
}

// changed is the number of rows that a statement changed.
func changed(r sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// inserted is the key of a row that was inserted.
func inserted(r sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return r.LastInsertId()
}
