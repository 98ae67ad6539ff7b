package fakeprovider

import (
	"errors"
	"fmt"
	"strings"
)

// Serializer is a JSON library whose habits are known: what it makes of a body
// that a framework parsed and printed again before the signature was checked.
type Serializer struct {
	Name    string // "dotnet"; for Respell, Reserialize and the command line
	Library string // the library, and by which calls
	Runtime string // where it is at home
	RawBody string // how that runtime's frameworks hand over the bytes as sent

	// respell parses a body as the library does by default and prints it as
	// it does by default.
	respell func(body []byte) ([]byte, error)
}

// Serializers lists the libraries that [Respell] knows, the most common among
// webhook receivers first. The order decides between equals in [Explain].
func Serializers() []Serializer {
	return []Serializer{
		javascriptSerializer(), pythonSerializer(), pythonCompactSerializer(), goSerializer(),
		phpSerializer(), rubySerializer(), railsSerializer(), jacksonSerializer(), gsonSerializer(),
		dotnetSerializer(), newtonsoftSerializer(),
	}
}

// ErrUnknownSerializer is what Respell returns for a name that is not in
// [Serializers].
var ErrUnknownSerializer = errors.New("no such serializer")

// Respell parses body as the library called name would and prints it as the
// library would, both by default. It fails with [ErrUnknownSerializer], or
// where the library fails: on what is not JSON, and on what only some libraries
// refuse (half a surrogate pair, a number out of range, deep nesting).
func Respell(name string, body []byte) ([]byte, error) {
	var names []string
	for _, s := range Serializers() {
		if s.Name == name {
			out, err := s.respell(body)
			if err != nil {
				return nil, fmt.Errorf("respelling the body as %s: %w", name, err)
			}
			return out, nil
		}
		names = append(names, s.Name)
	}
	return nil, fmt.Errorf("%w: %q; known are %s", ErrUnknownSerializer, name, strings.Join(names, ", "))
}

// style is how a library reads and prints, for those that this package imitates.
type style struct {
	depth   int // levels that the library reads
	printer func() printer
	// reads says what the library makes of invalid UTF-8: nil refuses it.
	reads func(body []byte) []byte
}

// respell prints what the reader makes of body.
func (s style) respell(body []byte) ([]byte, error) {
	if s.reads != nil {
		body = s.reads(body)
	}
	root, err := parseJSON(body)
	if err != nil {
		return nil, err
	}
	if d := root.depth(); d > s.depth {
		return nil, fmt.Errorf("the body has %d levels, the library reads %d", d, s.depth)
	}
	p := s.printer()
	p.value(&root)
	if p.err != nil {
		return nil, p.err
	}
	return p.out, nil
}

// depth counts the levels of arrays and objects.
func (v *node) depth() int {
	deepest := 0
	for i := range v.items {
		deepest = max(deepest, v.items[i].depth())
	}
	for i := range v.members {
		deepest = max(deepest, v.members[i].value.depth())
	}
	if v.kind == kindArray || v.kind == kindObject {
		deepest++
	}
	return deepest
}
