package sender

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/conformance/evidence"
)

const (
	disableGone        = "sender.disable.gone"
	disableGoneStatus  = "sender.disable.gone.status"
	disableOnlyGone    = "sender.disable.only-gone"
	disableByOwner     = "sender.disable.by-owner"
	disableAfterDays   = "sender.disable.after-days"
	disableNotifies    = "sender.disable.notifies"
	disableEarly       = "sender.disable.notifies.early"
	disableCredentials = "sender.disable.credentials-alert"
	disableReEnable    = "sender.disable.re-enable"
)

func disableRules() []rule {
	return []rule{
		{id: disableGone, record: recordGone, judge: judgeGone},
		{id: disableGoneStatus, use: disableGone, judge: judgeGoneStatus},
		{id: disableOnlyGone, record: recordOnlyGone, judge: judgeOnlyGone},
		{id: disableByOwner, record: recordByOwner, judge: judgeByOwner},
		{id: disableAfterDays, record: recordAfterDays, judge: judgeAfterDays},
		{id: disableNotifies, use: disableAfterDays, judge: judgeNotifies},
		{id: disableEarly, use: disableAfterDays, judge: judgeNotifiesEarly},
		{id: disableCredentials, record: recordCredentials, judge: judgeCredentials},
		{id: disableReEnable, record: recordReEnable, judge: judgeReEnable},
	}
}

// Facts of these scenarios; the endpoint's name follows.
const (
	statusFact  = "status: "               // enabled, disabled or deleted, and the sender's reason
	toldFact    = "notifications: "        // JSON
	actedFact   = "owner acted: "          // when, on the sender's clock
	enabledFact = "enabled again: "        // likewise, and how many events had been published
	enableFact  = "could not be enabled: " // why
)

// noteStatus records how the sender says that an endpoint stands.
func (s *session) noteStatus(e *endpoint) {
	if e.unmade() || !s.Offers(drive.Status) {
		return
	}
	var status drive.EndpointStatus
	if s.must("reading the state of an endpoint", func(ctx context.Context) (err error) {
		status, err = s.Subject.EndpointStatus(ctx, e.id)
		return err
	}) {
		s.rec.Fact(statusFact+e.name, status.Status+" "+status.Reason)
	}
}

// told is a notification as a fact keeps it.
type told struct {
	At   time.Time `json:"at"`
	Kind string    `json:"kind"`
}

// noteTold records what the owner of an endpoint was told.
func (s *session) noteTold(e *endpoint) {
	if e.unmade() || !s.Offers(drive.Notifications) {
		return
	}
	var list []drive.Notification
	if !s.must("reading the notifications of an endpoint", func(ctx context.Context) (err error) {
		list, err = s.Subject.Notifications(ctx, e.id)
		return err
	}) {
		return
	}
	kept := []told{}
	for _, n := range list {
		kept = append(kept, told{n.At, n.Kind})
	}
	text, err := json.Marshal(kept)
	s.fail(err)
	s.rec.Fact(toldFact+e.name, string(text))
}

// toldOf reads what noteTold has recorded.
func toldOf(t *evidence.Transcript, name string) (list []told, looked bool) {
	text, looked := t.Facts[toldFact+name]
	if !looked {
		return nil, false
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		panic(fmt.Sprintf("the notifications of %q cannot be read: %v", name, err))
	}
	return list, true
}

// offer publishes to an endpoint that may be disabled by now: a sender may take
// the event for nobody, hold it, or refuse it.
func (e *endpoint) offer() []string {
	ids, err := e.tryPublish(drive.Event{Payload: e.s.payload(e.eventType, e.label())})
	if err != nil && !refused(err) {
		e.s.fail(fmt.Errorf("publishing to the endpoint %q: %w", e.name, err))
	}
	return ids
}

// watch lets pass the time in which everything that waits for a retry would
// come: the whole schedule, or some steps of it where time is real.
func (s *session) watch() {
	d := s.Declared
	if s.virtual() {
		s.until(s.horizon())
		return
	}
	for n := min(4, d.attemptsAtMost()-1); n > 0; n-- {
		if after := d.begins(n); after <= patienceReal {
			s.until(after + s.Bounds.Settle)
			return
		}
	}
	s.settle()
}

const (
	goneName    = "answers 410 to its third request"
	besideGone  = "answers 200, beside one that is gone"
	goneRequest = 3
)

