package signature

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/whconform/whconform/reference/wire"
)

// ID reads the message id of r.
func (s *scheme) ID(r *wire.Request) (string, error) {
	switch s.spec.ID.In {
	case inHeader:
		id := lookup(r.Headers, s.spec.ID.Name)
		switch {
		case id.count > 1:
			return "", refuse(RuleRepeatedHeader, "%s stands in %d lines", s.spec.ID.Name, id.count)
		case id.value == "":
			return "", refuse(RuleMissingID, "no id in header %s", s.spec.ID.Name)
		}
		if refusal := checkID(id.value); refusal != nil {
			return "", refusal
		}
		return id.value, nil
	case inBody:
		text, refusal := bodyValue(r.Body, s.spec.ID.Name)
		if refusal != nil {
			return "", refusal
		}
		if text == "" {
			return "", refuse(RuleMissingID, "%s in the body is empty", s.spec.ID.Name)
		}
		if refusal := checkID(text); refusal != nil {
			return "", refusal
		}
		return text, nil
	}
	return "", refuse(RuleMissingID, "the scheme %s carries no id", s.spec.Name)
}

// bodyTimestamp reads the timestamp of a scheme that has it in the body.
func (s *scheme) bodyTimestamp(body []byte) (string, *Refusal) {
	return bodyValue(body, s.spec.Timestamp.Name)
}

// bodyValue reads a string or number of a JSON body by its JSON Pointer
// (RFC 6901). A number comes in the spelling it has in the body.
func bodyValue(body []byte, pointer string) (string, *Refusal) {
	value := json.RawMessage(body)
	for _, step := range strings.Split(pointer, "/")[1:] {
		next, err := child(value, unescapePointer(step))
		if err != nil {
			return "", refuse(RuleMalformedBody, "reading %s: %v", pointer, err)
		}
		value = next
	}
	var text string
	if err := json.Unmarshal(value, &text); err == nil && string(value) != "null" {
		return text, nil
	}
	var number json.Number
	if err := json.Unmarshal(value, &number); err == nil && number != "" {
		return number.String(), nil
	}
	return "", refuse(RuleMalformedBody, "%s is neither a string nor a number", pointer)
}

// child is the member or element of value called step.
func child(value json.RawMessage, step string) (json.RawMessage, error) {
	var object map[string]json.RawMessage
	objectErr := json.Unmarshal(value, &object)
	if objectErr == nil {
		if next, ok := object[step]; ok {
			return next, nil
		}
		return nil, fmt.Errorf("no member %q", step)
	}
	var array []json.RawMessage
	if json.Unmarshal(value, &array) != nil {
		return nil, fmt.Errorf("no JSON object: %w", objectErr)
	}
	i, err := strconv.Atoi(step)
	if err != nil || i < 0 || i >= len(array) {
		return nil, fmt.Errorf("no element %q", step)
	}
	return array[i], nil
}

func unescapePointer(step string) string {
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
}
