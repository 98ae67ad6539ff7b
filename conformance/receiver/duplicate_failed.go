package receiver

import (
	"fmt"
	"strconv"
	"time"

	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/conformance/evidence"
	fp "github.com/whconform/whconform/fakeprovider"
)

const (
	failedIsNotLost = "receiver.duplicate.failed-is-not-lost"

	failedEvent = "an event whose processing failed once"
	failedCopy  = "an event delivered again after its processing had failed"

	factWaited = "waited: " // + what was sent: for how long, where it was in vain
)

// recordFailed lets the processing of an event fail once. Whether the receiver
// works before its answer and says 5xx, or afterwards and says 2xx, is its own
// choice; what counts is what becomes of the event, and of the copy that the
// provider, or somebody who asks for it, sends.
func recordFailed(s *session) {
	if !s.control() || s.observerBroken(failedIsNotLost) {
		return
	}
	d := s.event()
	if err := s.Subject.FailOnce(s.ctx, d.ID); err != nil {
		if !s.over() {
			s.rec.Break(failedIsNotLost, fmt.Errorf("making the processing of an event fail: %w", err))
		}
		return
	}
	if x := s.send("control: "+failedEvent, d); x.OK() {
		c := s.became(failedEvent, d.ID, s.Bounds.Retry, func(c drive.Count) bool { return c.N > 0 || c.Failed })
		if c.N > 0 {
			return // a copy of it is like any other now
		}
	}
	if x := s.send("a copy, signed anew", d, fp.At(time.Second)); x.OK() {
		s.became(failedCopy, d.ID, s.Bounds.Process, func(c drive.Count) bool { return c.N > 0 })
	}
}

// became waits until enough is known of an event, or the bound is over, and
// records its count.
func (s *session) became(what, event string, bound time.Duration, enough func(drive.Count) bool) drive.Count {
	if s.over() {
		return drive.Count{}
	}
	c, err := drive.AwaitCount(s.ctx, s.Clock, s.Subject, event, bound, enough)
	switch {
	case s.over():
	case err != nil:
		s.rec.Break(failedIsNotLost, fmt.Errorf("asking what became of this: %s: %w", what, err))
	default:
		s.rec.Fact(factProcessed+what, strconv.Itoa(c.N))
		s.rec.Fact(factWaited+what, bound.String())
		if c.Failed {
			s.rec.Fact(factFailed+what, "yes")
		}
	}
	return c
}

// judgeFailed finds an event that was acknowledged and given up without a word,
// and a copy that was taken for one of an event that is done.
func judgeFailed(t *evidence.Transcript) []evidence.Finding {
	return append(
		vanished(t, failedEvent, t.Facts[factFailed+failedEvent] != "", "processed later, or on a list of failed ones",
			"The error is swallowed: the event is marked as done before, or though, its work failed."),
		vanished(t, failedCopy, false, "processed",
			"The id is remembered although the work on it failed, so the copy counts as one of an event that is done.")...)
}

// vanished finds that an event had no effect, unless it is listed or was not
// acknowledged.
func vanished(t *evidence.Transcript, what string, isListed bool, expected, cause string) []evidence.Finding {
	n, counted := t.Facts[factProcessed+what]
	if !counted || n != "0" || isListed {
		return nil
	}
	got := "never processed, within " + t.Facts[factWaited+what]
	if t.Facts[factFailed+what] != "" {
		got = "still on the list of failed ones after " + t.Facts[factWaited+what]
	}
	return []evidence.Finding{{Sent: what, Expected: expected, Got: got, Cause: cause}}
}
