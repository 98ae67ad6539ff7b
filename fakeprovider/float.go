package fakeprovider

import (
	"math"
	"strconv"
	"strings"
)

// floatStyle is how a library writes a floating-point number. All of them take
// the shortest digits that read back as the same number; they differ in when
// they change to the exponent form, and in its looks.
type floatStyle struct {
	// The fixed form is written for numbers d × 10^e, 1 ≤ d < 10, with
	// low ≤ e < high.
	low, high int
	point     bool   // "1.0" and "1.0e+20" rather than "1" and "1e+20"
	bare      bool   // with point: the fixed form does without it all the same
	exponent  string // "e" or "E"
	plus      bool   // a sign before positive exponents
	pad       int    // digits of the exponent at least
	fraction  bool   // the fixed form is also written when digits stand after the point
	two       bool   // where one digit would do, the two nearest to the number: 4.9E-324 rather than 5.0E-324
}

// format writes a finite number.
func (s floatStyle) format(f float64) string {
	if f == 0 {
		out := "0"
		if s.point && !s.bare {
			out = "0.0"
		}
		if math.Signbit(f) {
			return "-" + out
		}
		return out
	}
	sign := ""
	if f < 0 {
		sign, f = "-", -f
	}
	mantissa, e, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, 64), "e")
	if s.two && len(mantissa) == 1 {
		mantissa, e, _ = strings.Cut(strconv.FormatFloat(f, 'e', 1, 64), "e")
	}
	exp, _ := strconv.Atoi(e) // FormatFloat's own
	digits := strings.Replace(mantissa, ".", "", 1)
	if s.two {
		digits = digits[:1] + strings.TrimRight(digits[1:], "0")
	}
	if exp >= s.low && exp < s.high || s.fraction && exp >= 0 && exp+1 < len(digits) {
		return sign + s.fixed(digits, exp)
	}
	return sign + s.scientific(digits, exp)
}

func (s floatStyle) fixed(digits string, exp int) string {
	switch {
	case exp < 0:
		return "0." + strings.Repeat("0", -exp-1) + digits
	case exp+1 < len(digits):
		return digits[:exp+1] + "." + digits[exp+1:]
	}
	out := digits + strings.Repeat("0", exp+1-len(digits))
	if s.point && !s.bare {
		out += ".0"
	}
	return out
}

func (s floatStyle) scientific(digits string, exp int) string {
	out := digits[:1]
	switch {
	case len(digits) > 1:
		out += "." + digits[1:]
	case s.point:
		out += ".0"
	}
	out += s.exponent
	switch {
	case exp < 0:
		out += "-"
		exp = -exp
	case s.plus:
		out += "+"
	}
	text := strconv.Itoa(exp)
	return out + strings.Repeat("0", max(0, s.pad-len(text))) + text
}
