package main

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// The last line of defence: every byte that the program writes goes through a
// redactor, which replaces the secrets that it was told of. The packages below
// keep secrets out of what they print; this is for the day one of them does
// not, and for a subject that sends its own secret back.

const (
	// shortestSecret is the shortest text that is looked for. A shorter one
	// stands in ordinary words, and guards nothing anyway.
	shortestSecret = 8
	redacted       = "[secret]"
)

// secrets is what must not be printed, in all its forms, the longest first.
type secrets struct {
	mu    sync.Mutex
	forms [][]byte
}

// add makes a text unprintable from here on: itself, its part behind whsec_ or
// the like, and as JSON, a URL or hex would write it.
func (s *secrets) add(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	texts := []string{text}
	for _, prefix := range []string{"whsec_", "whsk_", "v1,whsec_"} {
		if bare, ok := strings.CutPrefix(text, prefix); ok {
			texts = append(texts, bare)
		}
	}
	for _, t := range texts {
		quoted, _ := json.Marshal(t) // a string cannot fail
		plain := new(bytes.Buffer)
		encoder := json.NewEncoder(plain)
		encoder.SetEscapeHTML(false)
		_ = encoder.Encode(t)
		for _, form := range []string{
			t, strings.Trim(string(quoted), `"`), strings.Trim(strings.TrimSpace(plain.String()), `"`),
			url.QueryEscape(t), url.PathEscape(t), hex.EncodeToString([]byte(t)),
		} {
			if len(form) >= shortestSecret && !slices.ContainsFunc(s.forms, func(f []byte) bool { return string(f) == form }) {
				s.forms = append(s.forms, []byte(form))
			}
		}
	}
	slices.SortStableFunc(s.forms, func(a, b []byte) int { return len(b) - len(a) })
}

// addFrom makes unprintable what looks like a secret on the command line: errors
// about the command line quote it, and a secret may stand in the wrong place.
func (s *secrets) addFrom(args []string) {
	for _, arg := range args {
		for _, prefix := range []string{"whsec_", "whsk_"} {
			if at := strings.Index(arg, prefix); at >= 0 {
				s.add(arg[at:])
			}
		}
	}
}

// clean replaces what is in b and returns it, with the length of the end of it
// that may be the beginning of a secret and must wait for what follows.
func (s *secrets) clean(b []byte) (clean []byte, wait int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, form := range s.forms {
		if bytes.Contains(b, form) {
			b = bytes.ReplaceAll(b, form, []byte(redacted))
		}
	}
	for _, form := range s.forms {
		for n := min(len(form)-1, len(b)); n > wait; n-- {
			if bytes.HasSuffix(b, form[:n]) {
				wait = n
				break
			}
		}
	}
	return b, wait
}

// redactor is a writer that lets no secret through, also not one that comes in
// pieces. Flush it at the end. It may be used by several goroutines.
type redactor struct {
	kept *secrets
	mu   sync.Mutex
	to   io.Writer
	held []byte
	err  error // the first of the writer's; nothing is written after it
}

func newRedactor(to io.Writer, kept *secrets) *redactor { return &redactor{to: to, kept: kept} }

func (r *redactor) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	clean, wait := r.kept.clean(slices.Concat(r.held, b))
	r.held = bytes.Clone(clean[len(clean)-wait:])
	if err := r.pass(clean[:len(clean)-wait]); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Flush writes what was held back: it was not the beginning of a secret.
func (r *redactor) Flush() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	held := r.held
	r.held = nil
	return r.pass(held)
}

func (r *redactor) pass(b []byte) error {
	if r.err == nil && len(b) > 0 {
		_, r.err = r.to.Write(b)
	}
	return r.err
}
