package adapter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"
)

// Method is one method of an adapter. Params are a JSON object, or nil where the
// request has none; the result is anything that encodes as JSON. An error that
// wraps an [Error] is answered as it stands, any other as an internal error with
// its text: keep secrets out of it. The context ends when the suite takes the
// request back.
type Method func(ctx context.Context, params json.RawMessage) (any, error)

// Methods are the methods of an adapter by name.
type Methods map[string]Method

// Func makes a method of a function with typed parameters. Members of the
// request that P does not have are passed over, as the protocol demands.
func Func[P, R any](f func(context.Context, P) (R, error)) Method {
	return func(ctx context.Context, params json.RawMessage) (any, error) {
		var p P
		if len(params) > 0 {
			if err := json.Unmarshal(params, &p); err != nil {
				return nil, &Error{Code: InvalidParams, Message: "reading the params: " + err.Error()}
			}
		}
		return f(ctx, p)
	}
}

// Initialize makes the method initialize: it answers what is told about the
// subject, with the names of the other methods added to its capabilities. Begin,
// which may be nil, is told how the suite introduced itself; its error is the
// answer.
func Initialize(about Initialized, others Methods, begin func(context.Context, InitializeParams) error) Method {
	about.ProtocolVersion = ProtocolVersion
	about.Capabilities = slices.Clone(about.Capabilities)
	for _, name := range slices.Sorted(maps.Keys(others)) {
		if name != MethodInitialize && name != MethodShutdown {
			about.Capabilities = append(about.Capabilities, name)
		}
	}
	if about.Capabilities == nil {
		about.Capabilities = []string{}
	}
	return Func(func(ctx context.Context, p InitializeParams) (Initialized, error) {
		if p.ProtocolVersion != ProtocolVersion {
			return Initialized{}, &Error{Code: InvalidParams, Message: fmt.Sprintf("this adapter speaks version %d of the protocol, not %d", ProtocolVersion, p.ProtocolVersion)}
		}
		if begin != nil {
			if err := begin(ctx, p); err != nil {
				return Initialized{}, err
			}
		}
		return about, nil
	})
}

// serveGrace is how long methods may go on when no more requests come, before
// their context ends. Shorter than what the suite grants the process.
const serveGrace = exitGrace / 2

// Serve answers requests from in on out, side by side, until in ends, the suite
// says shutdown or ctx is done; then it waits for the methods that are running,
// whose context ends a second later, and returns. The error is nil after shutdown and at the end of in, the
// context's cause, or what went wrong with the streams. A Read of in that does
// not return keeps one goroutine: a program ends after Serve.
func Serve(ctx context.Context, in io.Reader, out io.Writer, methods Methods) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s := &server{methods: methods, out: out, running: map[string]context.CancelFunc{}, slots: make(chan struct{}, maxCalls)}
	lines, failed := make(chan []byte), make(chan error, 1)
	go readLines(ctx, in, lines, failed)
	err := s.loop(ctx, lines, failed)
	if err != nil {
		cancel(err)
	}
	overdue := time.AfterFunc(serveGrace, func() { cancel(errClosed) })
	defer overdue.Stop()
	s.methodsRunning.Wait()
	return errors.Join(err, s.writeError())
}

// readLines hands on each line of in.
func readLines(ctx context.Context, in io.Reader, lines chan<- []byte, failed chan<- error) {
	r := newLineReader(in, MaxRequest)
	for {
		line, err := r.next()
		if err != nil {
			failed <- err
			return
		}
		select {
		case lines <- slices.Clone(line):
		case <-ctx.Done():
			return
		}
	}
}

// server is one run of Serve.
type server struct {
	methods        Methods
	slots          chan struct{} // a token for each method that runs
	methodsRunning sync.WaitGroup

	mu      sync.Mutex
	out     io.Writer
	err     error // of the first write that failed
	running map[string]context.CancelFunc
}

func (s *server) loop(ctx context.Context, lines <-chan []byte, failed <-chan error) error {
	for {
		select {
		case line := <-lines:
			if last, err := s.line(ctx, line); last || err != nil {
				return err
			}
		case err := <-failed:
			switch {
			case errors.Is(err, errLongLine):
				s.answer(nil, nil, &Error{Code: InvalidRequest, Message: fmt.Sprintf("a request is longer than %d bytes", MaxRequest)})
				return fmt.Errorf("reading requests: %w", err)
			case errors.Is(err, io.EOF):
				return nil
			}
			return fmt.Errorf("reading requests: %w", err)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// line answers one line, in a goroutine of its own since that may take time. It
// returns true for a shutdown that succeeded.
func (s *server) line(ctx context.Context, line []byte) (last bool, err error) {
	r, bad := parseRequest(line)
	if bad != nil {
		s.answer(r.id, nil, bad)
		return false, nil
	}
	switch r.method {
	case MethodCancel:
		s.cancel(r.params)
		return false, nil
	case MethodShutdown:
		// What stands behind it is not read, unless it fails. Nothing that was
		// asked before is cut short by it.
		s.methodsRunning.Wait()
		return s.run(ctx, r), nil
	}
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	if !s.register(r.id, cancel) {
		cancel()
		<-s.slots
		s.answer(r.id, nil, &Error{Code: InvalidRequest, Message: "a request with this id is still being worked on"})
		return false, nil
	}
	s.methodsRunning.Go(func() {
		defer func() { <-s.slots }()
		defer cancel()
		defer s.unregister(r.id)
		s.run(ctx, r)
	})
	return false, nil
}

// run answers one request; a notification is not answered. It returns whether
// the method succeeded.
func (s *server) run(ctx context.Context, r request) bool {
	result, failure := s.methods.call(ctx, r)
	if len(r.id) > 0 {
		s.answer(r.id, result, failure)
	}
	return failure == nil
}

func (s *server) register(id json.RawMessage, cancel context.CancelFunc) bool {
	if len(id) == 0 {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, there := s.running[string(id)]; there {
		return false
	}
	s.running[string(id)] = cancel
	return true
}

func (s *server) unregister(id json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, string(id))
}

// cancel ends a running method's context. An id that is not there is no error:
// the answer may be on its way.
func (s *server) cancel(params json.RawMessage) {
	var p struct {
		ID json.RawMessage `json:"id"`
	}
	if len(params) == 0 || json.Unmarshal(params, &p) != nil {
		return
	}
	s.mu.Lock()
	cancel := s.running[string(p.ID)]
	s.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// answer writes one message. After a write that failed nothing is written any
// more: the stream may end inside a line.
func (s *server) answer(id, result json.RawMessage, failure *Error) {
	line := encodeAnswer(id, result, failure)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		_, s.err = s.out.Write(line)
	}
}

func (s *server) writeError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return fmt.Errorf("writing an answer: %w", s.err)
	}
	return nil
}
