package drive

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/whconform/whconform/conformance/drive/adapter"
	"github.com/whconform/whconform/fakeendpoint"
)

// checkArrives is how long the first attempt is waited for, in real time. It is
// due at once.
const checkArrives = 10 * time.Second

// senderCheck is the check of a sender's adapter.
type senderCheck struct {
	*check
	mock     *clock.Mock // nil: its clock is the real one
	server   *fakeendpoint.Server
	endpoint adapter.CreatedEndpoint
	path     *fakeendpoint.Path
	message  string
}

// sender walks from an endpoint to an attempt and its retry, and asks whatever
// else is declared.
func (k *check) sender(ctx context.Context) {
	s := &senderCheck{check: k}
	var now clock.Clock = clock.New()
	if k.session.Has(adapter.MethodAdvance) {
		s.mock = clock.NewMock()
		s.mock.Set(k.now)
		now = s.mock
	}
	var err error
	s.server, err = fakeendpoint.Start(fakeendpoint.Config{Clock: now, Profile: k.config.Profile})
	if k.broken("fake endpoint", "a port on loopback", err) {
		return
	}
	defer s.server.Close()
	for _, needed := range []string{adapter.MethodCreateEndpoint, adapter.MethodPublish} {
		if !k.session.Has(needed) {
			k.fail(needed, "", "it is not declared", "a sender's adapter answers it: nothing can be sent otherwise")
			return
		}
	}
	k.declared()
	s.create(ctx)
	s.publish(ctx)
	s.arrive(ctx)
	s.advance(ctx)
	s.others(ctx)
}

// declared tells the numbers that the sender is going to be held to.
func (k *check) declared() {
	a := k.session.About
	if a.RetrySchedule == nil {
		k.note("declared", "", "no retrySchedule", fmt.Sprintf("nothing is to be done if the sender retries by the %d attempts of the profile %s; otherwise declare its schedule, jitter and timeout", len(k.config.Profile.Schedule), k.config.Profile.Name))
		return
	}
	numbers := a
	numbers.ProtocolVersion, numbers.Name, numbers.Version, numbers.Capabilities = 0, "", "", nil
	text, _ := json.Marshal(numbers) // numbers and texts always encode
	text = []byte(strings.Replace(string(text), `"protocolVersion":0,"name":"","version":"","capabilities":null,`, "", 1))
	k.ok("declared", "", string(text))
}

func (s *senderCheck) create(ctx context.Context) {
	script, err := fakeendpoint.ParseScript("500,200")
	if s.broken("fake endpoint", "a script", err) {
		return
	}
	s.path = s.server.Path("check", script)
	asked := "an endpoint at " + s.path.URL() + " for the type whconform.check"
	s.try(ctx, adapter.MethodCreateEndpoint, asked, func(ctx context.Context) (string, string, error) {
		e, err := s.session.CreateEndpoint(ctx, adapter.CreateEndpointParams{URL: s.path.URL(), EventTypes: []string{"whconform.check"}})
		if err != nil {
			return "", "", err
		}
		s.secrets.add(e.Secret)
		scheme, err := s.config.Profile.Scheme()
		if err != nil {
			return "", "", err
		}
		key, err := scheme.Key("the endpoint's", e.Secret)
		if err != nil {
			return fmt.Sprintf("the endpoint %.60q with a secret that the profile %s does not know: %v", e.EndpointID, s.config.Profile.Name, err), "answer the secret as its owner is shown it, prefix included; or check by another --profile", nil
		}
		s.path.SetKeys(key)
		s.endpoint = e
		return fmt.Sprintf("the endpoint %.60q and its secret", e.EndpointID), "", nil
	})
}

func (s *senderCheck) publish(ctx context.Context) {
	if s.endpoint.EndpointID == "" {
		return
	}
	s.try(ctx, adapter.MethodPublish, "an event of the type whconform.check", func(ctx context.Context) (string, string, error) {
		p, err := s.session.Publish(ctx, adapter.PublishParams{
			Type: "whconform.check", Timestamp: s.now, Payload: json.RawMessage(`{"type":"whconform.check","data":{"n":1}}`), EndpointIDs: []string{s.endpoint.EndpointID},
		})
		if err != nil {
			return "", "", err
		}
		if len(p.MessageIDs) != 1 {
			return fmt.Sprintf("%d messages", len(p.MessageIDs)), "answer the id of one message for each endpoint that gets the event: there is one for this type", nil
		}
		s.message = p.MessageIDs[0]
		return fmt.Sprintf("the message %.60q", s.message), "", nil
	})
}

