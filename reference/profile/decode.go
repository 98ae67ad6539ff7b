package profile

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// decoder turns YAML nodes into a profile's fields. It does not stop at the
// first fault: whoever writes a profile wants to see them all.
type decoder struct {
	file   string
	faults []Fault
	at     map[string]*yaml.Node // where each field stands
	bad    map[string]bool       // the fields that have a fault already
	known  func(path string, fields []field)
}

// reader reads one value.
type reader func(d *decoder, n *yaml.Node, path string)

// field is one key of a mapping.
type field struct {
	name     string
	required bool
	read     reader
}

func need(name string, read reader) field { return field{name, true, read} }
func may(name string, read reader) field  { return field{name, false, read} }

// fault notes what is wrong with the field at path.
func (d *decoder) fault(n *yaml.Node, path, format string, args ...any) {
	line, column := 1, 1
	if n != nil {
		line, column = n.Line, n.Column
	}
	d.bad[path] = true
	d.faults = append(d.faults, Fault{d.file, line, column, path, fmt.Sprintf(format, args...)})
}

// join is the path of a field inside another.
func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// object reads a mapping with those keys and no others.
func object(fields ...field) reader {
	return func(d *decoder, n *yaml.Node, path string) {
		if d.known != nil {
			d.known(path, fields)
		}
		names := make([]string, len(fields))
		for i, f := range fields {
			names[i] = f.name
		}
		seen := map[string]bool{}
		d.pairs(n, path, func(key, value *yaml.Node) {
			i := slices.Index(names, key.Value)
			if i < 0 && len(d.faults) > maxFaults {
				return // the words that are near would be looked for in vain
			}
			if i < 0 {
				d.fault(key, join(path, key.Value), "unknown key%s; known here: %s", didYouMean(key.Value, names), strings.Join(names, ", "))
				return
			}
			seen[key.Value] = true
			d.at[join(path, key.Value)] = value
			fields[i].read(d, value, join(path, key.Value))
		})
		if n.Kind != yaml.MappingNode {
			return
		}
		for _, f := range fields {
			if f.required && !seen[f.name] {
				d.fault(n, join(path, f.name), "missing")
			}
		}
	}
}

// pairs visits the keys of a mapping, each one once.
func (d *decoder) pairs(n *yaml.Node, path string, visit func(key, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		d.fault(n, path, "want a mapping, got %s", describe(n))
		return
	}
	first := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			d.fault(key, path, "want a plain key, got %s", describe(key))
			continue
		}
		if line, ok := first[key.Value]; ok {
			d.fault(key, join(path, key.Value), "stands here again, first in line %d", line)
			continue
		}
		first[key.Value] = key.Line
		visit(key, value)
	}
}

// items visits the elements of a list of at most limit.
func (d *decoder) items(n *yaml.Node, path string, limit int, visit func(item *yaml.Node, path string)) {
	if n.Kind != yaml.SequenceNode {
		d.fault(n, path, "want a list, got %s", describe(n))
		return
	}
	if len(n.Content) > limit {
		d.fault(n, path, "%d elements, at most %d are allowed", len(n.Content), limit)
		return
	}
	for i, item := range n.Content {
		at := fmt.Sprintf("%s[%d]", path, i)
		d.at[at] = item
		visit(item, at)
	}
}

// scalar gives the text of a plain value.
func (d *decoder) scalar(n *yaml.Node, path, want string) (string, bool) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
		d.fault(n, path, "want %s, got %s", want, describe(n))
		return "", false
	}
	return n.Value, true
}

// describe names what a node is, in words for people.
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	case yaml.ScalarNode:
		if n.ShortTag() == "!!null" {
			return "nothing"
		}
		return shorten(n.Value)
	}
	return "nothing"
}

// shownMax is how many bytes of a value an error quotes.
const shownMax = 60

func shorten(s string) string {
	if len(s) > shownMax {
		return fmt.Sprintf("%q…", strings.ToValidUTF8(s[:shownMax], ""))
	}
	return fmt.Sprintf("%q", s)
}

// node finds where the field at path stands, or the nearest field around it.
func (d *decoder) node(path string) *yaml.Node {
	for path != "" {
		if n, ok := d.at[path]; ok {
			return n
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return d.at[""]
}

// failed tells whether the field at path, or one around it, has a fault already.
func (d *decoder) failed(path string) bool {
	for path != "" {
		if d.bad[path] {
			return true
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return false
}
