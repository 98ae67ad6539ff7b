package signature

import (
	"errors"
	"fmt"
	"strings"
)

// element is one element of a signature header's value: literal text and what
// follows it.
type element struct {
	prefix string // "t=", "v1=", "v1,", ""
	sig    bool   // a signature follows, else the timestamp
}

// grammar is Carrier.Grammar, taken apart.
type grammar struct {
	elements []element // in the order in which they are written
	join     string    // between elements; empty: there is one
	label    string    // of the signature in the grammar: "v1"; empty: tokens have none
	sep      string    // between label and text: "=" or ","
	ts       string    // the prefix of the timestamp: "t="; meaningful when hasTS
	hasTS    bool
}

// parseGrammar takes c apart.
func parseGrammar(c Carrier) (grammar, error) {
	g := grammar{join: c.Join}
	parts := []string{c.Grammar}
	if c.Join != "" {
		parts = strings.Split(c.Grammar, c.Join)
	}
	sigs := 0
	for _, part := range parts {
		if prefix, ok := strings.CutSuffix(part, "{sig}"); ok && !strings.ContainsAny(prefix, "{}") {
			if sigs++; sigs > 1 {
				return g, errors.New("holds {sig} more than once: further signatures are the list's matter")
			}
			if err := g.setLabel(prefix); err != nil {
				return g, err
			}
			if c.Repeat != "" && c.Repeat != part {
				return g, fmt.Errorf("holds the signature as %q, but the list repeats %q", part, c.Repeat)
			}
			g.elements = append(g.elements, element{prefix, true})
			continue
		}
		prefix, ok := strings.CutSuffix(part, "{ts}")
		if !ok || prefix == "" || strings.ContainsAny(prefix, "{}") {
			return g, fmt.Errorf("element %q: want literal text followed by {sig} or {ts}", part)
		}
		if g.hasTS {
			return g, errors.New("holds {ts} more than once")
		}
		g.hasTS, g.ts = true, prefix
		g.elements = append(g.elements, element{prefix, false})
	}
	if sigs == 0 {
		return g, errors.New("lacks {sig}")
	}
	if c.Repeat != "" && c.Join == "" {
		return g, errors.New("repeats an element without a join")
	}
	return g, nil
}

// setLabel splits the text before {sig} into label and separator.
func (g *grammar) setLabel(prefix string) error {
	if prefix == "" {
		return nil
	}
	last := len(prefix) - 1
	if last == 0 || !strings.ContainsRune("=,:", rune(prefix[last])) {
		return fmt.Errorf("the text before {sig}, %q, must be a version label and one of \"=,:\" after it", prefix)
	}
	g.label, g.sep = prefix[:last], prefix[last:]
	return nil
}

// appendToken appends one token as it stands in the header.
func (g *grammar) appendToken(dst []byte, t Token) []byte {
	if g.sep != "" && t.Version != "" {
		dst = append(dst, t.Version...)
		dst = append(dst, g.sep...)
	}
	return append(dst, t.Text...)
}

// value writes the header's value with those tokens.
func (g *grammar) value(ts string, tokens []Token) string {
	var b []byte
	first := true
	between := func() {
		if !first {
			b = append(b, g.join...)
		}
		first = false
	}
	for _, e := range g.elements {
		if !e.sig {
			between()
			b = append(append(b, e.prefix...), ts...)
			continue
		}
		for _, t := range tokens {
			between()
			b = g.appendToken(b, t)
		}
	}
	return string(b)
}

// next cuts the first element off a header's value.
func (g *grammar) next(value string) (head, rest string, more bool) {
	if g.join == "" {
		return value, "", false
	}
	return strings.Cut(value, g.join)
}

// token takes one element apart. ok is false where it has not the shape of a
// token: no label, no separator, nothing after it.
func (g *grammar) token(elem string) (t Token, ok bool) {
	if g.sep == "" {
		return Token{Text: elem}, elem != ""
	}
	t.Version, t.Text, ok = strings.Cut(elem, g.sep)
	return t, ok && t.Version != "" && t.Text != ""
}

// timestamp finds the timestamp in a header's value. Two of them are refused:
// the one that is signed and the one that is checked could differ.
func (g *grammar) timestamp(value string) (string, *Refusal) {
	var found string
	seen := false
	for more, n := true, 0; more && n < MaxTokens; n++ {
		var elem string
		elem, value, more = g.next(value)
		text, ok := strings.CutPrefix(elem, g.ts)
		if !ok {
			continue
		}
		if seen {
			return "", refuse(RuleMalformedTimestamp, "%s… stands twice in the signature header", g.ts)
		}
		found, seen = text, true
	}
	if found == "" {
		return "", refuse(RuleMissingTimestamp, "no %s… in the signature header", g.ts)
	}
	return found, nil
}

// isTimestamp tells whether an element is the timestamp, which looks like a
// token of a version of its own.
func (g *grammar) isTimestamp(elem string) bool {
	return g.hasTS && strings.HasPrefix(elem, g.ts)
}
