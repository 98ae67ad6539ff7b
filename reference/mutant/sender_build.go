package mutant

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/whconform/whconform/reference/sender"
	"github.com/whconform/whconform/reference/signature"
	"github.com/whconform/whconform/reference/wire"
)

// optionsChange is the type of SenderMutant.Change.
type optionsChange = func(*sender.Options)

// together makes several changes.
func together(changes ...optionsChange) optionsChange {
	return func(o *sender.Options) {
		for _, change := range changes {
			change(o)
		}
	}
}

// policy changes how persistent the sender is, and what it declares of that. The
// zero fields are the profile's.
func policy(edit func(*sender.Policy)) optionsChange {
	return func(o *sender.Options) { edit(&o.Policy) }
}

// network changes the transport, which is made anew.
func network(edit func(*sender.TransportOptions)) optionsChange {
	return func(o *sender.Options) {
		right, ok := o.Transport.(*sender.HTTPTransport)
		if !ok {
			return // somebody else's transport has no such faults
		}
		t := right.Options()
		edit(&t)
		if changed, err := sender.NewTransport(t); err == nil { // what it was made from was right before
			o.Transport = changed
		}
	}
}

// requesting changes each request on its way to the network.
func requesting(f func(a sender.AttemptInfo, r sender.Request) sender.Request) optionsChange {
	return func(o *sender.Options) { o.Faults.Request = f }
}

// sending changes the bytes that are sent and signed.
func sending(f func(a sender.AttemptInfo, stored []byte) []byte) optionsChange {
	return func(o *sender.Options) { o.Faults.Body = f }
}

// signing changes what the signature is made over.
func signing(f func(a sender.AttemptInfo, in signature.Input) signature.Input) optionsChange {
	return func(o *sender.Options) {
		o.Faults.Signing = func(a sender.AttemptInfo, in signature.Input, keys []signature.Key) (signature.Input, []signature.Key) {
			return f(a, in), keys
		}
	}
}

// signingWith changes by which secrets an attempt is signed, the newest first.
func signingWith(f func(a sender.AttemptInfo, secrets []string) []string) optionsChange {
	return func(o *sender.Options) { o.Faults.Secrets = f }
}

// named changes the id that is sent.
func named(f func(a sender.AttemptInfo, id string) string) optionsChange {
	return func(o *sender.Options) { o.Faults.ID = f }
}

// judging changes what an answer means.
func judging(f func(a sender.AttemptInfo, r sender.Result, right sender.Outcome) sender.Outcome) optionsChange {
	return func(o *sender.Options) { o.Faults.Outcome = f }
}

// waiting changes the delay before the next attempt.
func waiting(f func(a sender.AttemptInfo, o sender.Outcome, usual time.Duration) time.Duration) optionsChange {
	return func(o *sender.Options) { o.Faults.Delay = f }
}

// updating changes what becomes of message and endpoint.
func updating(f func(a sender.AttemptInfo, o sender.Outcome, right sender.Update) sender.Update) optionsChange {
	return func(o *sender.Options) { o.Faults.Update = f }
}

// logging changes the lines of the delivery log, or leaves them out.
func logging(f func(line sender.Attempt) (sender.Attempt, bool)) optionsChange {
	return func(o *sender.Options) { o.Faults.Log = f }
}

// untold keeps owners from hearing of some kind.
func untold(kind string) optionsChange {
	return func(o *sender.Options) {
		o.Faults.Notify = func(n sender.Notification) (sender.Notification, bool) { return n, n.Kind != kind }
	}
}

// bounds changes how long an attempt and its connecting may take. The declared
// numbers stay.
func bounds(f func(timeout, connect time.Duration) (time.Duration, time.Duration)) optionsChange {
	return func(o *sender.Options) { o.Faults.Bounds = f }
}

// prepared runs statements in the outbox before anything is sent.
func prepared(statements ...string) optionsChange {
	return func(o *sender.Options) {
		o.Faults.Open = func(s *sender.Sender) error {
			return s.Transaction(context.Background(), func(ctx context.Context, tx *sql.Tx) error {
				for _, statement := range statements {
					if _, err := tx.ExecContext(ctx, statement); err != nil {
						return err
					}
				}
				return nil
			})
		}
	}
}

