package report

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/whconform/whconform/conformance/evidence"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares with a file under testdata, or writes it.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (write the golden files with: go test ./conformance/report -update)", err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (if that is meant: go test ./conformance/report -update)\ngot:\n%s\nwant:\n%s", file, got, want)
	}
}

func render(t testing.TB, r *Report, o TextOptions) string {
	t.Helper()
	var out bytes.Buffer
	if err := WriteText(&out, r, o); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func repeatCommand(id string) string {
	return "whconform receiver http://127.0.0.1:8080/hooks --run " + id + " --seed 42"
}

func TestTheTextOfEachKindOfRun(t *testing.T) {
	for name, r := range samples() {
		t.Run(name, func(t *testing.T) {
			golden(t, name+".txt", []byte(render(t, r, TextOptions{Repeat: repeatCommand})))
			golden(t, name+"-verbose.txt", []byte(render(t, r, TextOptions{Repeat: repeatCommand, Verbose: true, Width: 80})))
		})
	}
}

func TestColourAddsNothingButColour(t *testing.T) {
	for name, r := range samples() {
		plain := render(t, r, TextOptions{Verbose: true})
		coloured := render(t, r, TextOptions{Verbose: true, Color: true})
		if coloured == plain {
			t.Errorf("%s: no colour at all", name)
		}
		for _, code := range []string{bold, faint, red, green, yellow, cyan, bold + ";" + red, bold + ";" + green, bold + ";" + yellow, bold + ";" + cyan, "0"} {
			coloured = strings.ReplaceAll(coloured, "\x1b["+code+"m", "")
		}
		if coloured != plain {
			t.Errorf("%s: without its codes the coloured text is\n%s\nwant\n%s", name, coloured, plain)
		}
	}
}

func TestAHostileSubjectCannotWriteToTheTerminal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hostile := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "hostile")
		finding := evidence.Finding{Sent: hostile, Expected: hostile, Got: hostile, Cause: hostile, Fix: hostile}
		r := sample(func(r *Report) { r.Diagnosis, r.Subject.Target, r.Profile = &finding, hostile, hostile },
			evidence.Ruling{Outcome: evidence.Fail, Findings: []evidence.Finding{finding}},
			evidence.Ruling{Outcome: evidence.Error, Detail: hostile},
			evidence.Ruling{Outcome: evidence.Warn, Findings: []evidence.Finding{finding}},
			evidence.Ruling{Outcome: evidence.Info, Findings: []evidence.Finding{finding}},
			evidence.Ruling{Outcome: evidence.Pass, Remark: hostile},
			evidence.Ruling{Outcome: evidence.Skipped, Skip: evidence.Skip{Reason: evidence.NotReached, Detail: hostile}})
		var out bytes.Buffer
		if err := WriteText(&out, r, TextOptions{Verbose: true, Repeat: func(string) string { return hostile }}); err != nil {
			t.Fatal(err)
		}
		text := out.String()
		if !utf8.ValidString(text) {
			t.Fatalf("not UTF-8: %q", text)
		}
		for line := range strings.SplitSeq(text, "\n") {
			for _, c := range line {
				if !unicode.IsPrint(c) {
					t.Fatalf("%q lets %q through", line, c)
				}
			}
		}
	})
}

func TestALineOfTheSubjectIsNotTakenForOneOfTheReport(t *testing.T) {
	for _, name := range []string{"failing", "error"} {
		for line := range strings.SplitSeq(render(t, samples()[name], TextOptions{}), "\n") {
			if strings.HasPrefix(strings.TrimSpace(line), "FAIL  forged") {
				t.Errorf("%s: a forged line stands by itself: %q", name, line)
			}
		}
	}
}

