package fakeprovider

import (
	"math"
	"slices"
)

func jacksonSerializer() Serializer {
	return Serializer{
		Name:    "jackson",
		Library: "Jackson: ObjectMapper.readTree and writeValueAsString, on Java 19 or newer",
		Runtime: "Java and Kotlin: Spring Boot, Quarkus, Micronaut",
		RawBody: "Spring: @RequestBody byte[] body, not a DTO, JsonNode or Map (and not String, which decodes); in a filter read the body once and keep the bytes.",
		respell: style{depth: 1000, printer: func() printer {
			return printer{comma: ",", colon: ":", hex: upperEscape, special: noSpecial, number: jacksonNumber, lone: func() (string, error) {
				return "?", nil // String.getBytes(UTF_8) writes it so
			}}
		}}.respell,
	}
}

// jacksonNumber prints integers of any size as they are and all else as
// Double.toString, quoted when it is not finite.
func jacksonNumber(text string) (string, error) {
	if isInteger(text) {
		if text == "-0" {
			return "0", nil
		}
		return text, nil
	}
	f := parseFloat(text)
	switch {
	case math.IsInf(f, 1):
		return `"Infinity"`, nil
	case math.IsInf(f, -1):
		return `"-Infinity"`, nil
	}
	return floatStyle{low: -3, high: 7, point: true, exponent: "E", two: true}.format(f), nil
}

func gsonSerializer() Serializer {
	return Serializer{
		Name:    "gson",
		Library: "Gson: JsonParser.parseString and new Gson().toJson, which escapes for HTML, keeps numbers as written and drops members that are null",
		Runtime: "Java and Android",
		RawBody: "Servlet: request.getInputStream().readAllBytes(), before getReader() or getParameter() is called.",
		respell: style{depth: 1000, reads: decodeReplacing, printer: func() printer {
			return printer{comma: ",", colon: ":", special: escapeHTML("<>&='\u2028\u2029"), number: asWritten, object: dropNulls, lone: func() (string, error) {
				return "?", nil
			}}
		}}.respell,
	}
}

// dropNulls leaves out members that are null, as a Gson does unless it was told
// serializeNulls.
func dropNulls(members []member) []member {
	return slices.DeleteFunc(lastWins(members), func(m member) bool { return m.value.kind == kindNull })
}
