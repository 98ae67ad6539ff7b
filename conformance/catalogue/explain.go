package catalogue

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// width is the terminal that everybody has, in columns.
const width = 80

// Explain writes all that is known of a requirement as text, wrapped at 80
// columns: the answer to "whconform explain ID". The error is the writer's.
func Explain(w io.Writer, r Requirement) error {
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s  %s\n\n", r.ID, r.Level)
	wrap(&out, "", r.Statement)
	if text := levelText(r); text != "" {
		section(&out, "Level", text)
	}
	section(&out, "Why", r.Why)
	section(&out, "Fix", r.Fix)
	terms(&out, "Needs", r.Needs, NeedText)
	terms(&out, "Labels", r.Labels, LabelText)
	terms(&out, "Sources", r.Sources, SourceText)
	if r.Core() {
		section(&out, "Core set", "A run that leaves this requirement out is partial, not conformant.")
	}
	if _, err := w.Write(out.Bytes()); err != nil {
		return fmt.Errorf("writing the explanation of %s: %w", r.ID, err)
	}
	return nil
}

// levelText says where the level depends on the profile; empty where it does not.
func levelText(r Requirement) string {
	var sentences []string
	if r.Level == ByProfile {
		sentences = append(sentences, fmt.Sprintf("The profile decides; %s where it says nothing.", r.Default))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Profiles)) {
		sentences = append(sentences, fmt.Sprintf("%s under the profile %s.", r.Profiles[name], name))
	}
	return strings.Join(sentences, " ")
}

func section(out *bytes.Buffer, title, text string) {
	fmt.Fprintf(out, "\n%s\n", title)
	wrap(out, "  ", text)
}

// terms lists words with their meaning; nothing where there are none.
func terms(out *bytes.Buffer, title string, names []string, text func(string) string) {
	if len(names) == 0 {
		return
	}
	fmt.Fprintf(out, "\n%s\n", title)
	for _, name := range names {
		wrap(out, "  ", name+": "+text(name))
	}
}

// wrap writes the text in lines of at most width columns behind the indent. A
// word that is longer stands on a line of its own.
func wrap(out *bytes.Buffer, indent, text string) {
	column := 0
	for _, word := range strings.Fields(text) {
		length := utf8.RuneCountInString(word)
		switch {
		case column == 0:
			out.WriteString(indent)
			column = len(indent)
		case column+1+length > width:
			out.WriteString("\n" + indent)
			column = len(indent)
		default:
			out.WriteByte(' ')
			column++
		}
		out.WriteString(word)
		column += length
	}
	out.WriteByte('\n')
}