func TestLinesKeepToTheWidth(t *testing.T) {
	for _, width := range []int{80, 100, 200} {
		for name, r := range samples() {
			for line := range strings.SplitSeq(render(t, r, TextOptions{Width: width, Verbose: true}), "\n") {
				// A word longer than what is left stands by itself.
				if utf8.RuneCountInString(line) > width && len(strings.Fields(line)) > 3 {
					t.Errorf("%s at %d: %d columns: %q", name, width, utf8.RuneCountInString(line), line)
				}
			}
		}
	}
}

func TestAnEnormousValueIsCutAndSaysSo(t *testing.T) {
	r := sample(nil, evidence.Ruling{Outcome: evidence.Fail, Findings: []evidence.Finding{{Sent: "a delivery", Got: strings.Repeat("é", 100_000)}}})
	text := render(t, r, TextOptions{})
	if len(text) > 5000 || !strings.Contains(text, "(99000 characters more)") {
		t.Errorf("%d bytes, ending %q", len(text), text[max(0, len(text)-200):])
	}
}

func TestACauseThatFindingsShareIsToldOnce(t *testing.T) {
	text := render(t, samples()["failing"], TextOptions{})
	if n := strings.Count(text, "The body is parsed and written anew"); n != 1 {
		t.Errorf("the shared cause is told %d times, want once", n)
	}
	if n := strings.Count(text, "answered 200, each of the 2 times"); n != 1 {
		t.Errorf("the shared answer is told %d times, want once", n)
	}
}

func TestAFixThatAllFindingsShareIsToldOnce(t *testing.T) {
	text := render(t, samples()["failing"], TextOptions{})
	if n := strings.Count(text, "Verify the raw bytes as they came"); n != 1 {
		t.Errorf("the shared fix is told %d times, want once", n)
	}
}

func TestWhatWasNotJudgedIsShortWhereNothingCouldBe(t *testing.T) {
	for name, short := range map[string]bool{"partial": true, "error": true, "interrupted": false, "failing": false, "selection": false} {
		r := samples()[name]
		_, list, _ := strings.Cut(render(t, r, TextOptions{}), "Not judged: ")
		if got := !strings.Contains(list, "receiver."); got != short {
			t.Errorf("%s: short: %t, want %t\n%s", name, got, short, list)
		}
		if _, all, _ := strings.Cut(render(t, r, TextOptions{Verbose: true}), "Not judged: "); !strings.Contains(all, "receiver.limits.slow-body") {
			t.Errorf("%s: --verbose leaves out what was not judged\n%s", name, all)
		}
	}
}

func TestErrorsOfTheWriterAreReturned(t *testing.T) {
	full := errors.New("no space left")
	for name, write := range map[string]func() error{
		"text": func() error { return WriteText(failing{full}, samples()["failing"], TextOptions{}) },
		"JSON": func() error { return WriteJSON(failing{full}, samples()["failing"]) },
	} {
		if err := write(); !errors.Is(err, full) {
			t.Errorf("%s: %v, want %v", name, err, full)
		}
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestDurationsReadWell(t *testing.T) {
	for ms, want := range map[int64]string{0: "0 ms", 999: "999 ms", 1000: "1.0 s", 1949: "1.9 s", 61_000: "1 min 1 s", 600_000: "10 min 0 s"} {
		if got := duration(ms); got != want {
			t.Errorf("duration(%d) = %q, want %q", ms, got, want)
		}
	}
}

func ExampleWriteText() {
	r := &Report{Subject: Subject{Kind: "receiver", Target: "http://127.0.0.1:8080/"}, Profile: "standard-webhooks", Seed: 42, DurationMS: 1900}
	Settle(r, sampleRequirements()[:1], []evidence.Ruling{{Requirement: "receiver.signature.accepts-valid", Level: "MUST", Outcome: evidence.Pass}}, nil)
	var out strings.Builder
	_ = WriteText(&out, r, TextOptions{})
	fmt.Print(out.String())
	// Output:
	// conformant  1 passed  receiver http://127.0.0.1:8080/  profile standard-webhooks  1.9 s  seed 42
}
