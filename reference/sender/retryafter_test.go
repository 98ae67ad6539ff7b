package sender

import (
	"math"
	"net/http"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestRetryAfterIsReadInBothForms(t *testing.T) {
	now := time.Date(2026, 11, 14, 10, 0, 0, 0, time.UTC)
	none := time.Duration(0)
	for name, c := range map[string]struct {
		value string
		want  time.Duration
	}{
		"seconds":                     {"600", 10 * time.Minute},
		"one second":                  {"1", time.Second},
		"blanks around it":            {" \t30 ", 30 * time.Second},
		"leading zeros":               {"0010", 10 * time.Second},
		"a billion seconds":           {"1000000000", 1e9 * time.Second},
		"more than a Duration":        {"10000000000", math.MaxInt64},
		"more than an integer":        {"99999999999999999999999999", math.MaxInt64},
		"a date":                      {"Sat, 14 Nov 2026 10:10:00 GMT", 10 * time.Minute},
		"a date of RFC 850":           {"Saturday, 14-Nov-26 10:10:00 GMT", 10 * time.Minute},
		"a date of asctime":           {"Sat Nov 14 10:10:00 2026", 10 * time.Minute},
		"a date far ahead":            {"Fri, 31 Dec 9999 23:59:59 GMT", math.MaxInt64},
		"nothing":                     {"", none},
		"zero":                        {"0", none},
		"negative":                    {"-5", none},
		"a sign":                      {"+5", none},
		"a fraction":                  {"1.5", none},
		"an exponent":                 {"1e3", none},
		"hex":                         {"0x10", none},
		"a unit":                      {"10s", none},
		"words":                       {"in a moment", none},
		"two numbers":                 {"5, 10", none},
		"the present":                 {"Sat, 14 Nov 2026 10:00:00 GMT", none},
		"a past date":                 {"Sat, 14 Nov 2026 09:59:59 GMT", none},
		"a date that does not exist":  {"Sat, 31 Nov 2026 10:10:00 GMT", none},
		"a date in ISO 8601":          {"2026-11-14T10:10:00Z", none},
		"digits of another script":    {"１０", none},
		"a text without end":          {string(make([]byte, 1<<20)), none},
		"a line feed inside a number": {"1\n0", none},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := RetryAfter(c.value, now)
			if got != c.want || ok != (c.want > 0) {
				t.Errorf("RetryAfter(%.40q) = %v, %v, want %v", c.value, got, ok, c.want)
			}
		})
	}
}

func TestRetryAfterReadsWhatItsFormsWrite(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "now"), 0).UTC()
		n := rapid.Int64Range(1, 1e9).Draw(t, "seconds")
		want := time.Duration(n) * time.Second
		if got, ok := RetryAfter(strconv.FormatInt(n, 10), now); got != want || !ok {
			t.Errorf("seconds: %v, %v, want %v", got, ok, want)
		}
		if got, ok := RetryAfter(now.Add(want).Format(http.TimeFormat), now); got != want || !ok {
			t.Errorf("date: %v, %v, want %v", got, ok, want)
		}
	})
}

func FuzzRetryAfter(f *testing.F) {
	for _, seed := range []string{"0", "600", "-1", "Sat, 14 Nov 2026 10:10:00 GMT", "1e9", "Sat Nov  4 10:10:00 2026"} {
		f.Add(seed)
	}
	now := time.Date(2026, 11, 14, 10, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, value string) {
		if wait, ok := RetryAfter(value, now); ok != (wait > 0) {
			t.Errorf("RetryAfter(%q) = %v, %v", value, wait, ok)
		}
	})
}
