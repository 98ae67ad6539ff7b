package receiver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/whconform/whconform/reference/profile"
)

// Inbox is a durable [Store] and what happens behind it: messages wait in a
// database until they are processed, and their ids are remembered after.
//
// Adding answers after the commit, and not before: that is what makes the 2xx a
// promise. Messages that arrive together share one commit, since a commit waits
// for the disk whether it holds one row or a hundred.
//
// It is safe for concurrent use. [Inbox.Run] processes; [Inbox.Close] ends it.
type Inbox struct {
	db     database
	writer *writer
	clock  clock.Clock
	log    *slog.Logger

	storing, reading, settling *health

	handler  Handler
	attempts int
	workers  int
	poll     time.Duration
	remember time.Duration
	hooks    *hooks // nil unless Options.TestHooks

	wake    chan struct{} // something new may wait
	running atomic.Bool
	closed  atomic.Bool
	counts  counts
}

// counts are those of this process, for the metrics.
type counts struct{ acknowledged, duplicates, processed, failed atomic.Int64 }

// The bounds that apply where Options names none.
const (
	// DefaultWorkers is how many messages are processed at one time, 8: enough
	// that a provider's slow answer to one does not hold the others up, and few
	// enough not to look like an attack on its API.
	DefaultWorkers = 8

	// DefaultAttempts is how often a message is tried before it stands on the
	// failed list, 8. With the waits between them that is some 35 minutes: the
	// length of an ordinary outage at a provider.
	DefaultAttempts = 8

	// pollEvery is how often an idle processor looks for messages that another
	// process left behind, 1 s, in real time, in which the other process lived.
	// Its own messages need no poll.
	pollEvery = time.Second
)

// Options is what an [Inbox] is made from.
type Options struct {
	// Clock tells when messages are due and ids may be forgotten. Required.
	Clock clock.Clock

	// Logger gets a line when the database stops or starts to work, and for each
	// message that fails; nil discards them. No line holds a body.
	Logger *slog.Logger

	// Profile says how long the provider retries, and so how long an id has to
	// be remembered. Nil: 24 h.
	Profile *profile.Profile

	// Remember takes the place of what follows from the profile when it is
	// longer than that.
	Remember time.Duration

	// Handler is the business. Nil: [Payments] with the fields below.
	Handler Handler

	// ProviderURL is where the provider is asked for the current state of a
	// payment, by GET {ProviderURL}/payments/{id}. Empty: nobody is asked, and
	// events are held against their own time or version.
	ProviderURL string

	// ProviderClient asks. It adds the credentials that the provider wants; nil
	// asks without.
	ProviderClient *http.Client

	Workers  int // messages processed at one time; 0: DefaultWorkers
	Attempts int // at processing a message; 0: DefaultAttempts

	// TestHooks lets [Inbox.FailOnce] make processing fail. Never in production.
	TestHooks bool
}

// ErrUnavailable is what [Inbox.Add] returns, wrapped together with the cause,
// while the database cannot store. The inbox tells its log once when that begins
// and once when it ends, so whoever meets the error need not.
var ErrUnavailable = errors.New("the inbox cannot store")

// errClosed is returned by an inbox after Close.
var errClosed = fmt.Errorf("%w: it is closed", ErrUnavailable)

// database is what differs between SQLite and PostgreSQL.
type database interface {
	// reader is for what only reads.
	reader() *sql.DB

	// flush does all the jobs in one commit, or none and returns an error. A
	// job that fails for itself gets its err, and the others go on.
	flush(batch []*job) error

	// update runs do in a transaction.
	update(ctx context.Context, do func(context.Context, Tx) error) error

	// claim takes the message that is due longest and that nobody else works
	// on; nil when there is none. The claim ends with settle or release, or
	// with the process: it is not written down, so none is ever left behind.
	claim(ctx context.Context, now time.Time) (*claim, error)

	// rowLock follows a SELECT that picks rows to change, where several
	// processes may do so: it passes by those that another one holds.
	rowLock() string

	// check finds faults that show without writing.
	check() error

	// fault says in a few words what an error means to the operator.
	fault(err error) string

	// name is the database without any secret.
	name() string

	close() error
}

// newInbox puts an inbox around an open database.
func newInbox(db database, w *writer, o Options) *Inbox {
	b := &Inbox{
		db: db, writer: w, clock: o.Clock, log: o.Logger,
		storing:  newHealth(db.name(), o, cannotStore, storesAgain),
		reading:  newHealth(db.name(), o, cannotRead, readsAgain),
		settling: newHealth(db.name(), o, cannotSettle, settlesAgain),
		handler:  o.Handler, attempts: o.Attempts, workers: o.Workers, poll: pollEvery,
		remember: max(o.Remember, Remember(o.Profile)),
		wake:     make(chan struct{}, 1),
	}
	if o.TestHooks {
		b.hooks = &hooks{failing: map[string]bool{}}
	}
	w.start(db.flush, func(err error) { b.tell(b.storing, err) })
	return b
}

// tell notes how something went.
func (b *Inbox) tell(h *health, err error) {
	if err == nil {
		h.well()
		return
	}
	h.ill(b.db.fault(err), err)
}

func (o *Options) prepare() error {
	if o.Clock == nil {
		return errors.New("no clock")
	}
	if o.Workers < 0 || o.Attempts < 0 || o.Remember < 0 {
		return errors.New("a bound is negative")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Workers == 0 {
		o.Workers = DefaultWorkers
	}
	if o.Attempts == 0 {
		o.Attempts = DefaultAttempts
	}
	if o.Handler != nil {
		return nil
	}
	var err error
	o.Handler, err = Payments(o.Clock, o.ProviderURL, o.ProviderClient)
	return err
}

// Add implements [Store]: it returns after the commit. A copy of a message on
// the failed list puts that message back into the queue, for a provider that
// sends again what it was told had arrived was asked to do so by somebody.
//
// The error is [ErrUnavailable] with its cause, or the context's.
func (b *Inbox) Add(ctx context.Context, m Message) (added bool, err error) {
	m = storable(m)
	j := &job{ctx: ctx, message: &m, done: make(chan struct{})}
	if err := b.writer.submit(j); err != nil {
		return false, err
	}
	b.counts.acknowledged.Add(1)
	if !j.added {
		b.counts.duplicates.Add(1)
	}
	if j.queued {
		b.rouse()
	}
	return j.added, nil
}

// rouse lets the processor look for messages.
func (b *Inbox) rouse() {
	select {
	case b.wake <- struct{}{}:
	default: // it has not looked since it was last told
	}
}

// Close ends the inbox once what was begun is committed; to close again changes
// nothing. A Run that is still under way should have been stopped before.
func (b *Inbox) Close() error {
	if !b.closed.CompareAndSwap(false, true) {
		return nil
	}
	b.writer.stop()
	if err := b.db.close(); err != nil {
		return fmt.Errorf("closing the inbox in %s: %w", b.db.name(), err)
	}
	return nil
}
