package drive

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/whconform/whconform/conformance/drive/adapter"
	"github.com/whconform/whconform/fakeprovider"
)

// Hooked is a receiver with the hooks, and the observer, that its adapter
// declares. The adapter is introduced to the suite here, and again after each
// restart; a second instance and a [Receiver.Variant] get adapters of their own
// where how they are reached allows it. An adapter that breaks the protocol here
// is an error; later on it is one of the methods that ask it, and none of the
// receiver's. The error leaves r to the caller.
func Hooked(ctx context.Context, r Receiver, h Hooking) (Receiver, error) {
	if h.Clock == nil {
		h.Clock = clock.New()
	}
	hooked := &hooked{Receiver: r, config: h}
	first, err := hooked.connect(ctx, 0)
	if err != nil {
		return nil, err
	}
	hooked.links, hooked.about = []link{{session: first}}, first.About
	return hooked, nil
}

type hooked struct {
	Receiver
	config Hooking
	about  adapter.Initialized // as it was declared first

	mu    sync.Mutex
	links []link        // by instance
	ahead time.Duration // how far the receiver's clock was moved
}

// link is the conversation with an instance's adapter, or why there is none.
type link struct {
	session *adapter.Session
	err     error
}

// hookMethod is the method behind a capability; "" for one that is none.
func hookMethod(capability string) string {
	switch capability {
	case Fail:
		return adapter.MethodFailOnce
	case ObserveState:
		return adapter.MethodState
	case Clock:
		return adapter.MethodAdvance
	case Observe, ObserveByID:
		return adapter.MethodProcessed
	}
	return ""
}

func (h *hooked) declared(capability string) bool {
	method := hookMethod(capability)
	s := adapter.Session{About: h.about}
	return method != "" && s.Has(method)
}

func (h *hooked) Has(capability string) bool {
	return h.declared(capability) || h.Receiver.Has(capability)
}

// Processed implements [Observer]: all instances share one store, so the first
// knows.
func (h *hooked) Processed(ctx context.Context, id string) (Count, error) {
	if !h.declared(Observe) {
		return h.Receiver.Processed(ctx, id)
	}
	first := h.present()[0]
	if first.err != nil {
		return Count{}, &ObserverError{Fault: ObserverUnfit, Observer: adapter.MethodProcessed, ID: id, Got: first.err.Error(), Err: first.err}
	}
	return controlObserver{first.session}.Processed(ctx, id)
}

// State implements [Hooks].
func (h *hooked) State(ctx context.Context, id, reference string) (string, error) {
	if !h.declared(ObserveState) {
		return h.Receiver.State(ctx, id, reference)
	}
	first := h.present()[0]
	if first.err != nil {
		return "", first.err
	}
	return first.session.State(ctx, id, reference)
}

// FailOnce implements [Hooks]. Every instance is told: which of them processes
// the event is not known.
func (h *hooked) FailOnce(ctx context.Context, id string) error {
	if !h.declared(Fail) {
		return h.Receiver.FailOnce(ctx, id)
	}
	return h.all(func(s *adapter.Session) error { return s.FailOnce(ctx, id) })
}

// AdvanceClock implements [Hooks].
func (h *hooked) AdvanceClock(ctx context.Context, to time.Time) error {
	if !h.declared(Clock) {
		return h.Receiver.AdvanceClock(ctx, to)
	}
	err := h.all(func(s *adapter.Session) error {
		_, err := s.Advance(ctx, to)
		return err
	})
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ahead = max(h.ahead, to.Sub(h.config.Clock.Now()))
	return nil
}

// present are the conversations as they stand.
func (h *hooked) present() []link {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.links
}

// all asks the adapter of each instance.
func (h *hooked) all(ask func(*adapter.Session) error) error {
	for _, l := range h.present() {
		if l.err != nil {
			return l.err
		}
		if err := ask(l.session); err != nil {
			return err
		}
	}
	return nil
}

// connect introduces the suite to the adapter of an instance. An adapter that
// cannot be reached is tried again: it may be part of a receiver that has just
// begun to listen.
func (h *hooked) connect(ctx context.Context, instance int) (*adapter.Session, error) {
	bound := time.NewTimer(reviveTimeout)
	defer bound.Stop()
	again := time.NewTicker(probeEvery)
	defer again.Stop()
	for {
		s, err := h.open(ctx, instance)
		if err == nil || !adapter.IsFault(err, adapter.NoContact) {
			return s, err
		}
		select {
		case <-bound.C:
			return nil, err
		case <-ctx.Done():
			return nil, err
		case <-again.C:
		}
	}
}

// open tries it once.
func (h *hooked) open(ctx context.Context, instance int) (*adapter.Session, error) {
	peer, state, err := h.config.reach(h.Receiver, instance)
	if err != nil {
		return nil, err
	}
	params := adapter.InitializeParams{Profile: h.config.Profile, StateDir: state}
	h.mu.Lock()
	if h.ahead > 0 { // a process that was started again stands at the real time
		now := h.config.Clock.Now().Add(h.ahead).UTC()
		params.Now = &now
	}
	h.mu.Unlock()
	s, err := adapter.Open(ctx, peer, params)
	if err != nil {
		return nil, errors.Join(err, peer.Close(context.WithoutCancel(ctx)))
	}
	return s, nil
}

// Second implements [Receiver].
func (h *hooked) Second(ctx context.Context) (fakeprovider.Target, error) {
	to, err := h.Receiver.Second(ctx)
	if err != nil || h.config.shared || len(h.present()) > 1 {
		return to, err
	}
	s, err := h.connect(ctx, 1)
	if err != nil {
		err = fmt.Errorf("asking the second instance: %w", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	// A list of its own: present hands out the one before.
	h.links = []link{h.links[0], {s, err}}
	return to, nil
}

// Restart implements [Subject]. The adapters are parts of what is restarted, as
// far as is known, so the conversations begin anew.
func (h *hooked) Restart(ctx context.Context, kill bool) error {
	if err := h.Receiver.Restart(ctx, kill); err != nil {
		return err
	}
	var fresh []link
	for instance, old := range h.present() {
		if old.err == nil {
			old.session.Drop(ctx)
		}
		s, err := h.connect(ctx, instance)
		if err != nil {
			err = fmt.Errorf("after a restart of the receiver: %w", err)
		}
		fresh = append(fresh, link{s, err})
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.links = fresh
	return nil
}

// Variant implements [Receiver]. One whose adapter cannot be reached is a
// receiver all the same; its hooks return why.
func (h *hooked) Variant(ctx context.Context, s Secrets) (Receiver, error) {
	r, err := h.Receiver.Variant(ctx, s)
	if err != nil || h.config.shared {
		return r, err
	}
	v := &hooked{Receiver: r, config: h.config, about: h.about}
	session, err := v.connect(ctx, 0)
	if err == nil {
		v.about = session.About
	}
	v.links = []link{{session, err}}
	return v, nil
}

// Close says farewell to the adapters and closes the receiver.
func (h *hooked) Close(ctx context.Context) error {
	var errs []error
	for _, l := range h.present() {
		if l.err == nil {
			errs = append(errs, l.session.Close(ctx))
		}
	}
	return errors.Join(append(errs, h.Receiver.Close(ctx))...)
}
