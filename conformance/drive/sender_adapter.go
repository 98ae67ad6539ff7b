package drive

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/whconform/whconform/conformance/drive/adapter"
)

const (
	// senderStart bounds the first answer of an adapter, as StartTimeout does for
	// a receiver: it may start a whole service.
	senderStart = StartTimeout
	// secretsKnown is how many secrets of endpoints are kept out of what an
	// adapter says. Older ones are still found by their look.
	secretsKnown = 1000
)

// SenderSetup is what a sender is told when it is started.
type SenderSetup struct {
	Profile       string    // the contract's name
	State         string    // a folder for what has to outlive the process; "" for none
	Virtual       bool      // its clock is going to be moved
	Now           time.Time // what a virtual clock begins with
	AllowHosts    []string  // that it may call although they are internal
	Resolver      string    // host:port of the name server that it is to ask
	CACertificate string    // PEM of an authority that it is to trust
}

// params is the setup as the protocol says it, with the clock at now.
func (s SenderSetup) params(now time.Time) adapter.InitializeParams {
	p := adapter.InitializeParams{
		Profile: s.Profile, StateDir: s.State, AllowHosts: s.AllowHosts,
		Resolver: s.Resolver, CACertificate: s.CACertificate, Clock: adapter.ClockReal,
	}
	if s.Virtual {
		now = now.UTC()
		p.Clock, p.Now = adapter.ClockVirtual, &now
	}
	return p
}

// SenderOptions are how any adapter of a sender is spoken to.
type SenderOptions struct {
	// CallTimeout bounds each call; 0: [adapter.DefaultCallTimeout]. The first
	// one may take a minute.
	CallTimeout time.Duration
	// Redact takes the caller's secrets out of what errors and the log quote; may
	// be nil. Those of the endpoints are taken out in any case.
	Redact func(string) string
	// Secret is told each secret that the sender gives an endpoint, before it is
	// used; may be nil.
	Secret func(string)
}

// dialSender reaches the adapter of a sender, which may have to be started.
type dialSender func(context.Context, SenderSetup, adapter.Options) (adapter.Peer, error)

// remoteSender is a sender behind an adapter.
type remoteSender struct {
	setup   SenderSetup
	options SenderOptions
	dial    dialSender
	again   bool // it can be dialled again, after its end
	own     bool // the state folder was made for it, and goes with it
	about   About
	offers  []string
	secrets *secretBook

	mu      sync.RWMutex // held for writing while it restarts
	session *adapter.Session
	peer    adapter.Peer
	now     time.Time // where its clock was last seen; guarded by clock
	clock   sync.Mutex
}

// openSender reaches a sender and learns what it offers.
func openSender(ctx context.Context, setup SenderSetup, o SenderOptions, again bool, dial dialSender) (*remoteSender, error) {
	if o.CallTimeout <= 0 {
		o.CallTimeout = adapter.DefaultCallTimeout
	}
	s := &remoteSender{setup: setup, options: o, dial: dial, again: again, now: setup.Now, secrets: &secretBook{redact: o.Redact}}
	session, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	s.session = session
	s.about, s.offers = aboutSender(session.About), offered(session.About, again && setup.State != "")
	for _, needed := range []string{adapter.MethodCreateEndpoint, adapter.MethodPublish} {
		if !session.Has(needed) {
			err := &adapter.Fault{Kind: adapter.Undone, Peer: "adapter", Method: adapter.MethodInitialize,
				Detail: "it does not declare " + needed + ", without which nothing can be sent",
				Advice: "answer the method, and name it in the capabilities that initialize answers"}
			return nil, errors.Join(err, s.Close(context.WithoutCancel(ctx)))
		}
	}
	return s, nil
}

// open dials and introduces the suite, with the sender's clock where it stood.
func (s *remoteSender) open(ctx context.Context) (*adapter.Session, error) {
	peer, err := s.dial(ctx, s.setup, adapter.Options{CallTimeout: max(senderStart, s.options.CallTimeout), Redact: s.secrets.clean})
	if err != nil {
		return nil, err
	}
	session, err := adapter.Open(ctx, peer, s.setup.params(s.present()))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting the sender: %w", err), peer.Close(context.WithoutCancel(ctx)))
	}
	s.peer = peer
	return session, nil
}

func (s *remoteSender) present() time.Time {
	s.clock.Lock()
	defer s.clock.Unlock()
	return s.now
}

// Has implements [Subject].
func (s *remoteSender) Has(capability string) bool { return slices.Contains(s.offers, capability) }

// About implements [Sender].
func (s *remoteSender) About() About { return s.about }

// Restart implements [Subject]. What others ask meanwhile waits for its end.
func (s *remoteSender) Restart(ctx context.Context, kill bool) error {
	if !s.Has(Managed) {
		return ErrNotOffered
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if kill {
		killPeer(s.peer)
		_ = s.peer.Close(ctx) // it has been ended already
	} else if err := s.session.Close(ctx); err != nil {
		return fmt.Errorf("ending the sender to start it again: %w", err)
	}
	session, err := s.open(ctx)
	if err != nil {
		return fmt.Errorf("starting the sender again on the same state: %w", err)
	}
	s.session = session
	return nil
}

// killPeer ends a process as a crash would. What is no process is cut off.
func killPeer(p adapter.Peer) {
	if process, ok := p.(interface{ Kill() }); ok {
		process.Kill()
	}
}

// Close implements [Subject].
func (s *remoteSender) Close(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.session.Close(ctx)
	if s.own {
		err = errors.Join(err, os.RemoveAll(s.setup.State))
	}
	if err != nil {
		return fmt.Errorf("ending the sender: %w", err)
	}
	return nil
}

// Another implements [Sender].
func (s *remoteSender) Another(ctx context.Context, now time.Time, sameState bool) (Sender, error) {
	if !s.Has(Instances) && (sameState || !s.Has(Managed)) {
		return nil, ErrNotOffered
	}
	setup := s.setup
	setup.Now = now
	if !sameState {
		state, err := os.MkdirTemp(s.setup.State, "sender-")
		if err != nil {
			return nil, fmt.Errorf("making a state folder for another sender: %w", err)
		}
		setup.State = state
	}
	other, err := openSender(ctx, setup, s.options, s.again, s.dial)
	if err != nil {
		if !sameState {
			err = errors.Join(err, os.RemoveAll(setup.State))
		}
		return nil, fmt.Errorf("starting another sender: %w", err)
	}
	other.own = !sameState
	return other, nil
}

// secretBook takes secrets out of texts.
type secretBook struct {
	redact func(string) string // the caller's; may be nil
	mu     sync.Mutex
	known  []string
}

func (b *secretBook) add(secret string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.known) == secretsKnown {
		b.known = slices.Clone(b.known[secretsKnown/2:])
	}
	b.known = append(b.known, secret)
}

func (b *secretBook) clean(text string) string {
	if b.redact != nil {
		text = b.redact(text)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return Redact(text, b.known)
}
