package sender

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/whconform/whconform/reference/signature"
	"github.com/whconform/whconform/reference/wire"
)

// attempt is one that is under way.
type attempt struct {
	*claim
	endBy, connectBy time.Time
	connected        atomic.Bool
	againAt          atomic.Int64 // when what came out is written down again, after that failed
}

// next is when the clock ends something of the attempt.
func (a *attempt) next() time.Time {
	if at := a.againAt.Load(); at != 0 {
		return fromNano(at)
	}
	if !a.connected.Load() {
		return a.connectBy // never later than endBy
	}
	return a.endBy
}

// Why an attempt is not made.
var (
	errHeld   = errors.New("the endpoint is not enabled any more")
	errUnread = errors.New("the outbox cannot be read")
)

// perform makes an attempt, from the stored bytes to the row in the log.
func (s *Sender) perform(a *attempt) {
	s.awaitGoodbye(a.EndpointID)
	r, err := s.request(a)
	switch {
	case errors.Is(err, errHeld):
		s.release(a, "")
		return
	case errors.Is(err, errUnread):
		s.reading.tell(err)
		s.pause(a) // or it would be claimed again at once, and again
		s.release(a, "")
		return
	case err != nil: // it has failed: a later one may succeed, for people mend things
		s.settle(a, Result{Err: fmt.Errorf("not made: %w", err)}, Outcome{Error: clip(fmt.Sprintf("not made: %v", err), maxErrorText)}, s.clock.Now())
		return
	}
	result := s.transport.Attempt(s.halt, r)
	ended := s.clock.Now()
	if s.halt.Err() != nil {
		s.release(a, "interrupted: "+errStopped.Error())
		return
	}
	o := s.judge(a, result)
	if o.Gone {
		defer s.sayGoodbye(a.EndpointID)()
	}
	s.settle(a, result, o, ended)
}

// sayGoodbye keeps attempts at an endpoint that wants no more from beginning
// while that is being written down; what it returns ends that.
func (s *Sender) sayGoodbye(endpoint string) (written func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leaving[endpoint] != nil {
		return func() {} // two 410 at one time: the first keeps the door
	}
	done := make(chan struct{})
	s.leaving[endpoint] = done
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.leaving, endpoint)
		close(done)
	}
}

func (s *Sender) awaitGoodbye(endpoint string) {
	s.mu.Lock()
	leaving := s.leaving[endpoint]
	s.mu.Unlock()
	if leaving == nil {
		return
	}
	select {
	case <-leaving:
	case <-s.halt.Done():
	}
}

// request builds an attempt anew: from one attempt to the next only the id and
// the bytes are the same. A timestamp that was taken once would be refused as
// stale by every later attempt, and a signature over it, too.
func (s *Sender) request(a *attempt) (Request, error) {
	body, err := s.body(a)
	if err != nil {
		return Request{}, err
	}
	keys, err := s.keys(a)
	if err != nil {
		return Request{}, fmt.Errorf("reading the secrets: %w", err)
	}
	in := signature.Input{ID: a.MessageID, Method: http.MethodPost, URL: a.URL, Time: a.Began, Body: body}
	if s.faults.ID != nil {
		in.ID = s.faults.ID(a.AttemptInfo, in.ID)
	}
	if s.faults.Body != nil {
		in.Body = s.faults.Body(a.AttemptInfo, in.Body)
	}
	sent := in
	if s.faults.Signing != nil {
		in, keys = s.faults.Signing(a.AttemptInfo, in, keys)
	}
	signed, err := s.scheme.Sign(in, keys...)
	if err != nil {
		return Request{}, fmt.Errorf("signing: %w", err)
	}
	r := Request{
		URL: a.URL, Headers: append(s.headers(a, sent.ID), signed...), Body: sent.Body,
		Began: a.Began, Timeout: a.endBy.Sub(a.Began), ConnectTimeout: a.connectBy.Sub(a.Began),
		Connected: func() { a.connected.Store(true) },
	}
	if s.faults.Request != nil {
		r = s.faults.Request(a.AttemptInfo, r)
	}
	return r, nil
}

// headers are those that are not the signature's.
func (s *Sender) headers(a *attempt, id string) []wire.Header {
	all := []wire.Header{
		{Name: "Content-Type", Value: firstOf(s.profile.ContentType, "application/json")},
		{Name: "User-Agent", Value: firstOf(s.profile.UserAgent, DefaultUserAgent)},
	}
	fill := strings.NewReplacer("{id}", id, "{type}", a.Type)
	for _, name := range slices.Sorted(maps.Keys(s.profile.Headers)) {
		all = append(all, wire.Header{Name: name, Value: fill.Replace(s.profile.Headers[name])})
	}
	return all
}

