package fakeprovider

import (
	"strconv"
	"strings"
	"time"
)

// newtonsoftDate reads a string as Json.NET does, which takes what looks like a
// date for one (DateParseHandling.DateTime), and writes the date anew: with no
// trailing zeros in the fraction, and with an offset turned into the machine's
// zone, which is taken to be UTC here, as in containers. done says that text is
// the JSON to write.
func newtonsoftDate(s string) (text string, done bool) {
	if t, zone, ok := microsoftDate(s); ok {
		return dateText(t, zone), true
	}
	if len(s) < 19 || len(s) > 40 || s[10] != 'T' {
		return s, false
	}
	t, zone, ok := isoDate(s)
	if !ok {
		return s, false
	}
	return dateText(t, zone), true
}

// dateZone is what .NET calls a DateTimeKind, as it is written.
type dateZone string

const (
	dateUTC         dateZone = "Z"
	dateLocal       dateZone = "+00:00"
	dateUnspecified dateZone = ""
)

func dateText(t time.Time, zone dateZone) string {
	return `"` + t.Format("2006-01-02T15:04:05.9999999") + string(zone) + `"`
}

// isoDate reads yyyy-MM-ddTHH:mm:ss, a fraction of seven digits at most, and
// Z, +hh, +hhmm, +hh:mm or nothing.
func isoDate(s string) (time.Time, dateZone, bool) {
	base, rest := s[:19], s[19:]
	nextDay := base[11:] == "24:00:00"
	if nextDay {
		base = base[:11] + "00:00:00"
	}
	t, err := time.Parse("2006-01-02T15:04:05", base)
	if err != nil {
		return t, "", false
	}
	if nextDay {
		t = t.AddDate(0, 0, 1)
	}
	if strings.HasPrefix(rest, ".") {
		n := 1
		for n < len(rest) && rest[n] >= '0' && rest[n] <= '9' {
			n++
		}
		if n == 1 || n > 8 {
			return t, "", false
		}
		fraction, _ := strconv.Atoi((rest[1:n] + "000000000")[:9]) // nine digits
		if nextDay && fraction != 0 {
			return t, "", false
		}
		t = t.Add(time.Duration(fraction))
		rest = rest[n:]
	}
	switch rest {
	case "":
		return t, dateUnspecified, t.Year() > 0
	case "Z", "z":
		return t, dateUTC, t.Year() > 0
	}
	offset, ok := dateOffset(rest)
	if !ok || t.Year() == 0 {
		return t, "", false
	}
	return clampDate(t.Add(-offset)), dateLocal, true
}

// dateOffset reads +hh, +hhmm or +hh:mm.
func dateOffset(s string) (time.Duration, bool) {
	if s == "" || s[0] != '+' && s[0] != '-' {
		return 0, false
	}
	digits := s[1:]
	if len(digits) == 5 && digits[2] == ':' {
		digits = digits[:2] + digits[3:]
	}
	if len(digits) == 2 {
		digits += "00"
	}
	n, err := strconv.ParseUint(digits, 10, 32)
	if err != nil || len(digits) != 4 {
		return 0, false
	}
	d := time.Duration(n/100)*time.Hour + time.Duration(n%100)*time.Minute
	if s[0] == '-' {
		d = -d
	}
	return d, true
}

// clampDate keeps t within what a DateTime holds.
func clampDate(t time.Time) time.Time {
	low := time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)
	high := time.Date(9999, 12, 31, 23, 59, 59, 999_999_900, time.UTC)
	switch {
	case t.Before(low):
		return low
	case t.After(high):
		return high
	}
	return t
}

// microsoftDate reads /Date(1700000000000)/ and /Date(1700000000000+0200)/,
// whose offset only says that the date is local.
func microsoftDate(s string) (time.Time, dateZone, bool) {
	inner, ok := strings.CutPrefix(s, "/Date(")
	if ok {
		inner, ok = strings.CutSuffix(inner, ")/")
	}
	if !ok || inner == "" {
		return time.Time{}, "", false
	}
	zone := dateUTC
	if i := strings.IndexAny(inner[1:], "+-"); i >= 0 {
		if _, ok := dateOffset(inner[i+1:]); !ok {
			return time.Time{}, "", false
		}
		inner, zone = inner[:i+1], dateLocal
	}
	ms, err := strconv.ParseInt(inner, 10, 64)
	// What a DateTime cannot hold stays a string.
	if err != nil || ms < -62_135_596_800_000 || ms > 253_402_300_799_999 {
		return time.Time{}, "", false
	}
	return time.UnixMilli(ms).UTC(), zone, true
}
