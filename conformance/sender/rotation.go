package sender

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/whconform/whconform/conformance/evidence"
)

const (
	bothSign    = "sender.rotation.both-sign"
	overlapEnds = "sender.rotation.overlap-ends"
	rotateTwice = "sender.rotation.twice"

	pendingName = "pending" // has a message that waits for its retry when the secret is replaced

	// leastOverlap is how long both secrets sign at least. source: the catalogue.
	leastOverlap = time.Minute
	// retrySoon is how long before it is due the pending retry is when the secret
	// is replaced: within leastOverlap, whatever the schedule.
	retrySoon = 10 * time.Second

	// rotatedFact begins the name of a fact: "rotated: NAME N" is the sender's
	// time when secret N was there.
	rotatedFact = "rotated: "
)

// sender.rotation: a new secret without a lost event.
func rotationRules() []rule {
	return []rule{
		{id: bothSign, record: recordBothSign, judge: all(arrived(plainName, 2, ""), judgeBothSign)},
		{id: overlapEnds, record: recordOverlapEnds, judge: judgeOverlapEnds},
		{id: rotateTwice, record: recordRotateTwice, judge: judgeTwice},
	}
}

// rotate gives the endpoint a new secret and tells whether that went well. A
// refusal of the sender's is its own answer.
func (e *endpoint) rotate() error {
	if e.unmade() {
		return nil
	}
	s := e.s
	var secret string
	err := s.call(func(ctx context.Context) (err error) {
		secret, err = s.Subject.RotateSecret(ctx, e.id)
		return err
	})
	if err != nil {
		return fmt.Errorf("rotating the secret of the endpoint %q: %w", e.name, err)
	}
	e.addSecret(secret)
	s.rec.Fact(fmt.Sprintf("%s%s %d", rotatedFact, e.name, len(e.keysOf())), s.now().Format(time.RFC3339Nano))
	return nil
}

// rotatedAt is when an endpoint's secret n was there; ok is false if it never
// was.
func rotatedAt(t *evidence.Transcript, name string, n int) (at time.Time, ok bool) {
	at, err := time.Parse(time.RFC3339Nano, t.Facts[fmt.Sprintf("%s%s %d", rotatedFact, name, n)])
	return at, err == nil
}

// recordBothSign replaces the secrets of two endpoints that have delivered: one
// with a retry to come, one that gets new events, at once and after a while.
func recordBothSign(s *session) {
	plain, pending := s.endpoint(plainName, "200"), s.endpoint(pendingName, "200,500*2,200")
	plain.publish()
	pending.publish()
	if !plain.await(1, s.firstWithin()) || !pending.await(1, s.firstWithin()) {
		return
	}
	low, high := s.Declared.window(min(1, len(s.Declared.Schedule)-1))
	retries := len(s.Declared.Schedule) > 1 && s.affords(high)
	if retries {
		pending.publish()
		if !pending.await(2, s.firstWithin()) {
			return
		}
		if low > retrySoon {
			s.until(low - retrySoon)
		}
	}
	s.until(s.tick())
	for _, e := range []*endpoint{plain, pending} {
		s.fail(e.rotate())
	}
	plain.publish()
	plain.await(2, s.firstWithin())
	if retries {
		_, third := s.Declared.window(min(2, len(s.Declared.Schedule)-1))
		pending.await(3, high+s.Bounds.First)
		if s.virtual() {
			pending.await(4, third+s.Declared.Timeout+s.Bounds.First)
		}
	}
	// Once more in the middle of the least overlap: caches are dropped by then.
	if s.virtual() {
		s.until(leastOverlap / 2)
		plain.publish()
		plain.await(3, s.firstWithin())
	}
}

// tick is time enough to tell an attempt from before from one after.
func (s *session) tick() time.Duration {
	if s.virtual() {
		return time.Second
	}
	return 20 * time.Millisecond
}

// judgeBothSign expects both secrets on each attempt from the rotation on, for
// as long as the overlap that was declared, or the least that is asked for.
func judgeBothSign(t *evidence.Transcript) []evidence.Finding {
	d := declaredOf(t)
	overlap := leastOverlap
	if d.declares(factOverlap) {
		overlap = max(overlap, d.RotationOverlap-d.Granularity)
	}
	var findings []evidence.Finding
	for _, name := range []string{plainName, pendingName} {
		at, ok := rotatedAt(t, name, 2)
		if !ok {
			continue
		}
		pending := publishedBefore(t, name, at)
		for _, a := range attempts(t, name) {
			if a.Began.Before(at) || a.Began.After(at.Add(overlap)) || signedBy(&a, "secret 1", "secret 2") {
				continue
			}
			what := "a new event"
			if slices.Contains(pending, a.ID) {
				what = "a retry of an event from before"
			}
			findings = append(findings, finding(
				fmt.Sprintf("%s, %v after the secret was replaced", what, shown(a.Began.Sub(at))), "a signature by the old and one by the new secret", signers(&a),
				rotationCause(&a, what), a))
		}
	}
	return findings
}

