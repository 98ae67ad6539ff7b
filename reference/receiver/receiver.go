package receiver

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"runtime/debug"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/whconform/whconform/reference/signature"
	"github.com/whconform/whconform/reference/wire"
)

// Receiver takes deliveries in. It is an [http.Handler] for whatever path the
// provider was given, and safe for concurrent use. Make one with [New].
type Receiver struct {
	scheme    signature.Scheme
	keys      []signature.Key
	identity  identity
	handshake *handshake
	store     Store
	clock     clock.Clock
	log       *slog.Logger

	maxBody     int64
	bodyTimeout time.Duration
	slots       chan struct{} // a token for each delivery being verified and stored
	slotWait    time.Duration
	memory      *budget
	forged      throttle
	refusal     int // status for what does not verify
}

// ServeHTTP takes one delivery from the network to the store. The order of the
// steps is the point of it: see the package comment.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	defer r.survive(w)
	r.limitBody(w, r.bodyTimeout)

	if r.handshake.unsigned(w, req) {
		return
	}
	if req.Method != http.MethodPost {
		w.Header().Set("Allow", r.handshake.allow())
		r.answerUnread(w, req, http.StatusMethodNotAllowed)
		return
	}
	if req.ContentLength > r.maxBody {
		r.answerUnread(w, req, http.StatusRequestEntityTooLarge)
		return
	}
	body, release, err := readBody(req.Body, req.ContentLength, r.maxBody, r.memory)
	defer release()
	if err != nil {
		r.answerBodyError(w, req, err)
		return
	}
	r.limitBody(w, 0)

	// Only from here on does a slot count: it is held while this machine works,
	// never while a peer dawdles over its body.
	if !r.enter() {
		unavailable(w)
		return
	}
	defer r.leave()
	r.receive(w, req, body)
}

// receive verifies a delivery whose body is complete, stores it and answers.
func (r *Receiver) receive(w http.ResponseWriter, req *http.Request, body []byte) {
	now := r.clock.Now()
	raw := request(req, body)
	key, err := r.scheme.Verify(raw, now, r.keys...)
	if err != nil {
		r.refuse(w, req, now, err)
		return
	}
	// Authentic: now, and not before, the body may be looked into.
	if r.handshake.signed(w, key, body) {
		return
	}
	m := Message{ID: r.identity.id(raw), Type: r.identity.eventType(raw), Body: body, ReceivedAt: now, Key: key.Label}
	added, err := r.keep(req.Context(), m)
	if err != nil {
		r.tellUnstored(m, err)
		unavailable(w)
		return
	}
	// New or a copy, the provider is told the same: it is here, send it no more.
	w.WriteHeader(http.StatusOK)
	r.log.Debug("received", "id", m.ID, "type", m.Type, "new", added, "key", m.Key, "bytes", len(body))
}

// keep stores m, also when the peer has gone meanwhile, or has closed its side
// of the connection because it has nothing more to say: the event is authentic
// and here, and what the store does not take now has to come again.
func (r *Receiver) keep(ctx context.Context, m Message) (added bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	return r.store.Add(ctx, m)
}

// tellUnstored logs that m could not be stored. A store that tells its operator
// by itself when it stops to work needs no line for each delivery that meets it.
func (r *Receiver) tellUnstored(m Message, err error) {
	level := slog.LevelError
	if errors.Is(err, ErrUnavailable) {
		level = slog.LevelDebug
	}
	r.log.Log(context.Background(), level, "storing a message", "id", m.ID, "error", err)
}

// refuse answers a delivery that does not verify. The answer is the same
// whatever was wrong, so that it teaches a forger nothing; the log has the
// reason, for the owner whose secret does not match.
func (r *Receiver) refuse(w http.ResponseWriter, req *http.Request, now time.Time, err error) {
	if !r.forged.bucket.AllowN(now, 1) {
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	rule := "unknown"
	if refusal, ok := errors.AsType[*signature.Refusal](err); ok {
		rule = refusal.Rule
	}
	w.WriteHeader(r.refusal)
	r.log.Warn("refused a delivery", "rule", rule, "remote", req.RemoteAddr)
}

// answerBodyError answers a request whose body could not be read to its end.
// What is left of it is not worth reading, so the connection closes.
func (r *Receiver) answerBodyError(w http.ResponseWriter, req *http.Request, err error) {
	w.Header().Set("Connection", "close")
	switch {
	case errors.Is(err, errTooLarge):
		w.WriteHeader(http.StatusRequestEntityTooLarge)
	case errors.Is(err, errNoMemory):
		unavailable(w)
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.WriteHeader(http.StatusRequestTimeout)
	default: // cut short, or its chunks are malformed
		w.WriteHeader(http.StatusBadRequest)
	}
	level := slog.LevelWarn
	if errors.Is(err, io.ErrUnexpectedEOF) {
		level = slog.LevelInfo // a provider that gave up; it comes again
	}
	r.log.Log(req.Context(), level, "reading a body", "error", err, "remote", req.RemoteAddr)
}

// answerUnread answers a request without having read its body. If there is one
// the connection closes: the server would otherwise read the body, to find the
// next request behind it.
func (r *Receiver) answerUnread(w http.ResponseWriter, req *http.Request, status int) {
	if req.ContentLength != 0 {
		w.Header().Set("Connection", "close")
	}
	w.WriteHeader(status)
}

// unavailable answers that trying again will help.
func unavailable(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1")
	w.WriteHeader(http.StatusServiceUnavailable)
}

// limitBody gives the rest of the request until d from now, or for ever when d
// is 0. It is the one bound on a peer that sends a byte a second, or nothing.
//
// A writer that knows no deadlines has no connection under it (a recorder in a
// test); any other error means that the connection is gone, which reading from
// it will show.
func (r *Receiver) limitBody(w http.ResponseWriter, d time.Duration) {
	var deadline time.Time
	if d > 0 {
		deadline = time.Now().Add(d) // network deadlines are real time
	}
	_ = http.NewResponseController(w).SetReadDeadline(deadline)
}

// enter takes a slot, or waits for one no longer than slotWait.
func (r *Receiver) enter() bool {
	select {
	case r.slots <- struct{}{}:
		return true
	default:
	}
	timer := time.NewTimer(r.slotWait)
	defer timer.Stop()
	select {
	case r.slots <- struct{}{}:
		return true
	case <-timer.C:
		return false
	}
}

func (r *Receiver) leave() { <-r.slots }

// survive turns a panic into a 500 with a line in the log, and the connection
// serves on. Left to net/http, it would close the connection without an answer,
// and take other events on it along.
func (r *Receiver) survive(w http.ResponseWriter) {
	p := recover()
	if p == nil {
		return
	}
	r.log.Error("panic while receiving", "panic", p, "stack", string(debug.Stack()))
	w.WriteHeader(http.StatusInternalServerError)
}

// request is req as the signature package reads it. net/http has put header
// names in their canonical form already; schemes compare them in any case.
func request(req *http.Request, body []byte) *wire.Request {
	headers := make([]wire.Header, 0, len(req.Header))
	for name, values := range req.Header {
		for _, v := range values {
			headers = append(headers, wire.Header{Name: name, Value: v})
		}
	}
	return &wire.Request{
		Method:  req.Method,
		Target:  req.URL.RequestURI(),
		Headers: headers,
		Body:    body,
		Size:    int64(len(body)),
	}
}
