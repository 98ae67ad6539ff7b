package sender

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/conformance/drive/adapter"
	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/conformance/suite"
	"github.com/whconform/whconform/fakeendpoint"
	"github.com/whconform/whconform/reference/signature"
)

// controlName is the endpoint of a scenario's positive control: what must not
// come says something only where what must come has come.
const controlName = "control"

// session records one scenario. Its err is the first thing that went wrong in
// the suite itself or in speaking to the adapter; after it, or when ctx has
// ended, nothing more is done. Methods may be called from several goroutines.
type session struct {
	*Env
	ctx    context.Context
	rec    *suite.Recorder
	id     string
	random *rand.ChaCha8
	wanted func(id string) bool

	mu        sync.Mutex
	err       error
	endpoints []*endpoint
	finished  bool
}

func (e *Env) session(ctx context.Context, rec *suite.Recorder, id string, wanted func(string) bool) *session {
	if wanted == nil {
		wanted = func(string) bool { return true }
	}
	s := &session{Env: e, ctx: ctx, rec: rec, id: id, wanted: wanted}
	if e.Random != nil {
		s.random = e.Random(id)
	}
	for name, value := range e.Declared.Facts() {
		rec.Fact(name, value)
	}
	rec.Fact(factMode, e.Mode)
	spec := e.Profile.Signature
	if text, err := json.Marshal(formOf(spec)); err == nil { // strings and numbers only
		rec.Fact(factForm, string(text))
	}
	rec.Fact(factSignatureHeader, spec.Signature.Name)
	if spec.Timestamp.In == "header" {
		rec.Fact(factTimestampHeader, spec.Timestamp.Name)
	}
	if spec.ID.In == "header" {
		rec.Fact(factIDHeader, spec.ID.Name)
	}
	return s
}

// Facts of the profile that judges need; the latter two are absent where no
// header carries it.
const (
	factSignatureHeader = "signature header"
	factTimestampHeader = "timestamp header"
	factIDHeader        = "id header"
)

func (s *session) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil && err != nil {
		s.err = fmt.Errorf("recording %s: %w", s.id, err)
	}
}

func (s *session) over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil && s.ctx.Err() != nil {
		s.err = fmt.Errorf("recording %s: %w", s.id, context.Cause(s.ctx))
	}
	return s.err != nil
}

// virtual tells whether time costs nothing.
func (s *session) virtual() bool { return s.Mode == Virtual }

// skip records that this scenario cannot try a requirement.
func (s *session) skip(id string, reason evidence.SkipReason, format string, args ...any) {
	s.rec.Skip(id, reason, fmt.Sprintf(format, args...))
}

// call bounds a call to the sender. Its error is the caller's to judge.
func (s *session) call(do func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(s.ctx, s.Bounds.Call, fmt.Errorf("no answer within %v", s.Bounds.Call))
	defer cancel()
	return do(ctx)
}

// must is call for what a sender that offers it has to be able to do: an error
// ends the scenario. It tells whether all went well.
func (s *session) must(what string, do func(context.Context) error) bool {
	if s.over() {
		return false
	}
	if err := s.call(do); err != nil {
		s.fail(fmt.Errorf("%s: %w", what, err))
		return false
	}
	return true
}

// refused tells whether an error is the sender's own answer, rather than an
// adapter that broke down.
func refused(err error) bool {
	var answer *adapter.Error
	return errors.As(err, &answer)
}

// Time.

func (s *session) now() time.Time { return s.Timeline.Now() }

// until lets d of the sender's time pass.
func (s *session) until(d time.Duration) { s.untilTime(s.now().Add(d)) }

func (s *session) untilTime(at time.Time) {
	if s.over() {
		return
	}
	if err := s.Timeline.Until(s.ctx, at); err != nil {
		s.fail(fmt.Errorf("waiting for %s on the sender's clock: %w", at.Format(time.RFC3339), err))
	}
}

// await waits until done tells true, for at most within of the sender's time,
// and tells whether it did.
func (s *session) await(within time.Duration, done func() bool) bool {
	if s.over() {
		return false
	}
	if err := s.Timeline.Await(s.ctx, s.now().Add(within), done); err != nil {
		s.fail(fmt.Errorf("waiting on the sender's clock: %w", err))
		return false
	}
	return done()
}

// settle lets a stretch of the sender's time pass in which nothing more may
// come of what needs no retry.
func (s *session) settle() { s.until(s.Bounds.Settle + s.Declared.Granularity) }

// firstWithin is how long the first attempt of a message is waited for.
func (s *session) firstWithin() time.Duration {
	_, high := s.Declared.window(0)
	return high + s.Bounds.First
}

