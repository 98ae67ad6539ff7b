package catalogue

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// idPattern is narrower than any test runner's rules for labels: Ginkgo forbids
// & | ! , ( ) and /.
var idPattern = regexp.MustCompile(`^[a-z0-9]+(\.[a-z0-9-]+)+$`)

// parse reads one file of the catalogue. It is strict, because a mistyped key
// would silently lower a level or drop a need; the error names every fault with
// its file and line.
func parse(part, file string, data []byte) (*catalogue, error) {
	var root yaml.Node
	if err := yaml.Load(data, &root); err != nil {
		if broken, ok := errors.AsType[*yaml.LoadError](err); ok && broken.Mark.Line > 0 {
			return nil, fmt.Errorf("%s:%d: %s", file, broken.Mark.Line, broken.Message)
		}
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	r := &reader{file: file, part: part, seen: map[string]int{}}
	r.document(&root)
	if err := errors.Join(r.errs...); err != nil {
		return nil, err
	}
	return &r.out, nil
}

// reader walks the nodes instead of decoding into structs: only nodes know the
// line of a wrong value.
type reader struct {
	file, part string
	seen       map[string]int // id → line
	errs       []error
	out        catalogue
}

func (r *reader) fail(n *yaml.Node, format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf("%s:%d: %s", r.file, n.Line, fmt.Sprintf(format, args...)))
}

func (r *reader) document(root *yaml.Node) {
	if root.Kind != yaml.DocumentNode || len(root.Content) == 0 {
		r.errs = append(r.errs, fmt.Errorf("%s:1: the file is empty", r.file))
		return
	}
	fields := r.fields(root.Content[0], "the file", "part", "groups")
	part := r.text(root.Content[0], fields, "part")
	if part != r.part {
		r.fail(root.Content[0], "part is %q, want %q", part, r.part)
	}
	for _, group := range r.list(root.Content[0], fields, "groups", true) {
		r.group(group)
	}
}

func (r *reader) group(n *yaml.Node) {
	fields := r.fields(n, "a group", "name", "title", "requirements")
	name := r.part
	// A group without a name holds what concerns the part as a whole.
	if _, ok := fields["name"]; ok {
		name += "." + r.text(n, fields, "name")
	}
	r.out.groups = append(r.out.groups, Group{Name: name, Title: r.text(n, fields, "title")})
	for _, row := range r.list(n, fields, "requirements", true) {
		r.requirement(name, row)
	}
}

func (r *reader) requirement(group string, n *yaml.Node) {
	f := r.fields(n, "a requirement", "id", "level", "default", "profiles",
		"statement", "why", "fix", "sources", "needs", "labels")
	if f == nil {
		return
	}
	row := Requirement{
		ID:        group + "." + r.text(n, f, "id"),
		Level:     r.word(n, f, "level", []string{Must, Should, May, ByProfile}),
		Statement: r.sentence(n, f, "statement"),
		Why:       r.sentence(n, f, "why"),
		Fix:       r.sentence(n, f, "fix"),
		Sources:   r.words(n, f, "sources", true, Sources()),
		Needs:     r.words(n, f, "needs", false, Needs(r.part)),
		Labels:    r.words(n, f, "labels", false, Labels()),
		Profiles:  r.levels(f),
	}
	if row.Level == ByProfile {
		row.Default = r.word(n, f, "default", []string{Must, Should, May})
	} else if given, ok := f["default"]; ok {
		r.fail(given, "default goes with level %s only, the level here is %s", ByProfile, row.Level)
	}
	if length := utf8.RuneCountInString(row.Statement); length > MaxStatement {
		r.fail(f["statement"], "the statement has %d characters, at most %d are allowed", length, MaxStatement)
	}
	r.identify(n, row.ID)
	r.out.rows = append(r.out.rows, row)
}

// identify checks the id: its spelling, that it is new, and that a suffix has a
// row to be a part of.
func (r *reader) identify(n *yaml.Node, id string) {
	if !idPattern.MatchString(id) {
		r.fail(n, "id %q: want lower-case letters, digits and dashes, in segments joined by dots", id)
		return
	}
	if line, ok := r.seen[id]; ok {
		r.fail(n, "id %q stands on line %d already", id, line)
		return
	}
	r.seen[id] = n.Line
	// part.group.name.suffix
	if strings.Count(id, ".") < 3 {
		return
	}
	parent := id[:strings.LastIndexByte(id, '.')]
	if _, ok := r.seen[parent]; !ok {
		r.fail(n, "id %q: %q, of which it is a part, must stand before it", id, parent)
	}
}