// arrive waits for the first attempt.
func (s *senderCheck) arrive(ctx context.Context) {
	const name = "the attempt"
	if s.message == "" {
		s.tell(Step{Name: name, Outcome: StepNotReached})
		return
	}
	waiting, cancel := context.WithTimeout(ctx, s.config.arrives)
	defer cancel()
	asked := "a request to " + s.path.URL()
	if _, err := s.path.Wait(waiting, 1); err != nil {
		came := fmt.Sprintf("none within %v", s.config.arrives)
		for _, stray := range s.server.Strays() {
			came += "; a connection that brought no request: " + stray.Reason
		}
		s.fail(name, asked, came, "send at once what is published. Does it refuse loopback, which initialize allows by allowHosts? Does it wait for a worker that does not run?")
		return
	}
	a := s.path.Attempts()[0]
	switch v := a.Verification; {
	case v.OK() && a.ID != s.message && a.ID != "":
		s.fail(name, asked, fmt.Sprintf("it carries the id %.60q, and event.publish answered %.60q", a.ID, s.message), "answer the id that requests carry")
	case v.OK():
		s.ok(name, asked, fmt.Sprintf("%s, signed with the endpoint's secret", a.Request.Method))
	default:
		s.note(name, asked, fmt.Sprintf("%s, but its signature does not verify: %s, %s", a.Request.Method, v.Rule, v.Detail), "a run judges that; here it may mean that the secret is not the endpoint's, or that the clock is not the one that was set")
	}
}

// advance lets time pass until the retry.
func (s *senderCheck) advance(ctx context.Context) {
	if _, concluded := s.path.Count(); s.message == "" || concluded == 0 {
		s.tell(Step{Name: "the retry", Outcome: StepNotReached})
		return
	}
	if s.mock == nil {
		s.wait(ctx)
		return
	}
	var next time.Time
	stands := func(ctx context.Context, to time.Time) (string, string, error) {
		a, err := s.session.Advance(ctx, to)
		switch {
		case err != nil:
			return "", "", err
		case a.InFlight == nil:
			return "it stands at " + instant(a.Now) + ", and does not tell what is under way", "answer inFlight and next: a run takes minutes without them, and judges delays less exactly", nil
		case a.Next != nil:
			next = *a.Next
			return fmt.Sprintf("it stands at %s, %d under way, the next is due at %s", instant(a.Now), *a.InFlight, instant(next)), "", nil
		}
		return fmt.Sprintf("it stands at %s, %d under way, nothing is due", instant(a.Now), *a.InFlight), "", nil
	}
	s.settle(ctx)
	if !s.try(ctx, adapter.MethodAdvance, "how it stands at "+instant(s.now), func(ctx context.Context) (string, string, error) { return stands(ctx, s.now) }) {
		return
	}
	if next.IsZero() {
		s.fail("the retry", "the next instant, after an answer of 500", "nothing is due", "a message that failed is due again: tell it as next")
		return
	}
	to := next
	s.mock.Set(to)
	if !s.try(ctx, adapter.MethodAdvance, "to go to "+instant(to), func(ctx context.Context) (string, string, error) { return stands(ctx, to) }) {
		return
	}
	s.now = to
	waiting, cancel := context.WithTimeout(ctx, s.config.arrives)
	defer cancel()
	asked := fmt.Sprintf("a second request, %v after the first", to.Sub(s.path.Attempts()[0].Ended))
	if _, err := s.path.Wait(waiting, 2); err != nil {
		s.fail("the retry", asked, "none", "begin what is due by the time asked for before clock.advance is answered")
		return
	}
	s.ok("the retry", asked, "it came")
	s.settle(ctx)
}

// settles is how long a sender may take to note the end of an attempt, in real
// time, when it has the answer.
func (s *senderCheck) settles() time.Duration { return s.config.arrives / 3 }

// settle waits until nothing is under way, as far as the sender tells: it has the
// answer, and may have to make up its books.
func (s *senderCheck) settle(ctx context.Context) {
	for until := time.Now().Add(s.settles()); time.Now().Before(until); {
		a, err := s.session.Advance(ctx, s.now)
		if err != nil || a.InFlight == nil || *a.InFlight == 0 || !s.pause(ctx) {
			return
		}
	}
}