// recordGone has two messages wait for a retry when a third is answered 410,
// and publishes a fourth.
func recordGone(s *session) {
	if !s.affordsRetry(1, disableGone, disableGoneStatus) || !s.control() {
		return
	}
	e := s.endpoint(goneName, fmt.Sprintf("500*%d,410", goneRequest-1))
	for n := 1; n <= goneRequest; n++ {
		e.publish()
		if !e.await(n, s.firstWithin()) {
			for _, id := range []string{disableGone, disableGoneStatus} {
				s.skip(id, evidence.NotReached, "request %d did not arrive, so that 410 was never answered", n)
			}
			return
		}
	}
	s.writtenDown()
	s.noteStatus(e)
	e.offer()
	beside := s.endpoint(besideGone, "200")
	beside.publish()
	beside.await(1, s.firstWithin())
	s.watch()
}

func recordOnlyGone(s *session) {
	if !s.affordsRetry(1, disableOnlyGone) || !s.control() {
		return
	}
	var all []*endpoint
	for _, status := range onlyGoneStatuses() {
		e := s.endpoint(answering(status), fmt.Sprintf("%d,200", status))
		e.publish()
		all = append(all, e)
	}
	s.await(s.firstWithin(), concluded(1, all...))
	for _, e := range all {
		e.offer()
	}
	// A sender may hold the second event back until the first has been retried. A
	// message that is final after this status is not retried at all.
	s.await(s.within(2), concluded(3, all...))
	s.writtenDown()
	for _, e := range all {
		s.noteStatus(e)
	}
}

// onlyGoneStatuses are failures that a faulty deployment answers.
func onlyGoneStatuses() []int { return []int{400, 401, 404, 500} }

const (
	disabledName = "is disabled by its owner"
	deletedName  = "is deleted by its owner"
	leftName     = "is left as it is"
)

// recordByOwner has three endpoints fail once, of which one is left alone: its
// retry is the control.
func recordByOwner(s *session) {
	s.rec.Control(leftName + " #2")
	if !s.affordsRetry(1, disableByOwner) {
		return
	}
	disabled, deleted, left := s.endpoint(disabledName, "500"), s.endpoint(deletedName, "500"), s.endpoint(leftName, "500,200")
	for _, e := range []*endpoint{disabled, deleted, left} {
		e.publish()
	}
	if !s.await(s.firstWithin(), concluded(1, disabled, deleted, left)) {
		return
	}
	for _, act := range []struct {
		e    *endpoint
		what string
		do   func(context.Context, string) error
	}{{disabled, "disabling an endpoint", s.Subject.DisableEndpoint}, {deleted, "deleting an endpoint", s.Subject.DeleteEndpoint}} {
		if !s.must(act.what, func(ctx context.Context) error { return act.do(ctx, act.e.id) }) {
			return
		}
		s.rec.Fact(actedFact+act.e.name, s.now().Format(time.RFC3339Nano))
		act.e.offer()
	}
	left.await(2, s.within(2))
	s.watch()
}

const (
	onlyFails  = "only fails, with an event every six hours"
	failsAgain = "fails, succeeds once, and fails again, with an event every six hours"

	// publishedEvery is how often.
	// source: requirements §2, sender.disable.after-days.
	publishedEvery = 6 * time.Hour
	// watchedBeyond is how many events are published after the endpoint should
	// have been disabled.
	watchedBeyond = 4
	// disableMost is the longest time until disabling that is tried.
	disableMost = 31 * 24 * time.Hour
)

// recordAfterDays publishes to an endpoint that only fails, and to one that
// succeeds once after four fifths of the time, until both should be disabled.
func recordAfterDays(s *session) {
	after := s.Declared.DisableAfter
	if s.Profile.DisableAfter <= 0 && !s.Declared.declares(factDisableAfter) || after <= 0 {
		s.skipAfterDays(evidence.NotApplicable, "neither the profile nor the sender names a time after which an endpoint is disabled")
		return
	}
	if after > disableMost {
		s.skipAfterDays(evidence.NotObservable, "endpoints are disabled after %v, and a run watches for %v", after, disableMost)
		return
	}
	if !s.control() {
		return
	}
	every := min(publishedEvery, after/16).Round(time.Second)
	if s.Bounds.Sparse {
		every *= 4
	}
	success := (after * 4 / 5).Round(time.Minute)
	first, second := s.endpoint(onlyFails, "500"), s.endpoint(failsAgain, fmt.Sprintf("500*%v,200,500", success))
	publish := func(span time.Duration, to ...*endpoint) {
		for at := time.Duration(0); at < span && !s.over(); at += every {
			for _, e := range to {
				e.offer()
			}
			s.until(every)
		}
	}
	watched := after + watchedBeyond*every
	publish(watched, first, second)
	s.noteTold(first)
	before, _ := first.count()
	first.offer()
	s.settle()
	if now, _ := first.count(); now > before {
		s.skip(disableNotifies, evidence.NotReached, "the endpoint was not disabled; see %s", disableAfterDays)
		return // and so will not the other one be
	}
	publish(success+after+watchedBeyond*every-watched, second)
}

