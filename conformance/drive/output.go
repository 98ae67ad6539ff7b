package drive

import (
	"bytes"
	"io"
	"strings"
	"sync"
)

// tail keeps the end of a command's output and passes it on, without secrets.
type tail struct {
	log     io.Writer
	secrets []string
	mu      sync.Mutex
	kept    []byte
	line    []byte // the line being written; a secret may come in two pieces
}

// lineKept bounds a line that never ends.
const lineKept = 64 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.line = append(t.line, b...)
	for {
		end := bytes.IndexByte(t.line, '\n')
		if end < 0 {
			break
		}
		t.pass([]byte(Redact(string(t.line[:end+1]), t.secrets)))
		t.line = append([]byte(nil), t.line[end+1:]...)
	}
	if len(t.line) >= lineKept {
		// What may be the beginning of a secret waits for its end.
		clean := []byte(Redact(string(t.line), t.secrets))
		cut := max(0, len(clean)-t.longest())
		t.pass(clean[:cut])
		t.line = clean[cut:]
	}
	return len(b), nil
}

// end passes on a last line that has no end.
func (t *tail) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pass([]byte(Redact(string(t.line), t.secrets)))
	t.line = nil
}

func (t *tail) longest() int {
	n := 0
	for _, s := range t.secrets {
		n = max(n, len(s))
	}
	return n
}

// pass keeps and logs what holds no secret any more.
func (t *tail) pass(clean []byte) {
	t.kept = append(t.kept, clean...)
	if over := len(t.kept) - outputKept; over > 0 {
		t.kept = append([]byte(nil), t.kept[over:]...)
	}
	if t.log != nil && len(clean) > 0 {
		_, _ = t.log.Write(clean)
	}
}

// String is the end of the output, indented.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := strings.TrimSpace(string(t.kept) + Redact(string(t.line), t.secrets))
	if text == "" {
		return "    (it printed nothing)"
	}
	return "    " + strings.ReplaceAll(text, "\n", "\n    ")
}

// Redact replaces every secret in text, whole or without its prefix
// ("whsec_"), by a mark.
func Redact(text string, secrets []string) string {
	for _, s := range secrets {
		_, bare, prefixed := strings.Cut(s, "_")
		for _, form := range []string{s, bare} {
			if len(form) >= 6 && (form == s || prefixed) {
				text = strings.ReplaceAll(text, form, "[secret]")
			}
		}
	}
	return text
}