// within is how long after publishing the conclusion of attempt n is waited
// for, when all before it fail.
func (s *session) within(n int) time.Duration { return s.Declared.until(n) + s.Bounds.First }

// patient tells whether the run waits for d of the sender's time. Where it does
// not, because time is real and the schedule long, the requirements are skipped.
func (s *session) patient(d time.Duration, requirements ...string) bool {
	if s.affords(d) {
		return true
	}
	for _, id := range requirements {
		s.skip(id, evidence.NotDeclared, "by the sender's schedule this takes %v, and its clock cannot be moved; declare a shorter retrySchedule for the run, with defaultSchedule for the real one", shown(d))
	}
	return false
}

// horizon is how long after publishing all attempts of the declared schedule
// are over, however they end.
func (s *session) horizon() time.Duration { return s.Declared.horizon() + s.Bounds.First }

// Endpoints.

// endpoint is an endpoint that the scenario made at the sender, with its
// address at the fake endpoint.
type endpoint struct {
	s         *session
	name      string // in the scenario; labels begin with it
	path      *fakeendpoint.Path
	id        string // the sender's
	eventType string

	mu        sync.Mutex
	keys      []signature.Key // the newest last
	texts     []string        // as the sender gave them, to explain what does not verify
	published int
}

// endpoint makes an address with the script, and an endpoint there with an event
// type of its own. Where that fails the scenario is over.
func (s *session) endpoint(name, script string) *endpoint {
	return s.endpointFor(name, script, nil)
}

// endpointFor is endpoint with a specification that is changed before it is
// sent. Where the change sets other event types, the first one is what publish
// publishes.
func (s *session) endpointFor(name, script string, change func(*drive.EndpointSpec)) *endpoint {
	e := &endpoint{s: s, name: name}
	if s.over() {
		return e
	}
	n := s.ledger.number()
	e.path = s.newPath(fmt.Sprintf("%s/%d", strings.TrimPrefix(s.id, "sender."), n), script)
	if e.path == nil {
		return e
	}
	spec := drive.EndpointSpec{URL: e.path.URL(), EventTypes: []string{s.eventType(n)}}
	if change != nil {
		change(&spec)
	}
	e.create(spec)
	return e
}

// endpointAt makes an endpoint at an address that is not the fake endpoint's.
// The error is the sender's refusal; where the adapter breaks down the scenario
// is over and the error is nil.
func (s *session) endpointAt(name, url string) (*endpoint, error) {
	e := &endpoint{s: s, name: name}
	if s.over() {
		return e, nil
	}
	err := e.tryCreate(drive.EndpointSpec{URL: url, EventTypes: []string{s.eventType(s.ledger.number())}})
	if err != nil && !refused(err) {
		s.fail(fmt.Errorf("creating the endpoint %q: %w", name, err))
		return e, nil
	}
	return e, err
}

// eventType is a type that no other endpoint of the run has, unless the sender
// knows only some.
func (s *session) eventType(n int) string {
	if known := s.Subject.About().EventTypes; len(known) > 0 {
		return known[n%len(known)]
	}
	// Of one length, so that none is the beginning of another.
	return fmt.Sprintf("whconform.s%05d", n)
}

func (s *session) newPath(name, text string) *fakeendpoint.Path {
	script, err := fakeendpoint.ParseScript(text)
	if err != nil {
		s.fail(fmt.Errorf("reading the script of %q: %w", name, err))
		return nil
	}
	path := s.Server.Path(name, script)
	if err := path.Err(); err != nil {
		s.fail(err)
		return nil
	}
	return path
}

func (e *endpoint) create(spec drive.EndpointSpec) {
	if err := e.tryCreate(spec); err != nil {
		e.s.fail(fmt.Errorf("creating the endpoint %q at %s: %w", e.name, spec.URL, err))
	}
}

func (e *endpoint) tryCreate(spec drive.EndpointSpec) error {
	var made drive.Endpoint
	err := e.s.call(func(ctx context.Context) (err error) {
		made, err = e.s.Subject.CreateEndpoint(ctx, spec)
		return err
	})
	if err != nil {
		return err
	}
	e.id = made.ID
	if len(spec.EventTypes) > 0 {
		e.eventType = spec.EventTypes[0]
	}
	e.addSecret(made.Secret)
	e.s.mu.Lock()
	defer e.s.mu.Unlock()
	e.s.endpoints = append(e.s.endpoints, e)
	return nil
}

// unmade tells whether there is nothing to do with the endpoint.
func (e *endpoint) unmade() bool { return e.s.over() || e.id == "" }

