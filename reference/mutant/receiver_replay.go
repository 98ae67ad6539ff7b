package mutant

import (
	"crypto/hmac"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/whconform/whconform/reference/signature"
)

// replayMutants break receiver.replay.*: they mistake the timestamp.
func replayMutants() []Mutant {
	const (
		stale     = "receiver.replay.rejects-stale"
		future    = "receiver.replay.rejects-future"
		small     = "receiver.replay.accepts-small-skew"
		skew      = "receiver.replay.accepts-skew"
		malformed = "receiver.replay.rejects-malformed-timestamp"
	)
	tolerance := func(past, future time.Duration) maker {
		return spec(func(s *signature.Spec) { s.Timestamp.Past, s.Timestamp.Future = past, future })
	}
	const normal = 5 * time.Minute
	return []Mutant{
		{
			Name: "never-grows-old", Doc: "It looks only whether the timestamp lies ahead.",
			Fails: []string{stale}, New: tolerance(0, normal),
		},
		{
			Name: "takes-tomorrow", Doc: "It takes timestamps up to a day ahead.",
			Fails: []string{future}, New: tolerance(normal, 24*time.Hour),
		},
		{
			Name: "ignores-the-future", Doc: "It looks only whether the timestamp is old, so milliseconds pass as a date far ahead.",
			Fails: []string{future, malformed}, New: tolerance(normal, 0),
		},
		{
			Name: "tolerates-an-hour", Doc: "Its tolerance is an hour.",
			Fails: []string{stale, future}, New: tolerance(time.Hour, time.Hour),
		},
		{
			Name: "tolerates-two-minutes", Doc: "Its tolerance is two minutes.",
			Fails: []string{skew}, New: tolerance(2*time.Minute, 2*time.Minute),
		},
		{
			Name: "tolerates-no-delay", Doc: "Its tolerance is four seconds.",
			// An event that comes after a later one comes late.
			Fails: []string{small, skew, "receiver.order.accepts-out-of-order"},
			New:   tolerance(4*time.Second, 4*time.Second),
		},
		{
			Name: "tolerates-no-fast-clock", Doc: "It refuses every timestamp that lies ahead of its own clock.",
			Fails: []string{small, skew}, New: tolerance(normal, time.Second),
		},
		{
			Name: "takes-any-word-for-a-time", Doc: "A timestamp that is no number becomes NaN, which is neither too old nor too new.",
			Fails: []string{malformed},
			New: reference(verifying(func(v check) error {
				if v.rule() == signature.RuleMalformedTimestamp && v.signed() {
					return nil
				}
				return v.right()
			})),
		},
		{
			Name: "takes-milliseconds", Doc: "It guesses from the size of a timestamp whether it is in milliseconds.",
			Fails: []string{malformed},
			New: reference(verifying(func(v check) error {
				ms, err := strconv.ParseInt(v.timestamp(), 10, 64)
				if err == nil && v.signed() && v.now.Sub(time.UnixMilli(ms)).Abs() < normal {
					return nil
				}
				return v.right()
			})),
		},
		{
			Name: "throws-at-a-timestamp", Doc: "A timestamp that is no number meets an error that it does not catch.",
			Fails: []string{malformed},
			New: reference(verifying(func(v check) error {
				if v.rule() == signature.RuleMalformedTimestamp {
					panic("invalid literal for int() with base 10")
				}
				return v.right()
			})),
		},
	}
}

// signed tells whether one of the signatures is right for the request as it
// stands, whatever its timestamp says.
func (v check) signed() bool {
	want := v.expected()
	return slices.ContainsFunc(v.signatures(), func(token string) bool {
		got, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(token, "v1,"))
		return err == nil && hmac.Equal(got, want)
	})
}
