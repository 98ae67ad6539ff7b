package drive

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

const (
	// logLineMax bounds a line that is looked at, in bytes; of a longer one the
	// rest is passed over.
	logLineMax = 64 << 10
	// logIDMax bounds how many events are counted: ten times the longest load
	// scenario. At some 100 bytes an id that is 100 MiB at worst.
	logIDMax = 1_000_000
	// logIDLen bounds an id in a log, in bytes: a profile's prefix and a UUID
	// have 50.
	logIDLen = 128
	// idPattern is what the suite's own ids are made of: a prefix and a UUID.
	idPattern = `[A-Za-z0-9_-]+`
)

// LogTap is an observer that reads a managed process's output as it comes. It is
// an io.Writer for [ExecConfig].Log; call Flush when the process has ended.
type LogTap struct {
	name    string
	pattern *regexp.Regexp
	groups  []int // the capture groups that hold the id; all are to be equal

	mu     sync.Mutex
	counts map[string]int
	full   bool
	line   []byte
	cut    bool // the rest of the line is passed over
}

// ObserveLog counts the lines that match a pattern (RE2 syntax) in which {id}
// stands for the event's id, once or several times: "processed event {id}\b". A
// process that holds its log back in a buffer is observed late, and one that is
// killed loses what was in it: let it write line by line.
func ObserveLog(pattern string) (*LogTap, error) {
	name := fmt.Sprintf("--observe-log %q", pattern)
	if !strings.Contains(pattern, idSlot) {
		return nil, fmt.Errorf("%s: the pattern needs %s for the id of the event", name, idSlot)
	}
	const group = "whconform_id"
	// The group takes as much as an id can have, so that msg_1 is not found in
	// msg_10.
	compiled, err := regexp.Compile(strings.ReplaceAll(pattern, idSlot, `(?P<`+group+`>`+idPattern+`)`))
	if err != nil && strings.Count(pattern, idSlot) > 1 {
		compiled, err = compileNumbered(pattern, group)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: it is not a regular expression: %w", name, err)
	}
	tap := &LogTap{name: name, pattern: compiled, counts: map[string]int{}}
	for i, n := range compiled.SubexpNames() {
		if strings.HasPrefix(n, group) {
			tap.groups = append(tap.groups, i)
		}
	}
	return tap, nil
}

// compileNumbered gives each {id} a group of its own: a name may stand once.
func compileNumbered(pattern, group string) (*regexp.Regexp, error) {
	var text strings.Builder
	for i, part := range strings.Split(pattern, idSlot) {
		if i > 0 {
			fmt.Fprintf(&text, "(?P<%s%d>%s)", group, i, idPattern)
		}
		text.WriteString(part)
	}
	return regexp.Compile(text.String())
}

// Write takes output in pieces of any size. It never fails.
func (t *LogTap) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for rest := b; len(rest) > 0; {
		part, after, ended := bytes.Cut(rest, []byte{'\n'})
		rest = after
		if !t.cut {
			room := logLineMax - len(t.line)
			t.line = append(t.line, part[:min(len(part), room)]...)
			t.cut = len(part) > room
		}
		if ended {
			t.take()
		}
	}
	return len(b), nil
}

// Flush takes a last line that has no end. A process that was killed leaves one,
// and the output of the next begins behind it.
func (t *LogTap) Flush() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.take()
}

// take counts the line that has ended.
func (t *LogTap) take() {
	line := bytes.TrimSuffix(t.line, []byte{'\r'})
	t.line, t.cut = t.line[:0], false
	id, ok := t.idIn(line, t.pattern.FindSubmatchIndex(line))
	switch {
	case !ok:
	case len(t.counts) < logIDMax || t.counts[id] > 0:
		t.counts[id]++
	default:
		t.full = true
	}
}

// idIn is the id in a match: what all its groups hold. A group that took no part
// in the match is left aside.
func (t *LogTap) idIn(line []byte, found []int) (string, bool) {
	if found == nil {
		return "", false
	}
	id := ""
	for _, g := range t.groups {
		from, to := found[2*g], found[2*g+1]
		if from < 0 {
			continue
		}
		here := string(line[from:to])
		if len(here) > logIDLen || id != "" && here != id {
			return "", false
		}
		id = here
	}
	return id, id != ""
}

// Processed implements [Observer].
func (t *LogTap) Processed(ctx context.Context, id string) (Count, error) {
	if err := ctx.Err(); err != nil {
		return Count{}, context.Cause(ctx)
	}
	if !findable(id) {
		return Count{}, &ObserverError{Fault: ObserverUnfit, Observer: t.name, ID: fmt.Sprintf("%.50q", id), Got: "it finds ids of letters, digits, _ and - only"}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	n, known := t.counts[id]
	if !known && t.full {
		return Count{}, &ObserverError{Fault: ObserverUnfit, Observer: t.name, ID: id, Got: fmt.Sprintf("the output speaks of more than %d events", logIDMax), Expected: "a pattern that matches one line an event"}
	}
	return Count{N: n, Unknown: !known}, nil
}

// findable tells whether a log can be searched for an id: whether idPattern
// matches it as a whole.
func findable(id string) bool {
	return id != "" && len(id) <= logIDLen && strings.IndexFunc(id, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
	}) < 0
}
