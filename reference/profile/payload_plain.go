package profile

import (
	"net/url"
	"strconv"
	"text/template/parse"
)

// A template that consists of text and single fields is written without
// text/template, which takes ten times as long: a load renders tens of
// thousands a second. All others go through the template, and so do mistakes.

// part is a piece of text, or a value that appends itself.
type part struct {
	text   string
	append func(out []byte, d *PayloadData) ([]byte, error) // nil: text
}

// plainParts takes a template apart; ok is false where it says more than text
// and fields.
func plainParts(root *parse.ListNode) (parts []part, ok bool) {
	for _, n := range root.Nodes {
		switch n := n.(type) {
		case *parse.TextNode:
			parts = append(parts, part{text: string(n.Text)})
		case *parse.CommentNode:
		case *parse.ActionNode:
			value := plainValue(n.Pipe)
			if value == nil {
				return nil, false
			}
			parts = append(parts, part{append: value})
		default:
			return nil, false
		}
	}
	return parts, true
}

// plainValue is what {{.Field}}, {{json .Field}} or {{urlquery .Field}} appends,
// nil for anything else.
func plainValue(pipe *parse.PipeNode) func([]byte, *PayloadData) ([]byte, error) {
	if len(pipe.Decl) > 0 || len(pipe.Cmds) != 1 {
		return nil
	}
	args := pipe.Cmds[0].Args
	field, ok := args[len(args)-1].(*parse.FieldNode)
	if !ok || len(field.Ident) != 1 || len(args) > 2 {
		return nil
	}
	name := field.Ident[0]
	if len(args) == 1 {
		return plainField(name)
	}
	function, ok := args[0].(*parse.IdentifierNode)
	text := plainText(name)
	if !ok || text == nil {
		return nil
	}
	switch function.Ident {
	case "json":
		return func(out []byte, d *PayloadData) ([]byte, error) { return appendJSON(out, text(d)) }
	case "urlquery":
		return func(out []byte, d *PayloadData) ([]byte, error) {
			return append(out, url.QueryEscape(text(d))...), nil
		}
	}
	return nil
}

// plainText is a field that is a text.
func plainText(name string) func(*PayloadData) string {
	switch name {
	case "ID":
		return func(d *PayloadData) string { return d.ID }
	case "Type":
		return func(d *PayloadData) string { return d.Type }
	case "Random":
		return func(d *PayloadData) string { return d.Random }
	case "Now":
		return func(d *PayloadData) string { return d.Now() }
	}
	return nil
}

// plainField appends a field as text/template prints it.
func plainField(name string) func([]byte, *PayloadData) ([]byte, error) {
	if text := plainText(name); text != nil {
		return func(out []byte, d *PayloadData) ([]byte, error) { return append(out, text(d)...), nil }
	}
	var number func(*PayloadData) int64
	switch name {
	case "Unix":
		number = func(d *PayloadData) int64 { return d.Unix() }
	case "UnixMilli":
		number = func(d *PayloadData) int64 { return d.UnixMilli() }
	case "Seq":
		number = func(d *PayloadData) int64 { return int64(d.Seq) }
	default:
		return nil
	}
	return func(out []byte, d *PayloadData) ([]byte, error) {
		return strconv.AppendInt(out, number(d), 10), nil
	}
}

// appendJSON is [toJSON] for a text, at once where nothing in it is escaped.
func appendJSON(out []byte, text string) ([]byte, error) {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, err := toJSON(text)
			return append(out, quoted...), err
		}
	}
	out = append(out, '"')
	out = append(out, text...)
	return append(out, '"'), nil
}

// renderPlain writes the parts; ok is false where the template has to tell what
// is wrong.
func renderPlain(parts []part, d *PayloadData) (out []byte, ok bool) {
	out = make([]byte, 0, 256)
	for _, p := range parts {
		out = append(out, p.text...)
		if p.append != nil {
			var err error
			if out, err = p.append(out, d); err != nil {
				return nil, false
			}
		}
		if len(out) > maxPayload {
			return nil, false
		}
	}
	return out, true
}
