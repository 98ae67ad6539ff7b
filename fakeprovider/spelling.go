package fakeprovider

// Spelling is one way to spell JSON that is equal to every parser and differs
// in bytes: who checks a signature over a parsed copy refuses it. Each body
// holds one such way and nothing else out of the ordinary, so that the set of
// refused ones tells the library (see [Explain]).
//
// source: 08 verify over the raw body; the catalogue's
// receiver.rawbody.accepts-exact-bytes
type Spelling struct {
	Name string // "space-after-colon"
	What string // for people: "a space after a colon"

	blank, text, tail, after string
}

// SpellingMember is the name of the member that a spelling adds to the event:
// a receiver ignores what it does not know.
const SpellingMember = "whconform"

// Spell gives the event with a member more, spelt in this way. The event must
// be a JSON object; its own bytes stay as they are.
func (s Spelling) Spell(event []byte) ([]byte, error) {
	out, err := addMember(event, s.blank, s.text, s.tail)
	if err != nil {
		return nil, err
	}
	return append(out, s.after...), nil
}

// Spellings are the ways, in the catalogue's order. Names are unique.
func Spellings() []Spelling {
	const name = `"` + SpellingMember + `":`
	value := func(name, what, text string) Spelling {
		return Spelling{Name: name, What: what, text: `"` + SpellingMember + `":` + text}
	}
	return []Spelling{
		value("space-after-colon", "a space after a colon", ` true`),
		{Name: "space-after-comma", What: "a space after a comma", blank: " ", text: name + "true"},
		value("plus-offset", "a time with +00:00", `"2026-01-02T03:04:05+00:00"`),
		value("utf8-raw", "letters beyond ASCII as they are", `"Zoë, naïve café, 東京"`),
		value("escape-latin", `an é written as \u00e9`, `"caf\u00e9"`),
		value("escape-ascii", `an A written as \u0041`, `"\u0041"`),
		value("escape-ampersand", `an & written as \u0026`, `"a\u0026b"`),
		value("html-chars", "<, > and &", `"<p>a & b</p> <p>c & d</p>"`),
		value("slashes", "slashes as they are", `"https://example.com/a/b"`),
		value("escaped-slashes", `slashes written as \/`, `"https:\/\/example.com\/a\/b"`),
		value("unsorted-keys", "names that are not sorted", `{"zulu":1,"alpha":2,"mike":3}`),
		value("integer-keys", "names that are integers, out of order", `{"10":"a","9":"b","x":"c","1":"d"}`),
		value("float-one", "the number 1.0", `1.0`),
		value("exponent", "the number 1e2", `1e2`),
		value("trailing-zero", "the number 10.50", `10.50`),
		value("twenty-digits", "an integer of 20 digits", `12345678901234567891`),
		value("minus-zero", "the number -0", `-0`),
		value("outer-blanks", "a string with blanks at its ends", `"  padded  "`),
		value("empty-string", "an empty string", `""`),
		value("null", "null", `null`),
		{Name: "trailing-newline", What: "a newline after the end", text: name + "true", after: "\n"},
		{Name: "tabs", What: "tabs between the parts", blank: "\t", text: `"` + SpellingMember + "\":\ttrue"},
		{Name: "crlf", What: "CR and LF between the parts", blank: "\r\n", text: name + "true", tail: "\r\n"},
		value("line-separator", "U+2028 as it is", "\"a\u2028b\""),
		value("emoji-raw", "an emoji as it is", "\"\U0001f600\""),
		value("emoji-escaped", `an emoji written as \ud83d\ude00`, `"\ud83d\ude00"`),
	}
}
