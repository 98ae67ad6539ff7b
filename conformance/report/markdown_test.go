package report

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/whconform/whconform/conformance/evidence"
)

func inMarkdown(t testing.TB, r *Report) string {
	t.Helper()
	var out bytes.Buffer
	if err := WriteMarkdown(&out, r); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestTheMarkdownOfEachKindOfRun(t *testing.T) {
	for name, r := range samples() {
		t.Run(name, func(t *testing.T) { golden(t, name+".md", []byte(inMarkdown(t, r))) })
	}
}

// outside is what stands in neither code blocks nor code spans: what a reader
// of Markdown acts on. It goes by CommonMark: a block ends at a line of at
// least as many backticks as it began with, a span at a row of just as many.
func outside(t interface{ Fatalf(string, ...any) }, text string) string {
	var out []string
	fence := ""
	for line := range strings.SplitSeq(text, "\n") {
		ticks := len(line) - len(strings.TrimLeft(line, "`"))
		switch {
		case fence == "" && ticks >= 3 && line[ticks:] == "text":
			fence = line[:ticks]
		case fence != "" && ticks >= len(fence) && strings.TrimSpace(line[ticks:]) == "":
			fence = ""
		case fence == "":
			out = append(out, withoutSpans(line))
		}
	}
	if fence != "" {
		t.Fatalf("a code block is not closed:\n%s", text)
	}
	return strings.Join(out, "\n")
}

var ticks = regexp.MustCompile("\\\\`|`+")

// withoutSpans takes the code spans out of a line.
func withoutSpans(line string) string {
	var out strings.Builder
	for {
		open := ticks.FindStringIndex(line)
		if open == nil {
			break
		}
		run := line[open[0]:open[1]]
		out.WriteString(line[:open[0]])
		line = line[open[1]:]
		if run == "\\`" {
			continue // escaped, it opens nothing
		}
		for offset := 0; ; {
			// Inside of a span a backslash escapes nothing.
			next := regexp.MustCompile("`+").FindStringIndex(line[offset:])
			if next == nil {
				break
			}
			if next[1]-next[0] == len(run) {
				line = line[offset+next[1]:]
				break
			}
			offset += next[1]
		}
	}
	return out.String() + line
}

func TestAHostileSubjectCannotWriteMarkdown(t *testing.T) {
	const mark = "hostile"
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.OneOf(rapid.SampledFrom([]string{
			"`", "```", "\n```\n", "|", "@" + mark, "#1", "</details>", "<script>", "<!--", "![](http://x)", "[a](javascript:b)", "\n\n# " + mark, "\\", " ", "*", "https://" + mark, "www." + mark, "a@b." + mark, "&lt;", "\x1b[2J",
		}), rapid.String())
		hostile := strings.Join(rapid.SliceOfN(piece, 1, 6).Draw(t, "pieces"), "")
		r := hostileReport(hostile)
		r.Reasons = append(r.Reasons, hostile)
		r.Results[0].Statement = hostile
		var out bytes.Buffer
		if err := WriteMarkdown(&out, r); err != nil {
			t.Fatal(err)
		}
		text := outside(t, out.String())
		// Our own markup, of which there is this much, aside.
		folds := 3
		if hostile == "" {
			folds = 2 // no remark
		}
		for tag, n := range map[string]int{"<details>": folds, "</details>": folds, "<summary>": folds, "</summary>": folds, "<br>": 1} {
			if got := strings.Count(text, tag); got != n {
				t.Fatalf("%q: %d times %s, want %d:\n%s", hostile, got, tag, n, text)
			}
			text = strings.ReplaceAll(text, tag, "")
		}
		text = strings.ReplaceAll(text, "&#8203;", "\u200b")
		for _, active := range []string{`(^|[^\\])<`, `@\w`, `#\d`, `://`, `www\.`, `(^|[^\\])\[`, `(^|[^\\])&[^#]`} {
			if found := regexp.MustCompile(active).FindString(text); found != "" {
				t.Fatalf("%q gets through as %q:\n%s", hostile, found, text)
			}
		}
		for line := range strings.SplitSeq(text, "\n") {
			if strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "### whconform: ") {
				t.Fatalf("a heading of the subject's: %q", line)
			}
		}
	})
}

func TestTheMarkdownFitsAComment(t *testing.T) {
	var rulings []evidence.Ruling
	for range sampleRequirements() {
		var findings []evidence.Finding
		for i := range 60 {
			findings = append(findings, evidence.Finding{Sent: fmt.Sprintf("delivery %d", i), Got: fmt.Sprint(i, strings.Repeat("é", 900)), Cause: fmt.Sprint(i)})
		}
		rulings = append(rulings, evidence.Ruling{Outcome: evidence.Fail, Findings: findings})
	}
	text := inMarkdown(t, sample(nil, rulings...))
	if len(text) > 65536 || !strings.HasSuffix(text, "6 parts found no room here; the JSON form of the report has everything.\n") {
		t.Errorf("%d bytes, ending %q", len(text), text[max(0, len(text)-100):])
	}
}

func TestSentencesAndValuesAreEscaped(t *testing.T) {
	for text, want := range map[string]string{
		"a plain sentence, 5 s long.": "a plain sentence, 5 s long.",
		"a|b":                         `a\|b`,
		"@team":                       `\@&#8203;team`,
		"<b>":                         `\<b\>`,
		"www.example.com":             "www&#8203;.example.com",
		"a\nb":                        `a\\nb`,
	} {
		if got := prose(text); got != want {
			t.Errorf("prose(%q) = %q, want %q", text, got, want)
		}
	}
	for text, want := range map[string]string{"a": "`a`", "a`b": "``a`b``", "`": "`` ` ``", "": "(none)", " ": "(none)", "``a": "``` ``a ```"} {
		if got := code(text); got != want {
			t.Errorf("code(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestErrorsOfTheWriterOfOtherFormsAreReturned(t *testing.T) {
	full := errors.New("no space left")
	for name, err := range map[string]error{"Markdown": WriteMarkdown(failing{full}, samples()["failing"]), "JUnit": WriteJUnit(failing{full}, samples()["failing"])} {
		if !errors.Is(err, full) {
			t.Errorf("%s: %v, want %v", name, err, full)
		}
	}
}
