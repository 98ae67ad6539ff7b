package receiver

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/conformance/suite"
	"github.com/whconform/whconform/fakeprovider"
	"github.com/whconform/whconform/reference/signature"
	"github.com/whconform/whconform/reference/wire"
)

// Labels of unharmed deliveries. What begins with controlLabel is never judged
// as a probe.
const (
	controlLabel = "control: a valid delivery"
	afterLabel   = "control: a valid delivery afterwards"
)

// throttleWait bounds how long a Retry-After is obeyed: longer and the run
// would wait for minutes where lowering --rate is the answer.
const throttleWait = 5 * time.Second

// slowest is how many deliveries a second a run is slowed down to at most: with
// fewer it would not end.
const slowest = 5

// session records one scenario. Its err is the first thing that went wrong in
// the suite itself; after it, or when ctx has ended, nothing more is sent.
type session struct {
	*Env
	ctx    context.Context
	rec    *suite.Recorder
	id     string
	random *rand.ChaCha8

	mu  sync.Mutex
	err error
}

func (e *Env) session(ctx context.Context, rec *suite.Recorder, id string) *session {
	s := &session{Env: e, ctx: ctx, rec: rec, id: id, random: e.Random(id)}
	statuses := make([]string, 0, 4)
	for _, status := range e.Profile.Rejections() {
		statuses = append(statuses, strconv.Itoa(status))
	}
	rec.Fact(evidence.FactRejections, strings.Join(statuses, " "))
	rec.Fact(evidence.FactAckTimeout, e.Profile.AckTimeout.String())
	rec.Fact(evidence.FactTolerance, e.tolerance().String())
	rec.Fact(factFast, e.Bounds.Fast.String())
	rec.Fact(factBurst, e.Bounds.Burst.String())
	rec.Fact(factStall, e.Bounds.Stall.String())
	return s
}

// Facts of the run's bounds, as Go durations.
const (
	factFast  = "fast"
	factBurst = "burst"
	factStall = "stall"
)

// tolerance is how old a timestamp may be; 0 where the profile has none.
func (e *Env) tolerance() time.Duration { return e.Profile.Signature.Timestamp.Past }

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

// control sends a valid delivery and tells whether it was accepted. If not,
// what depends on it need not be sent.
func (s *session) control() bool {
	s.rec.Control(controlLabel)
	x := s.deliver(controlLabel)
	return x.OK()
}

// afterwards sends a valid delivery after the probes.
func (s *session) afterwards() { s.deliver(afterLabel) }

// event makes a delivery of a new event, signed with the current secret.
func (s *session) event() fakeprovider.Delivery { return s.eventOf(s.Event.Type) }

func (s *session) eventOf(eventType string) fakeprovider.Delivery {
	id := s.Provider.NewID()
	body, err := s.Event.Render(id, eventType)
	s.fail(err)
	return fakeprovider.Delivery{ID: id, Type: eventType, Keys: []signature.Key{s.Keys.Current}, Body: body}
}

// deliver sends a new event with the alterations and records the exchange.
func (s *session) deliver(label string, changes ...fakeprovider.Alteration) wire.Exchange {
	return s.send(label, s.event(), changes...)
}

// deliverAll sends one delivery for each probe: in turn, or some at a time to a
// receiver that takes long to answer.
func (s *session) deliverAll(probes []probe) {
	atOnce := 1
	if s.Slow {
		atOnce = slowAtOnce
	}
	places := make(chan struct{}, atOnce)
	var sending sync.WaitGroup
	for _, p := range probes {
		places <- struct{}{}
		sending.Go(func() {
			defer func() { <-places }()
			s.deliver(p.label, p.changes...)
		})
	}
	sending.Wait()
}

// send sends a delivery and records the exchange.
func (s *session) send(label string, d fakeprovider.Delivery, changes ...fakeprovider.Alteration) wire.Exchange {
	draft, ok := s.draft(d, changes...)
	if !ok {
		return wire.Exchange{Label: label}
	}
	return s.sendDraft(label, draft)
}

func (s *session) draft(d fakeprovider.Delivery, changes ...fakeprovider.Alteration) (fakeprovider.Draft, bool) {
	if s.over() {
		return fakeprovider.Draft{}, false
	}
	draft, err := s.Provider.Draft(d, changes...)
	s.fail(err)
	return draft, err == nil
}

// sendDraft sends a finished draft, obeys throttling once, and records what
// came in the end.
func (s *session) sendDraft(label string, draft fakeprovider.Draft) wire.Exchange {
	return s.sendTo(s.target(), label, draft)
}

func (s *session) sendTo(to fakeprovider.Target, label string, draft fakeprovider.Draft) wire.Exchange {
	x := s.exchange(to, label, draft)
	if evidence.Throttles(&x) && !s.over() {
		s.rec.Fact("throttled: "+label, fmt.Sprintf("%d, tried again after %v", x.Response.Status, s.slowDown(&x)))
		x = s.exchange(to, label, draft)
	}
	// What was not sent, or was cut short by the end of the run, is no evidence.
	if s.ctx.Err() == nil && (x.Response != nil || x.Fault != "") {
		s.rec.Add(x)
	}
	return x
}

func (s *session) exchange(to fakeprovider.Target, label string, draft fakeprovider.Draft) wire.Exchange {
	if s.over() {
		return wire.Exchange{Label: label}
	}
	if err := s.Limiter.Wait(s.ctx); err != nil {
		// Also before the end of the run, where the wait would outlast it.
		s.fail(fmt.Errorf("%w: %w", suite.ErrOutOfTime, err))
		return wire.Exchange{Label: label}
	}
	return s.Provider.Send(s.ctx, to, draft, label)
}

// slowDown halves the rate for the rest of the run and waits as asked, bounded.
func (s *session) slowDown(x *wire.Exchange) time.Duration {
	s.Limiter.SetLimit(max(s.Limiter.Limit()/2, slowest))
	wait := time.Second
	if text, ok := wire.Get(x.Response.Headers, "Retry-After"); ok {
		if seconds, err := strconv.Atoi(strings.TrimSpace(text)); err == nil && seconds >= 0 {
			wait = time.Duration(min(seconds, 3600)) * time.Second
		}
	}
	wait = min(wait, throttleWait)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.ctx.Done():
	}
	return wait
}

// target is where deliveries go, with the run's extra headers and with the
// provider's timeout as the bound on an answer.
func (s *session) target() fakeprovider.Target { return s.targetOf(s.Subject.Target(0)) }

func (s *session) targetOf(to fakeprovider.Target) fakeprovider.Target {
	to.Headers = append(append([]wire.Header(nil), to.Headers...), s.Extra...)
	if to.Answer == 0 {
		to.Answer = s.Profile.AckTimeout
	}
	return to
}

// skip records that this scenario cannot try a requirement.
func (s *session) skip(id string, reason evidence.SkipReason, format string, args ...any) {
	s.rec.Skip(id, reason, fmt.Sprintf(format, args...))
}
