package signature

import (
	"strconv"
	"time"
)

// timestampDigits bounds a timestamp in s or ms: any number of 18 digits fits
// an int64, and so does its distance from any clock.
const timestampDigits = 18

// appendTimestamp appends the timestamp of in as the request carries it.
func (s *scheme) appendTimestamp(dst []byte, in *Input) []byte {
	if in.Timestamp != "" {
		return append(dst, in.Timestamp...)
	}
	switch s.spec.Timestamp.Unit {
	case "ms":
		return strconv.AppendInt(dst, in.Time.UnixMilli(), 10)
	case "iso8601", "rfc3339":
		return in.Time.UTC().AppendFormat(dst, time.RFC3339)
	}
	return appendSeconds(dst, in.Time.Unix())
}

// appendSeconds appends n in decimal. Unix seconds have ten digits from 2001 to
// 2286; written where they belong they cost two thirds of what strconv takes,
// which formats a number of any length elsewhere and copies it.
func appendSeconds(dst []byte, n int64) []byte {
	if n < 1e9 || n >= 1e10 {
		return strconv.AppendInt(dst, n, 10)
	}
	high, low := uint32(n/1e5), uint32(n%1e5)
	return append(dst,
		digit(high/1e4), digit(high/1e3), digit(high/1e2), digit(high/10), digit(high),
		digit(low/1e4), digit(low/1e3), digit(low/1e2), digit(low/10), digit(low))
}

// digit is the last digit of n.
func digit(n uint32) byte { return '0' + byte(n%10) }

// parseDigits reads a timestamp in whole units. There is one spelling for each
// number: a signature covers the text, and a second spelling of the same time
// is either somebody's bug or somebody's trick.
func parseDigits(text string) (int64, bool) {
	if text == "" || len(text) > timestampDigits || (text[0] == '0' && len(text) > 1) {
		return 0, false
	}
	var n int64
	for i := 0; i < len(text); i++ {
		d := text[i] - '0' // wraps around below '0'
		if d > 9 {
			return 0, false
		}
		n = n*10 + int64(d)
	}
	return n, true
}

// window is a tolerance in the timestamp's own unit, worked out once: three
// divisions would cost as much as reading the timestamp.
type window struct {
	past, future int64
	second       int64 // how many of the unit make a second
}

func (t *Timestamp) window() window {
	second := int64(1)
	if t.Unit == "ms" {
		second = 1000
	}
	unit := time.Second / time.Duration(second)
	return window{int64(t.Past / unit), int64(t.Future / unit), second}
}

// checkTimestamp refuses text that is no timestamp in the scheme's unit, or
// one too far from now.
func (s *scheme) checkTimestamp(text string, now time.Time) *Refusal {
	switch s.spec.Timestamp.Unit {
	case "iso8601", "rfc3339":
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return refuse(RuleMalformedTimestamp, "want a date like 2026-01-02T15:04:05Z, got %s", quote(text))
		}
		return s.judge(now.Unix() - at.Unix())
	case "ms":
		n, ok := parseDigits(text)
		if !ok {
			return refuse(RuleMalformedTimestamp, "want milliseconds since 1970 in digits, got %s", quote(text))
		}
		return s.judge(now.UnixMilli() - n)
	}
	n, ok := parseDigits(text)
	if !ok {
		return refuse(RuleMalformedTimestamp, "want seconds since 1970 in digits, got %s", quote(text))
	}
	return s.judge(now.Unix() - n)
}

// judge compares an age, in the timestamp's unit, with the tolerance.
func (s *scheme) judge(age int64) *Refusal {
	t, w := &s.spec.Timestamp, &s.window
	switch {
	case t.Past > 0 && age > w.past:
		return refuse(RuleStale, "%d s old, at most %v is accepted", age/w.second, t.Past)
	case t.Future > 0 && -age > w.future:
		return refuse(RuleFuture, "%d s ahead, at most %v is accepted", -age/w.second, t.Future)
	}
	return nil
}