func (s *session) skipAfterDays(reason evidence.SkipReason, format string, args ...any) {
	for _, id := range []string{disableAfterDays, disableNotifies, disableEarly} {
		s.skip(id, reason, format, args...)
	}
}

// count is how many requests have come, and how many attempts are over.
func (e *endpoint) count() (arrived, over int) {
	if e.path == nil {
		return 0, 0
	}
	return e.path.Count()
}

// publishedCount is how many events have been published to the endpoint.
func (e *endpoint) publishedCount() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.published
}

// alertWatched is how long an alert is waited for in virtual time.
const alertWatched = 24 * time.Hour

// recordCredentials has an endpoint work, and then refuse who calls.
func recordCredentials(s *session) {
	if !s.affordsRetry(1, disableCredentials) || !s.control() {
		return
	}
	var all []*endpoint
	for _, status := range []int{401, 403} {
		e := s.endpoint(answering(status), fmt.Sprintf("200,%d", status))
		e.publish()
		all = append(all, e)
	}
	if !s.await(s.firstWithin(), concluded(1, all...)) {
		s.skip(disableCredentials, evidence.NotReached, "the first event did not arrive, so that the endpoint never worked")
		return
	}
	for _, e := range all {
		e.publish()
	}
	s.await(s.within(2), concluded(3, all...))
	if s.virtual() {
		s.until(alertWatched)
	} else {
		s.quiet(2)
	}
	for _, e := range all {
		s.noteTold(e)
	}
}

const (
	goneOnce   = "answers 410 once, and is enabled again"
	failedDays = "fails for days, and is enabled again"
)

// recordReEnable has an endpoint be disabled by a 410 and, where the clock can
// be moved, another one by failing for days. Both are enabled again and fail
// once more.
func recordReEnable(s *session) {
	if !s.affordsRetry(1, disableReEnable) || !s.control() {
		return
	}
	gone := s.endpoint(goneOnce, "410,500,200")
	gone.publish()
	if !gone.await(1, s.firstWithin()) {
		s.skip(disableReEnable, evidence.NotReached, "the first event did not arrive")
		return
	}
	s.recordEnabled(gone)
	after := s.Declared.DisableAfter
	if !s.virtual() || after <= 0 || after > disableMost {
		return
	}
	failing := s.endpoint(failedDays, "500")
	failing.publish()
	s.until(after + time.Hour)
	failing.offer()
	s.settle()
	before, _ := failing.count()
	failing.offer()
	s.settle()
	if now, _ := failing.count(); now > before {
		return // it is not disabled, so it cannot be enabled again; see sender.disable.after-days
	}
	failing.setScript("500,200")
	s.recordEnabled(failing)
}

// recordEnabled enables an endpoint and publishes two events to it, of which one
// fails once: which one is the sender's choice, as older ones may come between.
func (s *session) recordEnabled(e *endpoint) {
	if e.unmade() {
		return
	}
	s.writtenDown()
	err := s.call(func(ctx context.Context) error { return s.Subject.EnableEndpoint(ctx, e.id) })
	if err != nil {
		if !refused(err) {
			s.fail(fmt.Errorf("enabling an endpoint again: %w", err))
		}
		s.rec.Fact(enableFact+e.name, err.Error())
		return
	}
	s.rec.Fact(enabledFact+e.name, fmt.Sprintf("%s %d", s.now().Format(time.RFC3339Nano), e.publishedCount()))
	before, _ := e.count()
	e.offer()
	s.await(s.firstWithin(), func() bool { now, _ := e.count(); return now > before })
	e.offer()
	// The whole time of a retry: how many attempts come is the sender's choice, as
	// older messages may be sent, too.
	s.until(s.within(2))
}
