package fakeprovider

import (
	"errors"
	"math"
)

// rubyDepth is max_nesting of JSON.parse and JSON.generate.
const rubyDepth = 100

func rubySerializer() Serializer {
	return Serializer{
		Name:    "ruby",
		Library: "JSON.parse and JSON.generate (gem json before 2.10, which writes large floats otherwise)",
		Runtime: "Ruby: Sinatra, Hanami, plain Rack",
		RawBody: "Rack and Sinatra: request.body.rewind if it may have been read, then request.body.read.",
		respell: style{depth: rubyDepth, printer: func() printer {
			return printer{comma: ",", colon: ":", special: noSpecial, lone: rubyLone, number: func(text string) (string, error) {
				if f := parseFloat(text); !isInteger(text) && math.IsInf(f, 0) {
					return "", errors.New("JSON.generate refuses what is not finite")
				}
				return rubyNumber(text), nil
			}}
		}}.respell,
	}
}

func railsSerializer() Serializer {
	return Serializer{
		Name:    "rails",
		Library: "JSON.parse and ActiveSupport's to_json",
		Runtime: "Ruby on Rails",
		RawBody: "request.raw_post, not params or params.to_json; skip the forgery protection for that action only.",
		respell: style{depth: rubyDepth, printer: func() printer {
			return printer{comma: ",", colon: ":", special: escapeHTML("<>&\u2028\u2029"), lone: rubyLone, number: func(text string) (string, error) {
				if f := parseFloat(text); !isInteger(text) && math.IsInf(f, 0) {
					return "null", nil
				}
				return rubyNumber(text), nil
			}}
		}}.respell,
	}
}

// rubyNumber prints as Integer#to_s, of any size, or Float#to_s.
func rubyNumber(text string) string {
	if isInteger(text) {
		if text == "-0" {
			return "0"
		}
		return text
	}
	return floatStyle{low: -4, high: 15, point: true, exponent: "e", plus: true, pad: 2, fraction: true}.format(parseFloat(text))
}

func rubyLone() (string, error) {
	return "", errors.New("the gem refuses half a surrogate pair, or mends it by chance")
}

// escapeHTML escapes the characters of set by \u and four lower-case digits.
func escapeHTML(set string) func(rune) string {
	table := make(map[rune]string)
	for _, r := range set {
		table[r] = escapeRune(lowerEscape, r)
	}
	return func(r rune) string { return table[r] }
}
