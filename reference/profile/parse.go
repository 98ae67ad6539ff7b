package profile

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/whconform/whconform/reference/signature"
)

const (
	// maxSize is the size of the largest profile, in bytes: a thousand times
	// the usual one.
	maxSize = 1 << 20

	// maxDepth is how deep values may nest. The format itself needs 4.
	maxDepth = 16

	// maxFaults is how many faults are reported: more say nothing new.
	maxFaults = 50
)

// Fault is one thing that is wrong with a profile, and where.
type Fault struct {
	File         string
	Line, Column int    // counted from 1
	Field        string // "signature.list.join"; empty: the whole text
	Message      string // what is wrong and what was expected
}

// Error is file:line:column, the field and what is wrong.
func (f Fault) Error() string {
	if f.Field == "" {
		return fmt.Sprintf("%s:%d:%d: %s", f.File, f.Line, f.Column, f.Message)
	}
	return fmt.Sprintf("%s:%d:%d: %s: %s", f.File, f.Line, f.Column, f.Field, f.Message)
}

// ParseError lists all that is wrong with a profile, in the order of the text.
type ParseError struct{ Faults []Fault }

// Error is one fault a line.
func (e *ParseError) Error() string {
	lines := make([]string, len(e.Faults))
	for i, f := range e.Faults {
		lines[i] = f.Error()
	}
	return strings.Join(lines, "\n")
}

// Parse reads a profile from YAML. name is where it comes from, for errors,
// which are a *[ParseError].
func Parse(name string, data []byte) (*Profile, error) {
	return parseWith(name, data, nil)
}

// parseWith is Parse that tells known about each mapping of the format it meets.
func parseWith(name string, data []byte, known func(path string, fields []field)) (*Profile, error) {
	root, fault := compose(name, data)
	if fault != nil {
		return nil, &ParseError{[]Fault{*fault}}
	}
	d := &decoder{file: name, at: map[string]*yaml.Node{"": root}, bad: map[string]bool{}, known: known}
	p := &Profile{
		yaml:      slices.Clone(data),
		MaxBody:   defaultMaxBody,
		Remember:  defaultRemember,
		Handshake: "none",
	}
	p.root()(d, root, "")
	d.check(p)
	p.fillIn()
	if len(d.faults) > 0 {
		slices.SortStableFunc(d.faults, func(a, b Fault) int {
			if a.Line != b.Line {
				return a.Line - b.Line
			}
			return a.Column - b.Column
		})
		return nil, &ParseError{d.faults[:min(len(d.faults), maxFaults)]}
	}
	return p, nil
}

// fillIn sets what follows from other fields.
func (p *Profile) fillIn() {
	if p.UserAgent == "" {
		p.UserAgent = "whconform/1 (+" + p.Name + ")"
	}
	if p.AttemptTimeout == 0 {
		p.AttemptTimeout = p.AckTimeout // two sides of one wait
	}
}

// compose reads the text into nodes and refuses what no profile needs: a second
// document, anchors, aliases, tags, merges, depth.
func compose(name string, data []byte) (*yaml.Node, *Fault) {
	fail := func(line, column int, format string, args ...any) (*yaml.Node, *Fault) {
		return nil, &Fault{name, line, column, "", fmt.Sprintf(format, args...)}
	}
	if len(data) > maxSize {
		return fail(1, 1, "larger than %d bytes", maxSize)
	}
	if !utf8.Valid(data) {
		line, column := invalidUTF8(data)
		return fail(line, column, "not UTF-8")
	}
	var docs []yaml.Node
	if err := yaml.Load(data, &docs, yaml.WithAllDocuments()); err != nil {
		return nil, syntaxFault(name, err)
	}
	if len(docs) > 1 {
		return fail(docs[1].Line, docs[1].Column, "a second document: want one profile")
	}
	if len(docs) == 0 || len(docs[0].Content) == 0 {
		return fail(1, 1, "empty: want a profile")
	}
	root := docs[0].Content[0]
	if n, what := forbidden(root, 0); n != nil {
		return fail(n.Line, n.Column, "%s", what)
	}
	return root, nil
}

