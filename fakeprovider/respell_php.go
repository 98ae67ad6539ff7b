package fakeprovider

import (
	"errors"
	"math"
	"strconv"
)

func phpSerializer() Serializer {
	return Serializer{
		Name:    "php",
		Library: "json_decode($body, true) and json_encode",
		Runtime: "PHP: Laravel, Symfony, WordPress",
		RawBody: "file_get_contents('php://input'); Laravel and Symfony: $request->getContent(), not $request->all() or toArray().",
		respell: style{depth: 512, printer: func() printer {
			return printer{comma: ",", colon: ":", special: phpSpecial, number: phpNumber, list: phpList, lone: func() (string, error) {
				return "", errors.New("json_decode refuses half a surrogate pair")
			}}
		}}.respell,
	}
}

// phpSpecial escapes the slash and everything that is not ASCII.
func phpSpecial(r rune) string {
	switch {
	case r == '/':
		return `\/`
	case r > 0x7f && !isHighSurrogate(r) && !isLowSurrogate(r):
		return escapeRune(lowerEscape, r)
	}
	return ""
}

// phpNumber prints integers of 64 bits as they are and all else as a float with
// serialize_precision -1, the default since PHP 7.1; without
// JSON_PRESERVE_ZERO_FRACTION 1.0 becomes 1.
func phpNumber(text string) (string, error) {
	if isInteger(text) {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return strconv.FormatInt(n, 10), nil
		}
	}
	f := parseFloat(text)
	if math.IsInf(f, 0) {
		return "", errors.New("json_encode refuses what is not finite")
	}
	return floatStyle{low: -4, high: 17, point: true, bare: true, exponent: "e", plus: true}.format(f), nil
}

// phpList tells whether an object comes back as a list: its names are 0, 1, 2 …
// in order, or it has none. To PHP both are arrays.
func phpList(members []member) bool {
	for i, m := range members {
		if m.name != strconv.Itoa(i) {
			return false
		}
	}
	return true
}
