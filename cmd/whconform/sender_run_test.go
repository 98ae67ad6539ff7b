package main

import (
	"testing"

	"github.com/whconform/whconform/conformance/evidence"
)

// What a run of the reference sender may leave unjudged, and why. A row that
// moves to another list has to be moved here by hand.
func allowedSenderSkips(clock, profile string) map[evidence.SkipReason][]string {
	// The reference signs by HMAC alone, and the payload of Standard Webhooks has
	// no version that an endpoint could be pinned to.
	allowed := map[evidence.SkipReason][]string{evidence.NotDeclared: {"sender.signature.ed25519", "sender.request.api-version"}}
	if profile == "delivery-envelope" {
		allowed = map[evidence.SkipReason][]string{evidence.NotApplicable: {"sender.signature.ed25519"}}
	}
	if clock == "scaled" {
		// Days do not pass in real time.
		allowed[evidence.NotDeclared] = append(allowed[evidence.NotDeclared],
			"sender.disable.after-days", "sender.disable.notifies", "sender.disable.notifies.early",
			"sender.rotation.overlap-ends", "sender.log.failed-list.kept")
		// A schedule of seconds has no band that a second's granularity shows, and
		// its timeouts are not those that receivers are promised.
		allowed[evidence.NotObservable] = []string{
			"sender.retry.jitter", "sender.timeout.connect", "sender.timeout.connect.fast", "sender.timeout.gives-up.range",
		}
	}
	return allowed
}

// The reference sender is one like any other: behind its adapter, killed,
// doubled, on a clock that is moved and on the real one.
func TestTheReferenceSenderIsConformantOverEveryRow(t *testing.T) {
	for _, tt := range []struct {
		name, clock, profile string
		args                 []string
	}{
		{"as --reference, on a virtual clock", "virtual", "standard-webhooks", []string{"--reference"}},
		{"by its adapter, on a virtual clock", "virtual", "standard-webhooks", []string{"--", "whconform", "reference", "sender", "--adapter"}},
		{"by its adapter, the other profile", "virtual", "delivery-envelope", []string{"--", "whconform", "reference", "sender", "--adapter"}},
		{"by its adapter, in real time", "scaled", "standard-webhooks", []string{"--", "whconform", "reference", "sender", "--adapter"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel() // real time is waited for, and virtual time does not mind
			args := append([]string{"sender", "--format", "json", "--clock", tt.clock, "--profile", tt.profile}, tt.args...)
			r := judged(t, args...)
			if r.Subject.Clock != tt.clock {
				t.Errorf("it was judged by the clock %q, want %q", r.Subject.Clock, tt.clock)
			}
			for i := range r.Results { // on a busy machine it says itself that it cannot tell
				if row := &r.Results[i]; row.ID == "sender.timeout.publish-returns.absolute" && row.SkipReason == evidence.NotObservable {
					row.Outcome = evidence.Info
				}
			}
			conformantButFor(t, r, allowedSenderSkips(tt.clock, tt.profile))
		})
	}
}
