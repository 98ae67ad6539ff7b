package profile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"
	"time"
	"unicode/utf8"
)

const (
	// maxTemplate is the size of the largest payload template, in bytes: what a
	// profile may hold at all.
	maxTemplate = maxSize

	// maxPayload is the size of the largest payload that a template may render,
	// in bytes: above the 25 MB that the most generous provider sends.
	maxPayload = 32 << 20
)

// PayloadData is what a payload template knows: {{.ID}}, {{.Type}}, {{.Seq}}
// and {{.Random}} of the fields, {{.Now}} and {{.Unix}} of the time.
type PayloadData struct {
	ID     string
	Type   string
	Time   time.Time // of the event
	Seq    int       // counts the events of a run
	Random string    // differs from event to event
}

// Now is the time in RFC 3339, in UTC and whole seconds: a time that no JSON
// library spells otherwise when it writes it again.
func (d PayloadData) Now() string { return d.Time.UTC().Format(time.RFC3339) }

// Unix is the time in seconds since 1970.
func (d PayloadData) Unix() int64 { return d.Time.Unix() }

// UnixMilli is the time in milliseconds since 1970.
func (d PayloadData) UnixMilli() int64 { return d.Time.UnixMilli() }

// Payload is a parsed payload template. It is safe for use by several
// goroutines at a time.
type Payload struct {
	name  string
	tmpl  *template.Template
	plain []part // the same where it is plain, nil where it is not
}

// PayloadError tells what is wrong with a payload template, and where.
type PayloadError struct {
	Name         string // as it was given to ParsePayload
	Line, Column int    // counted from 1; Column 0: only the line is known
	Message      string
}

// Error is file:line:column and what is wrong.
func (e *PayloadError) Error() string {
	if e.Column == 0 {
		return fmt.Sprintf("%s:%d: %s", e.Name, e.Line, e.Message)
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.Name, e.Line, e.Column, e.Message)
}

// ParsePayload reads a payload template in the syntax of text/template: text,
// the fields of [PayloadData], if, comparisons, and the function json, which
// writes a value as JSON. There are no loops and no variables, so what a
// template makes is no larger than what it says. name is for errors, which are
// a *[PayloadError]; a template that fails on an example event is refused, too.
func ParsePayload(name string, text []byte) (*Payload, error) {
	if len(text) > maxTemplate {
		return nil, &PayloadError{Name: name, Line: 1, Message: fmt.Sprintf("%d bytes, a template has at most %d", len(text), maxTemplate)}
	}
	if !utf8.Valid(text) {
		line, column := invalidUTF8(text)
		return nil, &PayloadError{name, line, column, "not UTF-8"}
	}
	tmpl, err := template.New("payload").Option("missingkey=error").
		Funcs(template.FuncMap{"json": toJSON}).Parse(string(text))
	if err != nil {
		return nil, positioned(name, text, err)
	}
	p := &Payload{name: name, tmpl: tmpl}
	if err := p.checkNodes(text); err != nil {
		return nil, err
	}
	p.plain, _ = plainParts(tmpl.Root)
	example := PayloadData{ID: "msg_example", Type: "invoice.paid", Time: time.Unix(1767225600, 0), Seq: 1, Random: "r4nd0m"}
	if _, err := p.Render(example); err != nil {
		return nil, err
	}
	return p, nil
}

// Render makes the payload of one event.
func (p *Payload) Render(d PayloadData) ([]byte, error) {
	if p.plain != nil {
		if out, ok := renderPlain(p.plain, &d); ok {
			return out, nil
		}
	}
	var out limited
	if err := p.tmpl.Execute(&out, d); err != nil {
		return nil, positioned(p.name, nil, err)
	}
	return out.Bytes(), nil
}

// NewPayload renders the profile's payload for one event.
func (p *Profile) NewPayload(d PayloadData) ([]byte, error) {
	if p.payload == nil {
		return nil, fmt.Errorf("profile %s: no payload template", p.Name)
	}
	return p.payload.Render(d)
}

// toJSON is the template function json: compact, and without the escapes of <,
// > and & that only Go writes.
func toJSON(v any) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "", err
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// limited is a buffer of at most maxPayload bytes.
type limited struct{ bytes.Buffer }