// body is the payload as it was stored on publishing, of an endpoint that still
// is enabled: its owner may have disabled it since the message was claimed.
func (s *Sender) body(a *attempt) ([]byte, error) {
	bodies, err := column[[]byte](s.store.query(context.WithoutCancel(s.halt), `SELECT p.body FROM payloads p, endpoints e
		WHERE p.id = $1 AND e.id = $2 AND (e.status = 'enabled' OR $3 = 1)`, a.payload, a.EndpointID, flag(s.faults.IgnoreStatus)))
	if err != nil {
		return nil, fmt.Errorf("%w: a payload: %w", errUnread, err)
	}
	if len(bodies) == 0 {
		return nil, errHeld
	}
	return bodies[0], nil
}

// keys are the secrets that sign at this instant, the newest first: during a
// rotation two. They are read for each attempt, so that a rotation counts from
// the moment it was confirmed, for messages that wait already, too.
func (s *Sender) keys(a *attempt) ([]signature.Key, error) {
	texts, err := column[string](s.store.query(context.WithoutCancel(s.halt), `SELECT text FROM secrets
		WHERE endpoint_id = $1 AND (expires_at IS NULL OR expires_at > $2) ORDER BY id DESC`, a.EndpointID, a.Began.UnixNano()))
	if err != nil {
		return nil, fmt.Errorf("%w: the secrets: %w", errUnread, err)
	}
	if s.faults.Secrets != nil {
		texts = s.faults.Secrets(a.AttemptInfo, texts)
	}
	keys := make([]signature.Key, 0, len(texts))
	for i, text := range texts {
		label := "current"
		if i > 0 {
			label = "previous"
		}
		key, err := s.scheme.Key(label, text)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// judge decides what an answer means. The status says all: a body is not looked
// into, and a redirect is an answer like any other that is no 2xx.
func (s *Sender) judge(a *attempt, r Result) Outcome {
	o := Outcome{RetryAfter: r.RetryAfter}
	switch {
	case r.Status >= 200 && r.Status < 300:
		o.Delivered = true
	case r.Status == http.StatusGone:
		o.Gone = true
	case r.Status == http.StatusUnauthorized || r.Status == http.StatusForbidden:
		o.Credentials = true
	case r.Fault == wire.FaultTimeout:
		o.Unanswered = true
	}
	switch {
	case o.Delivered:
	case r.Err != nil:
		o.Error = clip(r.Err.Error(), maxErrorText)
	case r.Status != 0:
		o.Error = strings.TrimSpace(fmt.Sprintf("answered %d %s", r.Status, http.StatusText(r.Status)))
	default:
		o.Error = "no answer: " + firstOf(r.Fault, "unknown")
	}
	if s.faults.Outcome != nil {
		o = s.faults.Outcome(a.AttemptInfo, r, o)
	}
	return o
}

// maxErrorText is how much of an error is kept in the log, 1 KiB.
const maxErrorText = 1 << 10

// clip is s as a text column takes it, cut to a number of bytes.
func clip(s string, most int) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "")
	}
	return s
}

// release puts the message of an attempt that came to no end back into the
// queue. It does not count, and stands in the log where there is something to say.
func (s *Sender) release(a *attempt, why string) {
	s.persist(a, func(ctx context.Context, tx Tx) error {
		held, err := leases(tx.QueryContext(ctx, selectLeases+` AND owner = $1 AND id = $2`, s.store.me, a.MessageID))
		if err != nil {
			return err
		}
		return s.free(ctx, tx, held, why)
	})
}

// persist writes down what became of an attempt, and tries again until that
// succeeds or the sender is stopped: an outcome that is lost is an event that
// arrives twice.
func (s *Sender) persist(a *attempt, do func(context.Context, Tx) error) {
	for {
		err := s.store.note(context.WithoutCancel(s.halt), do)
		s.settling.tell(err)
		if err == nil || s.halt.Err() != nil {
			return // stopped: the next process finds the message by this one's lease
		}
		s.pause(a)
	}
}

// pause waits before something that failed is tried again: databases recover.
func (s *Sender) pause(a *attempt) {
	again := make(chan struct{})
	a.againAt.Store(s.clock.Now().Add(pollEvery).UnixNano())
	defer a.againAt.Store(0)
	timer := s.clock.AfterFunc(pollEvery, func() { close(again) })
	defer timer.Stop()
	select {
	case <-again:
	case <-s.halt.Done():
	}
}