// publishedBefore are the ids of messages that were published before an instant.
func publishedBefore(t *evidence.Transcript, name string, at time.Time) []string {
	var ids []string
	for _, p := range published(t, name) {
		if p.At.Before(at) {
			ids = append(ids, p.IDs...)
		}
	}
	return ids
}

func signedBy(a *attempt, labels ...string) bool {
	return !slices.ContainsFunc(labels, func(l string) bool { return !slices.Contains(a.By, l) })
}

// signers says which secrets sign an attempt.
func signers(a *attempt) string {
	if len(a.By) == 0 {
		got, _ := a.unverified()
		return got
	}
	return "it is signed by " + strings.Join(a.By, ", ") + " alone"
}

func rotationCause(a *attempt, what string) string {
	switch {
	case signedBy(a, "secret 1"):
		return "The secrets of an endpoint that has delivered are kept in a cache, and the rotation does not reach it."
	case signedBy(a, "secret 2") && what == "a new event":
		return "The new secret replaces the old one at once, or one token only is written."
	case signedBy(a, "secret 2"):
		return "Pending retries are signed by the newest secret alone."
	}
	return "The tokens are not joined as the profile says, or one of them replaces the other."
}

// recordOverlapEnds lets the overlap pass.
func recordOverlapEnds(s *session) {
	e := s.endpoint(plainName, "200")
	s.rec.Control(plainName + " #1")
	e.publish()
	if !e.await(1, s.firstWithin()) {
		return
	}
	s.fail(e.rotate())
	s.until(s.Declared.RotationOverlap + s.Declared.Granularity + s.Bounds.Settle)
	e.publish()
	e.await(2, s.firstWithin())
}

func judgeOverlapEnds(t *evidence.Transcript) []evidence.Finding {
	d := declaredOf(t)
	list := attempts(t, plainName)
	at, _ := rotatedAt(t, plainName, 2)
	if len(list) < 2 {
		return []evidence.Finding{finding("an event after the overlap", "1 attempt", "none came", "", list...)}
	}
	a := list[len(list)-1]
	sent := fmt.Sprintf("an event %v after the secret was replaced; the overlap is %v", shown(a.Began.Sub(at)), d.RotationOverlap)
	switch {
	case signedBy(&a, "secret 1"):
		return []evidence.Finding{finding(sent, "a signature by the new secret alone", "the old secret signs still", "The old secret has no expiry, or it is looked at when the secret is read into a cache only.", a)}
	case !signedBy(&a, "secret 2"):
		return []evidence.Finding{finding(sent, "a signature by the new secret", signers(&a), "The new secret is not used.", a)}
	}
	return nil
}

// recordRotateTwice replaces a secret twice within the overlap.
func recordRotateTwice(s *session) {
	e := s.endpoint(plainName, "200")
	s.rec.Control(plainName + " #1")
	e.publish()
	if !e.await(1, s.firstWithin()) {
		return
	}
	s.fail(e.rotate())
	s.until(min(retrySoon, s.Bounds.Settle))
	switch err := e.rotate(); {
	case refused(err):
		s.skip(rotateTwice, evidence.NotApplicable, "a second rotation within the overlap is refused: %s", oneLine(err.Error()))
		return
	case err != nil:
		s.fail(err)
		return
	}
	e.publish()
	e.await(2, s.firstWithin())
}

func judgeTwice(t *evidence.Transcript) []evidence.Finding {
	list := attempts(t, plainName)
	const sent, expected = "an event after two rotations within the overlap", "signatures by the two newest secrets"
	if len(list) < 2 {
		return []evidence.Finding{finding(sent, "1 attempt", "none came", "", list...)}
	}
	a := list[len(list)-1]
	if signedBy(&a, "secret 2", "secret 3") {
		return nil
	}
	cause := "The newest secret alone signs after a second rotation."
	switch {
	case signedBy(&a, "secret 1", "secret 3"):
		cause = "One place for the previous secret keeps the first one, and drops the one in between."
	case !signedBy(&a, "secret 3"):
		cause = "The second new secret is not used."
	}
	return []evidence.Finding{finding(sent, expected, signers(&a), cause, a)}
}