// fields returns the values of a mapping by key; unknown and doubled keys are
// errors, and so is anything but a mapping.
func (r *reader) fields(n *yaml.Node, what string, known ...string) map[string]*yaml.Node {
	if n.Kind != yaml.MappingNode {
		r.fail(n, "%s must be a mapping", what)
		return nil
	}
	values := make(map[string]*yaml.Node, len(known))
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		switch _, doubled := values[key.Value]; {
		case !slices.Contains(known, key.Value):
			r.fail(key, "unknown key %q in %s%s", key.Value, what, didYouMean(key.Value, known))
		case doubled:
			r.fail(key, "key %q stands twice in %s", key.Value, what)
		default:
			values[key.Value] = n.Content[i+1]
		}
	}
	return values
}

// text returns a required, non-empty scalar.
func (r *reader) text(n *yaml.Node, fields map[string]*yaml.Node, key string) string {
	value, ok := fields[key]
	if !ok {
		r.fail(n, "%s is missing", key)
		return ""
	}
	if value.Kind != yaml.ScalarNode || strings.TrimSpace(value.Value) == "" {
		r.fail(value, "%s must be a text that is not empty", key)
		return ""
	}
	return value.Value
}

func (r *reader) sentence(n *yaml.Node, fields map[string]*yaml.Node, key string) string {
	text := r.text(n, fields, key)
	if text != "" && !strings.HasSuffix(text, ".") {
		r.fail(fields[key], "%s must end with a full stop", key)
	}
	return text
}

func (r *reader) word(n *yaml.Node, fields map[string]*yaml.Node, key string, known []string) string {
	word := r.text(n, fields, key)
	if word != "" && !slices.Contains(known, word) {
		r.fail(fields[key], "%s %q: want one of %s%s", key, word, strings.Join(known, ", "), didYouMean(word, known))
	}
	return word
}

// words returns a list of known words; never nil, so that JSON shows [] and not
// null.
func (r *reader) words(n *yaml.Node, fields map[string]*yaml.Node, key string, required bool, known []string) []string {
	words := []string{}
	for _, item := range r.list(n, fields, key, required) {
		switch {
		case item.Kind != yaml.ScalarNode || !slices.Contains(known, item.Value):
			r.fail(item, "%s %q: want one of %s%s", key, item.Value, strings.Join(known, ", "), didYouMean(item.Value, known))
		case slices.Contains(words, item.Value):
			r.fail(item, "%s %q stands twice", key, item.Value)
		default:
			words = append(words, item.Value)
		}
	}
	return words
}

func (r *reader) list(n *yaml.Node, fields map[string]*yaml.Node, key string, required bool) []*yaml.Node {
	value, ok := fields[key]
	switch {
	case !ok && required:
		r.fail(n, "%s is missing", key)
		return nil
	case !ok:
		return nil
	case value.Kind != yaml.SequenceNode || len(value.Content) == 0:
		r.fail(value, "%s must be a list that is not empty", key)
		return nil
	}
	return value.Content
}

// levels returns the levels that the row sets for single profiles.
func (r *reader) levels(fields map[string]*yaml.Node) map[string]string {
	value, ok := fields["profiles"]
	if !ok {
		return nil
	}
	if value.Kind != yaml.MappingNode || len(value.Content) == 0 {
		r.fail(value, "profiles must be a mapping of profile names to levels that is not empty")
		return nil
	}
	known := []string{Must, Should, May}
	levels := map[string]string{}
	for i := 0; i+1 < len(value.Content); i += 2 {
		name, level := value.Content[i], value.Content[i+1]
		if _, doubled := levels[name.Value]; doubled {
			r.fail(name, "profile %q stands twice", name.Value)
			continue
		}
		if level.Kind != yaml.ScalarNode || !slices.Contains(known, level.Value) {
			r.fail(level, "level %q for profile %q: want one of %s%s", level.Value, name.Value, strings.Join(known, ", "), didYouMean(level.Value, known))
			continue
		}
		levels[name.Value] = level.Value
	}
	return levels
}
