package adapter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// shutdownTimeout bounds the farewell. What takes longer is ended anyhow.
const shutdownTimeout = 2 * time.Second

// Session is a conversation with an adapter that has introduced itself. Make one
// with [Open].
type Session struct {
	// About is what the adapter told of its subject.
	About Initialized
	peer  Peer
}

// Open introduces the suite to an adapter and learns what it offers. When it
// fails the peer is still the caller's to close; otherwise it is the session's.
func Open(ctx context.Context, peer Peer, p InitializeParams) (*Session, error) {
	p.ProtocolVersion = ProtocolVersion
	s := &Session{peer: peer}
	if err := peer.Call(ctx, MethodInitialize, p, &s.About); err != nil {
		return nil, err
	}
	if s.About.ProtocolVersion != ProtocolVersion {
		return nil, &Fault{Kind: Version, Peer: "adapter", Method: MethodInitialize,
			Detail: fmt.Sprintf("it speaks version %d of the protocol", s.About.ProtocolVersion),
			Advice: fmt.Sprintf("this suite speaks version %d", ProtocolVersion)}
	}
	return s, nil
}

// Has tells whether the adapter declared a method or another capability.
func (s *Session) Has(capability string) bool {
	return slices.Contains(s.About.Capabilities, capability)
}

// Call asks for any method; see [Peer]. One that the adapter did not declare is
// not asked for: the error is a [Fault] of the kind Undone.
func (s *Session) Call(ctx context.Context, method string, params, result any) error {
	if !s.Has(method) {
		return &Fault{Kind: Undone, Peer: "adapter", Method: method,
			Detail: "the adapter did not declare this method",
			Advice: "name it in the capabilities that initialize answers, if the subject can do it"}
	}
	return s.peer.Call(ctx, method, params, result)
}

// Processed asks how often the effect of an event came about.
func (s *Session) Processed(ctx context.Context, id string) (Processed, error) {
	var a processedAnswer
	if err := s.Call(ctx, MethodProcessed, ProcessedParams{ID: id}, &a); err != nil {
		return Processed{}, err
	}
	return Processed{Processed: a.count, Failed: a.Failed}, nil
}

// State asks for the current state of the record that the event id speaks of.
// Reference is the record's own name in the payload; it may be empty.
func (s *Session) State(ctx context.Context, id, reference string) (string, error) {
	var a stateAnswer
	if err := s.Call(ctx, MethodState, StateParams{ID: id, Reference: reference}, &a); err != nil {
		return "", err
	}
	return *a.State, nil
}

// FailOnce asks that the first processing of an event fails. The event is sent
// afterwards.
func (s *Session) FailOnce(ctx context.Context, id string) error {
	return s.Call(ctx, MethodFailOnce, FailOnceParams{ID: id}, nil)
}

// Advance moves the subject's clock. Work that is due by then has begun when it
// returns.
func (s *Session) Advance(ctx context.Context, to time.Time) (Advanced, error) {
	var a Advanced
	if err := s.Call(ctx, MethodAdvance, AdvanceParams{To: to.UTC()}, &a); err != nil {
		return Advanced{}, err
	}
	if a.Now.Before(to.Truncate(time.Millisecond)) { // many clocks know nothing finer
		return a, &Fault{Kind: BadResult, Peer: "adapter", Method: MethodAdvance,
			Detail: fmt.Sprintf("asked to advance to %s it stands at %s", to.UTC().Format(time.RFC3339Nano), a.Now.UTC().Format(time.RFC3339Nano)),
			Advice: "answer once the clock stands at the time asked for"}
	}
	return a, nil
}

// Drop closes the peer without a farewell: its subject has been ended already.
func (s *Session) Drop(ctx context.Context) { _ = s.peer.Close(ctx) }

// Close says farewell and closes the peer. An adapter that does not answer the
// farewell is ended all the same; that is no error, since nothing was lost. One
// that answers with an error has something to say.
func (s *Session) Close(ctx context.Context) error {
	farewell, cancel := context.WithTimeout(ctx, shutdownTimeout)
	defer cancel()
	err := s.peer.Call(farewell, MethodShutdown, nil, nil)
	var answered *Error
	if !errors.As(err, &answered) {
		err = nil
	}
	return errors.Join(err, s.peer.Close(ctx))
}