func (l *limited) Write(b []byte) (int, error) {
	if l.Len()+len(b) > maxPayload {
		return 0, fmt.Errorf("the payload is larger than %d bytes", maxPayload)
	}
	return l.Buffer.Write(b)
}

// allowedFuncs lists the functions of a template. printf is not among them:
// one "%999999d" more and a short template fills the memory.
func allowedFuncs() []string {
	return []string{"json", "and", "or", "not", "eq", "ne", "lt", "le", "gt", "ge", "len", "print", "urlquery"}
}

// checkNodes refuses what ParsePayload's comment excludes.
func (p *Payload) checkNodes(text []byte) error {
	if len(p.tmpl.Templates()) > 1 || p.tmpl.Tree == nil {
		return &PayloadError{Name: p.name, Line: 1, Message: "want one template without define or block"}
	}
	var bad error
	refuse := func(n parse.Node, what string) bool {
		if bad == nil {
			line, column := position(text, int(n.Position()))
			bad = &PayloadError{p.name, line, column, what + " may not stand in a payload template"}
		}
		return false
	}
	walk(p.tmpl.Root, func(n parse.Node) bool {
		switch n := n.(type) {
		case *parse.RangeNode, *parse.WithNode, *parse.TemplateNode, *parse.BreakNode, *parse.ContinueNode:
			return refuse(n, "range, with and template")
		case *parse.VariableNode:
			return refuse(n, "the variable "+n.Ident[0])
		case *parse.PipeNode:
			if len(n.Decl) > 0 {
				return refuse(n, "the variable "+n.Decl[0].Ident[0])
			}
		case *parse.IdentifierNode:
			if !slices.Contains(allowedFuncs(), n.Ident) {
				return refuse(n, "the function "+n.Ident)
			}
		}
		return true
	})
	return bad
}

// walk visits n and what is below it while visit returns true.
func walk(n parse.Node, visit func(parse.Node) bool) {
	if n == nil || !visit(n) {
		return
	}
	switch n := n.(type) {
	case *parse.ListNode:
		if n != nil {
			for _, c := range n.Nodes {
				walk(c, visit)
			}
		}
	case *parse.ActionNode:
		walk(n.Pipe, visit)
	case *parse.IfNode:
		walk(n.Pipe, visit)
		walk(n.List, visit)
		if n.ElseList != nil {
			walk(n.ElseList, visit)
		}
	case *parse.PipeNode:
		for _, c := range n.Cmds {
			walk(c, visit)
		}
	case *parse.CommandNode:
		for _, c := range n.Args {
			walk(c, visit)
		}
	case *parse.ChainNode:
		walk(n.Node, visit)
	}
}

// positioned turns an error of text/template into one with a position in text.
func positioned(name string, text []byte, err error) *PayloadError {
	out := &PayloadError{Name: name, Line: 1, Message: err.Error()}
	var already *PayloadError
	if errors.As(err, &already) {
		return already
	}
	m := regexp.MustCompile(`(?s)^template: payload:(\d+)(?::(\d+))?: (.*)$`).FindStringSubmatch(err.Error())
	if m == nil {
		return out
	}
	out.Line, _ = strconv.Atoi(m[1])
	out.Column, _ = strconv.Atoi(m[2])
	if m[2] != "" {
		out.Column++ // text/template counts columns from 0
	}
	out.Message = strings.TrimPrefix(m[3], `executing "payload" at `)
	if lines := bytes.Split(text, []byte("\n")); out.Column == 0 && out.Line >= 1 && out.Line <= len(lines) {
		// The parser names the line only; its first action is the place to look.
		out.Column = bytes.Index(lines[out.Line-1], []byte("{{")) + 1
	}
	return out
}

// position is the line and column of a byte offset, counted from 1.
func position(text []byte, offset int) (line, column int) {
	before := text[:min(offset, len(text))]
	return bytes.Count(before, []byte("\n")) + 1, len(before) - bytes.LastIndexByte(before, '\n')
}

// invalidUTF8 finds the first byte of text that is not UTF-8.
func invalidUTF8(text []byte) (line, column int) {
	offset := 0
	for offset < len(text) {
		r, size := utf8.DecodeRune(text[offset:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		offset += size
	}
	return position(text, offset)
}
