package adapter

import (
	"bytes"
	"io"
	"strings"
	"sync"
)

// Bounds of what is kept of an adapter's stderr.
const (
	// outputKept is how much of its end an error can show, in bytes.
	outputKept = 4 << 10
	// logLine is how much of a line without an end waits for its end, in bytes.
	logLine = 64 << 10
	// secretMax is the longest secret that may be cut by the end of what waits.
	secretMax = 512
)

// output takes an adapter's log line by line, keeps its end, and passes it on
// without secrets.
type output struct {
	to     io.Writer // may be nil
	redact *redactor

	mu   sync.Mutex
	kept []byte // clean, up to twice outputKept
	line []byte // not yet ended, and not yet clean
	skip bool   // the rest of the line is left out
}

// Write never fails: an adapter is not ended for what becomes of its log.
func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for rest := b; len(rest) > 0; {
		end := bytes.IndexByte(rest, '\n') + 1
		if end == 0 {
			end = len(rest)
		}
		// In pieces, so that a write of any size costs no more than a line.
		end = min(end, logLine)
		piece := rest[:end]
		rest = rest[end:]
		if o.skip {
			if piece[end-1] != '\n' {
				continue
			}
			piece, o.skip = piece[end-1:], false
		}
		o.line = append(o.line, piece...)
		switch {
		case o.line[len(o.line)-1] == '\n':
			o.pass(o.redact.clean(string(o.line)))
			o.line = o.line[:0]
		case len(o.line) >= logLine:
			o.shorten()
		}
	}
	return len(b), nil
}

// shorten passes on the beginning of a line that does not end. What may be the
// beginning of a secret waits for its end, and no secret is cut in two: the
// halves, each cleaned, have to give what the whole does.
func (o *output) shorten() {
	whole := o.redact.clean(string(o.line))
	for at := len(o.line) - secretMax; at > 0; at -= secretMax {
		first := o.redact.clean(string(o.line[:at]))
		if first+o.redact.clean(string(o.line[at:])) == whole {
			o.pass(first)
			o.line = append(o.line[:0], o.line[at:]...)
			return
		}
	}
	// All of it is one secret, so the rest of the line may be, too.
	o.pass(whole + "… the rest of the line is left out")
	o.line, o.skip = o.line[:0], true
}

// end passes on a last line that has no end.
func (o *output) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pass(o.redact.clean(string(o.line)))
	o.line = nil
}

// pass keeps and logs what holds no secret any more.
func (o *output) pass(clean string) {
	if clean == "" {
		return
	}
	o.kept = append(o.kept, clean...)
	// Trimmed at twice the size: a flood of short lines would otherwise move
	// what is kept once a line.
	if len(o.kept) > 2*outputKept {
		o.kept = append(o.kept[:0], o.kept[len(o.kept)-outputKept:]...)
	}
	if o.to != nil {
		_, _ = io.WriteString(o.to, clean)
	}
}

// String is the end of the output, indented.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	text := string(o.kept) + o.redact.clean(string(o.line))
	text = strings.TrimSpace(strings.ToValidUTF8(text[max(0, len(text)-outputKept):], "\ufffd"))
	if text == "" {
		return "    (none)"
	}
	return "    " + strings.ReplaceAll(text, "\n", "\n    ")
}
