package sender

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/whconform/whconform/reference/profile"
	"github.com/whconform/whconform/reference/signature"
)

// Sender is a webhook sender: an outbox in a database and a dispatcher that
// empties it. It is safe for concurrent use. Make one with [Open], let
// [Sender.Run] send, and [Sender.Close] it.
type Sender struct {
	store     *store
	profile   *profile.Profile
	scheme    signature.Scheme
	clock     clock.Clock
	random    io.Reader
	policy    Policy
	transport Transport
	guard     *Guard
	catalogue *Catalogue
	log       *slog.Logger
	faults    Faults
	poll      time.Duration
	drain     time.Duration

	reading, settling *health
	counts            counts // for the metrics
	dispatcher
	closed atomic.Bool
}

// pollEvery is how often the outbox is looked at for what another process left
// or published, 1 s. What this process published needs no poll.
const pollEvery = time.Second

// Options is what a [Sender] is made from.
type Options struct {
	Profile *profile.Profile // the contract: headers, signature, schedule. Required

	// Clock tells when messages are due. Of it only Now, Timer and AfterFunc are
	// used, so that it can be a mock that somebody else moves. Required.
	Clock clock.Clock

	Random    io.Reader    // ids, secrets and jitter come from it; nil: crypto/rand
	Policy    Policy       // zero fields are filled from the profile
	Transport Transport    // nil: [NewTransport] with Clock and Guard
	Guard     *Guard       // which addresses endpoints may have; nil: none but public ones by https
	Catalogue *Catalogue   // of the event types; nil: any type
	Logger    *slog.Logger // nil discards; no line holds a payload or a secret

	// Poll is how often to look for what other processes published or left
	// behind, on Clock; 0: 1 s; negative: never, for a virtual clock.
	Poll time.Duration

	// Drain is how long attempts under way may go on, on Clock, when Run's
	// context ends. 0: they end at once, and are made again after the next start.
	Drain time.Duration

	// Unsynced leaves it to the system when what was committed reaches the disk.
	// Then a killed process loses nothing, but a power cut does: for tests, where
	// waiting for the disk is most of what a run takes.
	Unsynced bool

	Faults Faults // for the self-test
}

func (o *Options) prepare() (err error) {
	switch {
	case o.Profile == nil:
		return errors.New("no profile")
	case o.Clock == nil:
		return errors.New("no clock")
	case o.Drain < 0:
		return errors.New("the time to drain is negative")
	}
	if o.Policy, err = o.Policy.fill(o.Profile); err != nil {
		return err
	}
	if o.Random == nil {
		o.Random = rand.Reader
	}
	o.Random = &lockedReader{r: o.Random}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Guard == nil {
		if o.Guard, err = NewGuard(); err != nil {
			return err
		}
	}
	if o.Transport == nil {
		o.Transport, err = NewTransport(TransportOptions{Clock: o.Clock, Guard: o.Guard})
	}
	o.Poll = firstOf(o.Poll, pollEvery)
	return err
}

// Open opens the outbox in the file at path, or makes it. Several processes of
// one machine may share a file; on a network file system none should. Nothing is
// sent before [Sender.Run].
//
// The file is in WAL mode, and what was confirmed by a return, as an event's
// publishing, is on the disk. An outbox that cannot be written to is an error
// here already, and so is one that a newer version made, a *[SchemaError].
func Open(ctx context.Context, path string, o Options) (*Sender, error) {
	if err := o.prepare(); err != nil {
		return nil, fmt.Errorf("configuring the sender: %w", err)
	}
	scheme, err := o.Profile.Scheme()
	if err != nil {
		return nil, fmt.Errorf("configuring the sender: %w", err)
	}
	st, err := openStore(ctx, path, o)
	if err != nil {
		return nil, err
	}
	s := &Sender{
		store: st, profile: o.Profile, scheme: scheme, clock: o.Clock, random: o.Random,
		policy: o.Policy, transport: o.Transport, guard: o.Guard, catalogue: o.Catalogue,
		log: o.Logger, faults: o.Faults, poll: o.Poll, drain: o.Drain,
		reading:    newHealth(st.path, o, cannotRead, readsAgain),
		settling:   newHealth(st.path, o, cannotSettle, settlesAgain),
		dispatcher: newDispatcher(),
	}
	if err := s.takeOver(ctx); err != nil {
		_ = s.Close() // the first error says more
		return nil, fmt.Errorf("opening the outbox %s: freeing what a process that died was sending: %w", st.path, err)
	}
	if s.faults.Open != nil {
		if err := s.faults.Open(s); err != nil {
			_ = s.Close()
			return nil, err
		}
	}
	return s, nil
}

// Profile is the contract that the sender keeps to.
func (s *Sender) Profile() *profile.Profile { return s.profile }

// Policy is the policy, with all its fields filled.
func (s *Sender) Policy() Policy { return s.policy }

// Close ends the sender once what was begun is written; to close again changes
// nothing. A Run that is still under way should have been stopped before.
func (s *Sender) Close() error {
	if !s.closed.CompareAndSwap(false, true) {
		return nil
	}
	s.abort()
	if err := s.store.close(); err != nil {
		return fmt.Errorf("closing the outbox %s: %w", s.store.path, err)
	}
	return nil
}

// lockedReader makes a source of random bytes safe for several goroutines.
type lockedReader struct {
	mu sync.Mutex
	r  io.Reader
}

func (l *lockedReader) Read(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.r.Read(p)
}
