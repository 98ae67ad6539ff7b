package sender

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxRetryAfterText is how much text a Retry-After may have, 64 bytes: the
// longest form of an HTTP date has 33, and no number worth following has more.
const maxRetryAfterText = 64

// RetryAfter reads the value of a Retry-After header: seconds, or an HTTP date,
// of which the time from now on is returned. It is a stranger's wish, so what
// does not parse, what lies in the past and what is not more than nothing is no
// wish at all, and ok is false. A wish of any length is returned as it is, up to
// what a Duration holds; [Policy.Next] caps it.
//
// source: RFC 9110 §10.2.3.
func RetryAfter(value string, now time.Time) (wait time.Duration, ok bool) {
	value = strings.Trim(value, " \t")
	if value == "" || len(value) > maxRetryAfterText {
		return 0, false
	}
	if strings.Trim(value, "0123456789") == "" {
		seconds, err := strconv.ParseInt(value, 10, 64)
		if err != nil || seconds > int64(math.MaxInt64/time.Second) {
			return math.MaxInt64, true // digits only, so it is too large a number
		}
		return time.Duration(seconds) * time.Second, seconds > 0
	}
	at, err := http.ParseTime(value)
	if err != nil || !at.After(now) {
		return 0, false
	}
	return at.Sub(now), true // Sub stops at the largest Duration by itself
}
