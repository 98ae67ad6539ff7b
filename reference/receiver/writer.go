package receiver

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
)

// maxBatch is how many jobs share a commit at most, 256: as many as a receiver
// stores at one time by default, so that nobody waits for a second commit.
const maxBatch = 256

// Tx is a transaction, on SQLite or on PostgreSQL: parameters are $1, $2, … on
// both.
type Tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// job is a change that waits for its commit: a message to add, or anything else.
type job struct {
	ctx     context.Context
	message *Message
	do      func(context.Context, Tx) error

	added  bool // the message was not known
	queued bool // it waits to be processed now, and did not before
	err    error
	done   chan struct{}
}

// writer is the one goroutine that writes. While a commit waits for the disk the
// next jobs gather, and share the next commit: the busier the inbox, the fewer
// commits a message costs.
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

// submit hands j over and waits until it is committed. For a message it waits no
// longer than j's context, and then it may be committed all the same. For other
// jobs it waits to the end: what they do is their caller's code, which must not
// run on behind its back.
func (w *writer) submit(j *job) error {
	select {
	case w.jobs <- j:
	case <-j.ctx.Done():
		return fmt.Errorf("%w: waiting for the writer: %w", ErrUnavailable, context.Cause(j.ctx))
	case <-w.quit:
		return errClosed
	}
	var gone <-chan struct{}
	if j.message != nil {
		gone = j.ctx.Done()
	}
	select {
	case <-j.done:
		return j.err
	case <-gone:
		return fmt.Errorf("%w: waiting for the commit: %w", ErrUnavailable, context.Cause(j.ctx))
	}
}

// gather returns first and all the jobs that wait behind it.
func (w *writer) gather(first *job) []*job {
	batch := append(make([]*job, 0, 64), first)
	for len(batch) < maxBatch {
		select {
		case j := <-w.jobs:
			batch = append(batch, j)
		default:
			return batch
		}
	}
	return batch
}

// commit does the jobs whose callers still wait, and tells all of them.
func commit(batch []*job, flush func([]*job) error, report func(error)) {
	alive := batch[:0:0]
	for _, j := range batch {
		if err := j.ctx.Err(); err != nil {
			j.err = err
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
			j.added, j.queued, j.err = false, false, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		close(j.done)
	}
}
