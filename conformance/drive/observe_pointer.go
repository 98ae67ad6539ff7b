package drive

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// pointer is a JSON Pointer (RFC 6901), cut into reference tokens that are
// unescaped, with idSlot where the event's id belongs.
type pointer []string

// parsePointer reads a JSON Pointer that has been percent-decoded.
func parsePointer(text string) (pointer, error) {
	if text == "" {
		return nil, nil
	}
	if text[0] != '/' {
		return nil, errors.New("a JSON Pointer begins with /")
	}
	tokens := strings.Split(text[1:], "/")
	for i, token := range tokens {
		for rest := token; ; {
			at := strings.IndexByte(rest, '~')
			if at < 0 {
				break
			}
			if rest = rest[at+1:]; rest == "" || rest[0] != '0' && rest[0] != '1' {
				return nil, fmt.Errorf("%q: behind ~ stands 0 or 1", token)
			}
		}
		tokens[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
	}
	return tokens, nil
}

// errMissing says that the member that would be named after the event is not
// there: the observer does not know the event.
var errMissing = errors.New("the event is not in the answer")

// in finds the value for an event. The error is errMissing when only the step
// that holds the id leads nowhere, and says which step otherwise.
func (p pointer) in(v any, id string) (any, error) {
	for i, token := range p {
		name := strings.ReplaceAll(token, idSlot, id)
		next, ok, err := step(v, name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p[:i+1], err)
		}
		if !ok {
			if strings.Contains(token, idSlot) {
				return nil, errMissing
			}
			return nil, fmt.Errorf("%s: there is no such member", p[:i+1])
		}
		v = next
	}
	return v, nil
}

// step goes one reference token down.
func step(v any, name string) (next any, ok bool, err error) {
	switch v := v.(type) {
	case map[string]any:
		next, ok = v[name]
		return next, ok, nil
	case []any:
		n, err := strconv.ParseUint(name, 10, 31)
		if err != nil || len(name) > 1 && name[0] == '0' {
			return nil, false, errors.New("a list is asked for a member by name")
		}
		if int(n) >= len(v) {
			return nil, false, nil
		}
		return v[n], true, nil
	}
	return nil, false, fmt.Errorf("%s has no members", kindOf(v))
}

// String is the pointer as it is written.
func (p pointer) String() string {
	var text strings.Builder
	for _, token := range p {
		text.WriteByte('/')
		text.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(token))
	}
	return text.String()
}