// forbidden finds the first node that may not stand in a profile.
func forbidden(n *yaml.Node, depth int) (*yaml.Node, string) {
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return n, "anchors and aliases are not allowed: write the value out"
	case depth > maxDepth:
		return n, fmt.Sprintf("nested deeper than %d levels", maxDepth)
	case n.Style&yaml.TaggedStyle != 0:
		return n, "tags are not allowed: leave out " + shorten(n.Tag)
	}
	for _, c := range n.Content {
		if bad, what := forbidden(c, depth+1); bad != nil {
			return bad, what
		}
	}
	return nil, ""
}

// yamlPlace finds the position in an error of the YAML parser: "at L1.C5:" or
// "at L1.C4-C9:".
var yamlPlace = regexp.MustCompile(`at L(\d+)\.C(\d+)[^:]*: `)

// syntaxFault turns an error of the YAML parser into a Fault.
func syntaxFault(name string, err error) *Fault {
	f := &Fault{File: name, Line: 1, Column: 1, Message: "not YAML: " + err.Error()}
	if at := yamlPlace.FindStringSubmatchIndex(err.Error()); at != nil {
		f.Line, _ = strconv.Atoi(err.Error()[at[2]:at[3]])
		f.Column, _ = strconv.Atoi(err.Error()[at[4]:at[5]])
		f.Message = "not YAML: " + err.Error()[at[1]:]
	}
	return f
}

// check looks at what one field alone does not show.
func (d *decoder) check(p *Profile) {
	p.Signature.Name = p.Name
	for _, f := range p.Signature.Faults() {
		if !d.failed(f.Field) {
			d.fault(d.node(f.Field), f.Field, "%s", f.Fault)
		}
	}
	if p.Payload != "" {
		payload, err := ParsePayload("template", []byte(p.Payload))
		var at *PayloadError
		if errors.As(err, &at) {
			d.templateFault(at)
		}
		p.payload = payload
	}
	for i, delay := range p.Schedule {
		if i > 0 && delay == 0 && !d.failed(fmt.Sprintf("retry.schedule[%d]", i)) {
			d.fault(d.node(fmt.Sprintf("retry.schedule[%d]", i)), "retry.schedule", "only the first attempt may come at once")
		}
	}
	if p.ConnectTimeout > p.AttemptTimeout && p.AttemptTimeout > 0 {
		d.fault(d.node("sender.connect_timeout"), "sender.connect_timeout", "is longer than sender.attempt_timeout")
	}
	if _, has := p.Levels["receiver.acknowledge.handshake"]; has && p.Handshake == "none" {
		d.fault(d.node("levels"), "levels.receiver.acknowledge.handshake", "there is no handshake")
	}
}

// templateFault places a fault of the payload template in the profile's text.
// In a block scalar the template's lines are those below the key.
func (d *decoder) templateFault(at *PayloadError) {
	const path = "body.template"
	n := d.node(path)
	line, column := n.Line, n.Column
	if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		line, column = n.Line+at.Line, max(at.Column, 1)
	}
	d.bad[path] = true
	d.faults = append(d.faults, Fault{d.file, line, column, path,
		fmt.Sprintf("line %d, column %d of the template: %s", at.Line, at.Column, at.Message)})
}

// checkHeader looks at one of the extra headers.
func checkHeader(d *decoder, key, value *yaml.Node, path string) {
	if !signature.IsHeaderName(key.Value) {
		d.fault(key, path, "want a header name, got %s", shorten(key.Value))
	}
	if strings.ContainsFunc(value.Value, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		d.fault(value, path, "a header's value holds no control characters")
	}
	rest := strings.NewReplacer("{type}", "", "{id}", "").Replace(value.Value)
	if strings.ContainsAny(rest, "{}") {
		d.fault(value, path, "the only placeholders are {type} and {id}, got %s", shorten(value.Value))
	}
}

// requirementID is the shape of a requirement's id: "receiver.replay.tolerance".
var requirementID = regexp.MustCompile(`^(receiver|sender|library)(\.[a-z0-9-]+)+$`)

// checkLevel looks at one of the levels.
func checkLevel(d *decoder, key, value *yaml.Node, path string) {
	if !requirementID.MatchString(key.Value) {
		d.fault(key, path, "want the full id of a requirement such as receiver.replay.rejects-future")
	}
	if !slices.Contains(levels(), value.Value) {
		d.fault(value, path, "want one of %s, got %s%s", strings.Join(levels(), ", "), shorten(value.Value), didYouMean(value.Value, levels()))
	}
}