// opened gives f the sender before anything is sent: for faults that look things
// up in the outbox.
func opened(f func(*sender.Sender)) optionsChange {
	return func(o *sender.Options) {
		o.Faults.Open = func(s *sender.Sender) error { f(s); return nil }
	}
}

// ownPayload changes the payloads that the sender builds itself. What publishing
// was given as finished bytes is left alone.
func ownPayload(edit func(a sender.AttemptInfo, payload map[string]json.RawMessage)) optionsChange {
	return sending(func(a sender.AttemptInfo, stored []byte) []byte {
		var members map[string]json.RawMessage
		if json.Unmarshal(stored, &members) != nil || !hasMember(members, "timestamp", "created_at") || !hasMember(members, "data") {
			return stored
		}
		edit(a, members)
		out, err := plainJSON(members)
		if err != nil {
			return stored
		}
		return out
	})
}

func hasMember(members map[string]json.RawMessage, names ...string) bool {
	for _, name := range names {
		if _, ok := members[name]; ok {
			return true
		}
	}
	return false
}

// plainJSON is json.Marshal without the escapes that only Go writes.
func plainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// header is the value of a request's header, "" where it is missing.
func header(r sender.Request, name string) string {
	value, _ := wire.Get(r.Headers, name)
	return value
}

// withHeader is a request with another value of a header.
func withHeader(r sender.Request, name, value string) sender.Request {
	r.Headers = wire.Set(r.Headers, name, value)
	return r
}

// tripper is a RoundTripper of one function.
type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// answering puts f in the place of what makes the requests; next is the right one.
func answeringBy(f func(next http.RoundTripper, req *http.Request) (*http.Response, error)) optionsChange {
	return network(func(t *sender.TransportOptions) {
		t.Faults.Answer = func(next http.RoundTripper) http.RoundTripper {
			return tripper(func(req *http.Request) (*http.Response, error) { return f(next, req) })
		}
	})
}

// memory is what a process keeps that it should not: values by a key.
type memory[V any] struct {
	mu   sync.Mutex
	kept map[string]V
}

// keep stores a value unless there is one, and returns what is stored.
func (m *memory[V]) keep(key string, v V) V {
	m.mu.Lock()
	defer m.mu.Unlock()
	if old, ok := m.kept[key]; ok {
		return old
	}
	m.put(key, v)
	return v
}

// change replaces a value by what f makes of it, and returns that.
func (m *memory[V]) change(key string, f func(V) V) V {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := f(m.kept[key])
	m.put(key, v)
	return v
}

func (m *memory[V]) put(key string, v V) {
	if m.kept == nil {
		m.kept = map[string]V{}
	}
	m.kept[key] = v
}

// wrapping makes Wrap of what is put around one method.
func wrapping(method string, f func(ctx context.Context, params json.RawMessage, right sender.ControlMethod) (any, error)) func() methodWrap {
	return func() methodWrap {
		return func(name string, right sender.ControlMethod) sender.ControlMethod {
			if name != method {
				return right
			}
			return func(ctx context.Context, params json.RawMessage) (any, error) { return f(ctx, params, right) }
		}
	}
}

// declaring changes what the sender declares of itself.
func declaring(name string, value any) func() methodWrap {
	return wrapping("initialize", func(ctx context.Context, params json.RawMessage, right sender.ControlMethod) (any, error) {
		result, err := right(ctx, params)
		if err != nil {
			return nil, err
		}
		return with(result, name, value)
	})
}

// with is a result with another value of a member.
func with(result any, name string, value any) (any, error) {
	text, err := json.Marshal(result)
	if err != nil {
		return nil, err
	}
	var members map[string]any
	if err := json.Unmarshal(text, &members); err != nil {
		return nil, err
	}
	members[name] = value
	return members, nil
}

// readAgain is a body of these bytes.
func readAgain(body []byte) io.ReadCloser { return io.NopCloser(bytes.NewReader(body)) }