// setScript has the address answer otherwise from now on.
func (e *endpoint) setScript(text string) {
	if e.unmade() {
		return
	}
	script, err := fakeendpoint.ParseScript(text)
	if err == nil {
		err = e.path.SetScript(script)
	}
	e.s.fail(err)
}

// Events.

// publish publishes an ordinary event of the endpoint's type and returns the
// id of its message, "" where the sender told none.
func (e *endpoint) publish() string {
	return e.publishEvent(e.s.ordinary(e))
}

// ordinary is an event for the endpoint.
func (s *session) ordinary(e *endpoint) drive.Event {
	return drive.Event{Payload: s.payload(e.eventType, e.label())}
}

// publishBody publishes exact bytes.
func (e *endpoint) publishBody(raw []byte) string { return e.publishEvent(drive.Event{Raw: raw}) }

func (e *endpoint) label() string { return e.s.id + " " + e.name }

// publishEvent publishes an event for the endpoint. What the event leaves out,
// its type, time and endpoint, is filled in. An error ends the scenario.
func (e *endpoint) publishEvent(event drive.Event) string {
	ids, err := e.tryPublish(event)
	if err != nil {
		e.s.fail(fmt.Errorf("publishing to the endpoint %q: %w", e.name, err))
	}
	if len(ids) == 0 {
		return ""
	}
	return ids[0]
}

// tryPublish is publishEvent with the sender's error as the result.
func (e *endpoint) tryPublish(event drive.Event) ([]string, error) {
	if e.unmade() {
		return nil, nil
	}
	if event.Type == "" {
		event.Type = e.eventType
	}
	if event.EndpointIDs == nil {
		event.EndpointIDs = []string{e.id}
	}
	ids, at, err := e.s.publish(event)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	e.published++
	n := e.published
	e.mu.Unlock()
	e.s.rec.Fact(fmt.Sprintf("%s%s #%d", publishedFact, e.name, n), strings.TrimSpace(at.Format(time.RFC3339Nano)+" "+strings.Join(ids, " ")))
	return ids, nil
}

// publishedFact begins the name of a fact: "published: NAME #N", the sender's
// time and the ids of its messages.
const publishedFact = "published: "

// publish publishes an event as it stands, at the present time unless it has
// one, and notes whose its messages are.
func (s *session) publish(event drive.Event) (ids []string, at time.Time, err error) {
	at = s.now()
	if event.At.IsZero() {
		event.At = at
	}
	err = s.call(func(ctx context.Context) (err error) {
		ids, err = s.Subject.Publish(ctx, event)
		return err
	})
	s.ledger.note(s.id, ids)
	return ids, at, err
}

// await waits until n attempts have concluded at the endpoint, for at most
// within of the sender's time, and tells whether they have.
func (e *endpoint) await(n int, within time.Duration) bool {
	if e.unmade() {
		return false
	}
	return e.s.await(within, func() bool {
		_, concluded := e.path.Count()
		return concluded >= n
	})
}

// awaitArrived is await for requests that have come, answered or not.
func (e *endpoint) awaitArrived(n int, within time.Duration) bool {
	if e.unmade() {
		return false
	}
	return e.s.await(within, func() bool {
		arrived, _ := e.path.Count()
		return arrived >= n
	})
}

// awaitMessages is await for n different messages, some of which may come more
// than once.
func (e *endpoint) awaitMessages(n int, within time.Duration) bool {
	return e.awaitSome(n, within, func(*fakeendpoint.Attempt) bool { return true })
}

// awaitDelivered is awaitMessages for those that were answered with a 2xx.
func (e *endpoint) awaitDelivered(n int, within time.Duration) bool {
	return e.awaitSome(n, within, func(a *fakeendpoint.Attempt) bool { return a.OK() })
}

func (e *endpoint) awaitSome(n int, within time.Duration, counts func(*fakeendpoint.Attempt) bool) bool {
	if e.unmade() {
		return false
	}
	return e.s.await(within, func() bool {
		list := slices.DeleteFunc(e.path.Attempts(), func(a fakeendpoint.Attempt) bool { return !counts(&a) })
		ids := map[string]bool{}
		for i := range list {
			if list[i].ID == "" {
				return len(list) >= n // nobody can tell them apart
			}
			ids[list[i].ID] = true
		}
		return len(ids) >= n
	})
}

// control publishes to a healthy endpoint of the scenario's own and tells
// whether the event arrived. Without that what did not come says nothing, and
// the rows are not reached.
func (s *session) control() bool {
	e := s.endpoint(controlName, "200")
	s.rec.Control(controlName + " #1")
	e.publish()
	return e.await(1, s.firstWithin())
}
