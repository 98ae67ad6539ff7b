package fakeprovider

import (
	"errors"
	"math"
	"strings"
)

// pythonDepth is where CPython's recursion limit of 1000 ends json.loads and
// json.dumps, the caller's own frames allowed for.
const pythonDepth = 900

// pythonDigits is the bound on integers that int() reads from text since
// CPython 3.11 (sys.int_info.default_max_str_digits).
const pythonDigits = 4300

func pythonSerializer() Serializer {
	return Serializer{
		Name:    "python",
		Library: "json.loads and json.dumps",
		Runtime: "Python: Django, Flask, AWS Lambda",
		RawBody: "Django: request.body; Flask: request.get_data() before anything reads request.json; Lambda: event['body'], decoded from base64 where isBase64Encoded says so.",
		respell: style{depth: pythonDepth, printer: func() printer {
			return printer{comma: ", ", colon: ": ", special: escapeNonASCII(lowerEscape, ""), number: pythonNumber}
		}}.respell,
	}
}

func pythonCompactSerializer() Serializer {
	return Serializer{
		Name:    "python-compact",
		Library: "json.dumps(separators=(',', ':'), ensure_ascii=False), as Starlette's JSONResponse prints",
		Runtime: "Python: FastAPI, Starlette",
		RawBody: "FastAPI and Starlette: take request: Request and await request.body(); a Pydantic model or dict parameter hands over the parsed copy.",
		respell: style{depth: pythonDepth, printer: func() printer {
			return printer{comma: ",", colon: ":", special: noSpecial, number: pythonFinite, lone: func() (string, error) {
				return "", errors.New("half a surrogate pair cannot be encoded")
			}}
		}}.respell,
	}
}

// pythonNumber prints as str() of an int, which has any size, or repr() of a
// float.
func pythonNumber(text string) (string, error) {
	if isInteger(text) {
		if len(strings.TrimPrefix(text, "-")) > pythonDigits {
			return "", errors.New("an integer longer than Python reads")
		}
		if text == "-0" {
			return "0", nil
		}
		return text, nil
	}
	f := parseFloat(text)
	switch {
	case math.IsInf(f, 1):
		return "Infinity", nil
	case math.IsInf(f, -1):
		return "-Infinity", nil
	}
	s := floatStyle{low: -4, high: 16, exponent: "e", plus: true, pad: 2}
	// repr gives a point to the fixed form only: 1.0, but 1e+16.
	out := s.format(f)
	if !strings.ContainsAny(out, ".e") {
		out += ".0"
	}
	return out, nil
}

// pythonFinite is pythonNumber where allow_nan=False is set.
func pythonFinite(text string) (string, error) {
	if !isInteger(text) && math.IsInf(parseFloat(text), 0) {
		return "", errors.New("a number out of range")
	}
	return pythonNumber(text)
}

// escapeNonASCII escapes everything beyond printable ASCII by format, and the
// characters of more.
func escapeNonASCII(format, more string) func(rune) string {
	return func(r rune) string {
		if r > 0x7e || strings.ContainsRune(more, r) {
			return escapeRune(format, r)
		}
		return ""
	}
}
