package fakeprovider

import (
	"errors"
	"math"
	"strings"
)

// dotnetDepth is MaxDepth of both libraries by default.
const dotnetDepth = 64

func dotnetSerializer() Serializer {
	return Serializer{
		Name:    "dotnet",
		Library: "System.Text.Json: JsonDocument or JsonNode, written again by JsonSerializer (numbers stay as written, unlike those bound to double)",
		Runtime: ".NET: ASP.NET Core, Azure Functions",
		RawBody: "ASP.NET Core: Request.EnableBuffering() and copy Request.Body to a MemoryStream before model binding; no [FromBody] parameter on that action.",
		respell: style{depth: dotnetDepth, printer: func() printer {
			return printer{
				comma: ",", colon: ":", hex: upperEscape, number: asWritten,
				// JavaScriptEncoder.Default: what HTML could take for markup.
				special: escapeNonASCII(upperEscape, "\"&'+<>`"),
				// An element writes its members as they came, twice or not.
				object: func(members []member) []member { return members },
			}
		}}.respellWhole,
	}
}

// respellWhole is respell for libraries that refuse half a surrogate pair
// wherever it stands.
func (s style) respellWhole(body []byte) ([]byte, error) {
	root, err := parseJSON(body)
	if err == nil && root.hasLoneSurrogate() {
		return nil, errors.New("half a surrogate pair cannot be read")
	}
	return s.respell(body)
}

func (v *node) hasLoneSurrogate() bool {
	if v.kind == kindString && hasLoneSurrogate(v.text) {
		return true
	}
	for i := range v.items {
		if v.items[i].hasLoneSurrogate() {
			return true
		}
	}
	for i := range v.members {
		if hasLoneSurrogate(v.members[i].name) || v.members[i].value.hasLoneSurrogate() {
			return true
		}
	}
	return false
}

func hasLoneSurrogate(s string) bool {
	for len(s) > 0 {
		r, n := nextWTF8(s)
		if isHighSurrogate(r) || isLowSurrogate(r) {
			return true
		}
		s = s[n:]
	}
	return false
}

func newtonsoftSerializer() Serializer {
	return Serializer{
		Name:    "newtonsoft",
		Library: "Json.NET: JObject.Parse and ToString(Formatting.None), which reads dates and writes them anew (the clock's zone taken as UTC)",
		Runtime: ".NET: ASP.NET before Core, Azure Functions, NewtonsoftJson formatters",
		RawBody: "ASP.NET Core: Request.EnableBuffering() and copy Request.Body to a MemoryStream before model binding; ASP.NET Web API: await Request.Content.ReadAsByteArrayAsync().",
		respell: style{depth: dotnetDepth, reads: decodeReplacing, printer: func() printer {
			return printer{
				comma: ",", colon: ":", special: escapeHTML("\u0085\u2028\u2029"), number: newtonsoftNumber, text: newtonsoftDate,
				lone: func() (string, error) { return "\ufffd", nil }, // Encoding.UTF8 writes it so
			}
		}}.respell,
	}
}

// newtonsoftNumber prints integers of any size as they are and all else as
// double.ToString("R") of .NET Core 3.1, with a point at least. (.NET Framework
// changes to the exponent at 1E+15 already.)
func newtonsoftNumber(text string) (string, error) {
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
	out := floatStyle{low: -4, high: 17, exponent: "E", plus: true, pad: 2}.format(f)
	if !strings.ContainsAny(out, ".E") {
		out += ".0"
	}
	return out, nil
}
