package catalogue

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxPattern bounds a single pattern, in bytes. Ids are far shorter; the bound
// keeps an error that quotes the pattern readable.
const maxPattern = 200

// PatternError is a pattern that cannot be used, with its place.
type PatternError struct {
	Argument    int      // which of the given values, from 1
	Column      int      // the character in it, from 1
	Pattern     string   // the pattern; cut at its bound
	Problem     string   // what is wrong with it
	Suggestions []string // what may have been meant; often none
}

// Error names place, problem and what may have been meant.
func (e *PatternError) Error() string {
	return fmt.Sprintf("pattern %d, column %d: %s%s", e.Argument, e.Column, e.Problem, askMeant(e.Suggestions))
}

// Match returns the ids that the patterns select, each once, in the order of the
// catalogue. It is what --run and --skip accept.
//
// Each value holds patterns separated by commas; blanks around them do not
// count. In a pattern * stands for any characters, dots too, and ? for one. A
// pattern must match an id as a whole, with or without its part. Without * and ? it may also be the name
// of a part ("sender"), of a group ("receiver.replay") or of a group without its
// part ("rotation": those of receivers and of senders).
//
// No patterns select nothing. An empty pattern, a character that stands in no
// id, and a pattern that matches nothing are errors, since a run that leaves out
// what was meant would look like a passed one. All faults are reported, each as
// a [*PatternError].
func Match(patterns []string) (ids []string, err error) {
	rows, err := Load()
	if err != nil {
		return nil, err
	}
	return Select(rows, patterns)
}

// Select is [Match] among the given rows, such as those of one part.
func Select(rows []Requirement, patterns []string) (ids []string, err error) {
	selected := make(map[string]bool, len(rows))
	var errs []error
	for i, argument := range patterns {
		for _, p := range split(argument) {
			p.argument = i + 1
			if err := p.check(); err != nil {
				errs = append(errs, err)
				continue
			}
			if !p.mark(rows, selected) {
				errs = append(errs, p.fault(0, fmt.Sprintf("%q matches no requirement", p.text), p.meant(rows)...))
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	for _, row := range rows {
		if selected[row.ID] {
			ids = append(ids, row.ID)
		}
	}
	return ids, nil
}

// pattern is one pattern with the place it was found at.
type pattern struct {
	text     string
	argument int
	column   int
}

// split cuts a value at its commas. An empty value is one empty pattern.
func split(argument string) []pattern {
	var patterns []pattern
	column := 1
	for text := range strings.SplitSeq(argument, ",") {
		trimmed := strings.TrimLeft(text, " \t")
		lead := utf8.RuneCountInString(text) - utf8.RuneCountInString(trimmed)
		patterns = append(patterns, pattern{text: strings.TrimRight(trimmed, " \t"), column: column + lead})
		column += utf8.RuneCountInString(text) + 1
	}
	return patterns
}

// fault is an error at an offset in the pattern, in characters.
func (p pattern) fault(offset int, problem string, suggestions ...string) error {
	return &PatternError{
		Argument:    p.argument,
		Column:      p.column + offset,
		Pattern:     p.text[:min(len(p.text), maxPattern)],
		Problem:     problem,
		Suggestions: suggestions,
	}
}

func (p pattern) check() error {
	if p.text == "" {
		return p.fault(0, "the pattern is empty")
	}
	if len(p.text) > maxPattern {
		return p.fault(0, fmt.Sprintf("the pattern has %d bytes, at most %d are allowed", len(p.text), maxPattern))
	}
	offset := 0
	for _, c := range p.text {
		switch {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', strings.ContainsRune(".-*?", c):
		case 'A' <= c && c <= 'Z':
			return p.fault(offset, fmt.Sprintf("%q in %q: ids are in lower case", c, p.text), strings.ToLower(p.text))
		default:
			return p.fault(offset, fmt.Sprintf("%q in %q stands in no id: letters, digits, dots and dashes do, with * for any characters and ? for one", c, p.text))
		}
		offset++
	}
	return nil
}

// mark selects the rows that the pattern means and reports whether there is one.
func (p pattern) mark(rows []Requirement, selected map[string]bool) bool {
	found := false
	for _, row := range rows {
		if glob(p.text, row.ID) || glob(p.text, strings.TrimPrefix(row.ID, row.Part()+".")) || p.text == row.Part() || p.text == row.Group() || p.text == bare(row.Group()) {
			selected[row.ID] = true
			found = true
		}
	}
	return found
}

// meant returns what a pattern that matches nothing may have meant: a group or
// an id like the literal part of it.
func (p pattern) meant(rows []Requirement) []string {
	literal := strings.Trim(strings.NewReplacer("*", "", "?", "").Replace(p.text), ".")
	var candidates []candidate
	last := ""
	for _, row := range rows {
		if group := row.Group(); group != last {
			candidates = append(candidates, candidate{group, []string{group, bare(group)}})
			last = group
		}
	}
	return nearest(literal, append(candidates, idCandidates(rows)...))
}

// bare returns a group's name without its part.
func bare(group string) string {
	_, name, ok := strings.Cut(group, ".")
	if !ok {
		return group
	}
	return name
}

// glob reports whether the pattern matches the whole id. On a mismatch only the
// last * is widened, which suffices and keeps the cost at the product of both
// lengths; trying every * would take exponential time on "*a*a*a*b".
func glob(pattern, id string) bool {
	p, i := 0, 0
	star, resume := -1, 0
	for i < len(id) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, resume = p, i
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == id[i]):
			p++
			i++
		case star >= 0:
			resume++
			p, i = star+1, resume
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}
