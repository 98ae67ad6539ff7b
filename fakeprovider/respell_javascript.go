package fakeprovider

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

func javascriptSerializer() Serializer {
	return Serializer{
		Name:    "javascript",
		Library: "JSON.parse and JSON.stringify",
		Runtime: "JavaScript: Node, Deno, Bun, edge workers",
		RawBody: "Express: express.raw({type: '*/*'}) on the webhook's route, before express.json(), gives req.body as a Buffer; fetch-style handlers: await request.text(), not request.json().",
		respell: style{
			// The recursion of JSON.stringify ends at the stack's size, some
			// thousands of levels; parsing has no bound.
			depth:   5000,
			reads:   decodeReplacing,
			printer: javascriptPrinter,
		}.respell,
	}
}

func javascriptPrinter() printer {
	return printer{comma: ",", colon: ":", special: noSpecial, number: javascriptNumber, object: javascriptOrder}
}

// javascriptNumber is Number::toString of ECMA-262, under JSON.stringify's rule
// that what is not finite is null.
func javascriptNumber(text string) (string, error) {
	f := parseFloat(text)
	switch {
	case math.IsInf(f, 0):
		return "null", nil
	case f == 0:
		return "0", nil // minus zero too
	}
	return floatStyle{low: -6, high: 21, exponent: "e", plus: true}.format(f), nil
}

// javascriptOrder is the order of own properties: array indices ascending, then
// the others as they came (ECMA-262 OrdinaryOwnPropertyKeys).
func javascriptOrder(members []member) []member {
	members = lastWins(members)
	index := func(m member) (uint64, bool) {
		n, err := strconv.ParseUint(m.name, 10, 32)
		return n, err == nil && n < math.MaxUint32 && strconv.FormatUint(n, 10) == m.name
	}
	slices.SortStableFunc(members, func(a, b member) int {
		x, isX := index(a)
		y, isY := index(b)
		switch {
		case isX && isY && x < y, isX && !isY:
			return -1
		case isX && isY && x > y, isY && !isX:
			return 1
		}
		return 0
	})
	return members
}

// decodeReplacing reads bytes that are not UTF-8 as U+FFFD, one for each
// maximal part of a character, as the web platform's decoder has it.
func decodeReplacing(body []byte) []byte {
	if utf8.Valid(body) {
		return body
	}
	var out strings.Builder
	for len(body) > 0 {
		r, n := utf8.DecodeRune(body)
		if r == utf8.RuneError && n == 1 {
			n = maximalPart(body)
			out.WriteString("\ufffd")
		} else {
			out.Write(body[:n])
		}
		body = body[n:]
	}
	return []byte(out.String())
}

// maximalPart is the length of the longest start of a character that body
// begins with, 1 where it begins with none (Unicode 15 §3.9).
func maximalPart(body []byte) int {
	for n := min(3, len(body)); n > 1; n-- {
		if !utf8.FullRune(body[:n]) {
			return n
		}
	}
	return 1
}
