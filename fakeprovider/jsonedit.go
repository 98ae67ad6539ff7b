package fakeprovider

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// replaceInBody puts value, JSON as it shall stand, in place of the one that a
// JSON Pointer (RFC 6901) names, and leaves every other byte as it was.
func replaceInBody(body []byte, pointer, value string) ([]byte, error) {
	root, err := parseJSON(body)
	if err != nil {
		return nil, fmt.Errorf("looking for %s in the body: %w", pointer, err)
	}
	found, ok := root.find(pointer)
	if !ok {
		return nil, fmt.Errorf("the body has nothing at %s", pointer)
	}
	out := make([]byte, 0, len(body)+len(value))
	out = append(out, body[:found.start]...)
	out = append(out, value...)
	return append(out, body[found.end:]...), nil
}

// find is the value at a JSON Pointer.
func (v *node) find(pointer string) (*node, bool) {
	if pointer == "" {
		return v, true
	}
	step, rest, _ := strings.Cut(strings.TrimPrefix(pointer, "/"), "/")
	if rest != "" || strings.HasSuffix(pointer, "/") && step != "" {
		rest = "/" + rest
	}
	step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
	for i := range v.members {
		if v.members[i].name == step {
			return v.members[i].value.find(rest)
		}
	}
	if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(v.items) {
		return v.items[i].find(rest)
	}
	return nil, false
}

// addMember puts text, a member as it shall stand, behind the last member of
// the object that body is. blank stands after the comma, if there is one, and
// tail before the closing brace.
func addMember(body []byte, blank, text, tail string) ([]byte, error) {
	root, err := parseJSON(body)
	if err != nil {
		return nil, fmt.Errorf("adding a member: %w", err)
	}
	if root.kind != kindObject {
		return nil, errors.New("adding a member: the body is not a JSON object")
	}
	end := root.end - 1 // of the brace
	for end > 0 && bytes.IndexByte([]byte(" \t\r\n"), body[end-1]) >= 0 {
		end--
	}
	out := make([]byte, 0, len(body)+len(text)+8)
	out = append(out, body[:end]...)
	if len(root.members) > 0 {
		out = append(out, ',')
	}
	out = append(out, blank...)
	out = append(out, text...)
	out = append(out, tail...)
	return append(out, body[end:]...), nil
}

// quoteJSON writes text as a JSON string with no escape that is not needed.
func quoteJSON(text string) string {
	var p printer
	p.str(strings.ToValidUTF8(text, "\ufffd"), func(rune) string { return "" })
	return string(p.out)
}

// isJSONNumber tells whether text is a JSON number and nothing else.
func isJSONNumber(text string) bool {
	p := jsonReader{text: []byte(text)}
	_, err := p.number()
	return err == nil && p.at == len(text)
}