// wait waits for the retry on the real clock, if that takes seconds.
func (s *senderCheck) wait(ctx context.Context) {
	schedule := secondsList(s.session.About.RetrySchedule)
	if len(schedule) < 2 || schedule[1] > s.config.arrives/2 {
		s.note("the retry", "", "it was not waited for, since the clock cannot be moved and the second attempt is not declared to come within "+(s.config.arrives/2).String(),
			"for a run of minutes declare a short retrySchedule, and the one that is shipped as defaultSchedule")
		return
	}
	waiting, cancel := context.WithTimeout(ctx, s.config.arrives)
	defer cancel()
	asked := fmt.Sprintf("a second request, %v after the first, which was answered 500", schedule[1])
	if _, err := s.path.Wait(waiting, 2); err != nil {
		s.fail("the retry", asked, fmt.Sprintf("none within %v", s.config.arrives), "send again what failed, by the schedule that is declared")
		return
	}
	came := s.path.Attempts()
	s.ok("the retry", asked, fmt.Sprintf("it came after %v", came[1].Began.Sub(came[0].Ended).Round(time.Millisecond)))
}

// pause waits a moment, in real time.
func (s *senderCheck) pause(ctx context.Context) bool {
	t := time.NewTimer(probeEvery)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// others asks what else is declared. The endpoint is deleted in the end.
func (s *senderCheck) others(ctx context.Context) {
	id := s.endpoint.EndpointID
	if id == "" || s.message == "" {
		return
	}
	done := func(came string, err error) (string, string, error) { return came, "", err }
	s.try(ctx, adapter.MethodAttempts, "the log of the message", func(ctx context.Context) (string, string, error) {
		log, err := s.session.Attempts(ctx, s.message)
		for until := time.Now().Add(s.settles()); err == nil && time.Now().Before(until); log, err = s.session.Attempts(ctx, s.message) {
			if seen, _ := s.path.Count(); len(log.Attempts) == seen || !s.pause(ctx) {
				break
			}
		}
		if seen, _ := s.path.Count(); err == nil && len(log.Attempts) != seen {
			return fmt.Sprintf("%d attempts, and %d arrived", len(log.Attempts), seen), "log each attempt when it is over", nil
		}
		return done(fmt.Sprintf("%d attempts", len(log.Attempts)), err)
	})
	s.try(ctx, adapter.MethodMessages, "the messages of the endpoint", func(ctx context.Context) (string, string, error) {
		list, err := s.session.Messages(ctx, adapter.MessagesParams{EndpointID: id})
		if err == nil && len(list.Messages) != 1 {
			return fmt.Sprintf("%d messages", len(list.Messages)), "list the endpoint's messages alone, here one", nil
		}
		return done("the message", err)
	})
	s.try(ctx, adapter.MethodNotifications, "what the owner was told", func(ctx context.Context) (string, string, error) {
		list, err := s.session.Notifications(ctx, id)
		return done(fmt.Sprintf("%d notifications", len(list.Notifications)), err)
	})
	s.try(ctx, adapter.MethodMutate, "to change the record of the message", func(ctx context.Context) (string, string, error) {
		return done("it agrees", s.session.Mutate(ctx, s.message))
	})
	s.try(ctx, adapter.MethodResend, "to send the message again", func(ctx context.Context) (string, string, error) {
		return done("it agrees", s.session.Resend(ctx, adapter.ResendParams{MessageID: s.message}))
	})
	s.try(ctx, adapter.MethodRotateSecret, "a new secret", func(ctx context.Context) (string, string, error) {
		r, err := s.session.RotateSecret(ctx, id)
		s.secrets.add(r.Secret)
		if err == nil && r.Secret == s.endpoint.Secret {
			return "the secret that it had", "answer the new one", nil
		}
		return done("another one", err)
	})
	for _, step := range []struct{ method, word string }{
		{adapter.MethodDisableEndpoint, adapter.StatusDisabled}, {adapter.MethodEnableEndpoint, adapter.StatusEnabled}, {adapter.MethodDeleteEndpoint, adapter.StatusDeleted},
	} {
		set := s.try(ctx, step.method, "the endpoint", func(ctx context.Context) (string, string, error) {
			return done("it agrees", s.session.SetEndpoint(ctx, step.method, id))
		})
		if set && step.word != adapter.StatusDeleted { // of one that is gone it may know nothing
			s.status(ctx, step.word)
		}
	}
	if !s.session.Has(adapter.MethodDisableEndpoint) {
		s.status(ctx, adapter.StatusEnabled)
	}
}

// status asks how the endpoint stands.
func (s *senderCheck) status(ctx context.Context, want string) {
	s.try(ctx, adapter.MethodGetEndpoint, "the endpoint, which is to be "+want, func(ctx context.Context) (string, string, error) {
		got, err := s.session.GetEndpoint(ctx, s.endpoint.EndpointID)
		if err == nil && got.Status != want {
			return got.Status, "tell how the endpoint stands now", nil
		}
		return got.Status, "", err
	})
}
