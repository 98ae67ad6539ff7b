package report

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/whconform/whconform/conformance/evidence"
)

// ReadLimit bounds a document that is read, 256 MiB. A run records some
// hundred exchanges of at most 128 KiB each; ten times that leaves room for
// larger catalogues, and a wrong file named by mistake does not fill the memory.
const ReadLimit = 256 << 20

//go:embed schema.json
var schema string

// Schema returns the JSON Schema (draft 2020-12) of the document.
func Schema() []byte { return []byte(schema) }

// CutShortError says that a document ends before its footer, or that its
// footer tells of more than there is: a run that was killed while it wrote, a
// full disk, a download that broke off. Its numbers mean nothing.
type CutShortError struct{ Detail string }

func (e *CutShortError) Error() string { return "the document was cut short: " + e.Detail }

// WriteJSON writes the report as an indented document, its fields always in the
// same order and the footer last. The error is the writer's.
func WriteJSON(w io.Writer, r *Report) error {
	encoder := json.NewEncoder(w)
	// The texts speak of <, > and &; \u003c would spoil them for a reader.
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(withoutNull(*r)); err != nil {
		return fmt.Errorf("writing the report as JSON: %w", err)
	}
	return nil
}

// withoutNull makes absent lists empty ones, so that readers need no case for
// null. The argument's own lists are not changed.
func withoutNull(r Report) Report {
	r.Reasons = list(r.Reasons)
	r.Subject.Capabilities = list(r.Subject.Capabilities)
	r.Results = append([]Result{}, r.Results...)
	for i := range r.Results {
		r.Results[i].Findings = list(r.Results[i].Findings)
		r.Results[i].Exchanges = list(r.Results[i].Exchanges)
	}
	r.Transcripts = append([]evidence.Transcript{}, r.Transcripts...)
	for i := range r.Transcripts {
		r.Transcripts[i].Exchanges = list(r.Transcripts[i].Exchanges)
	}
	return r
}

func list[T any](l []T) []T {
	if l == nil {
		return []T{}
	}
	return l
}

// ReadJSON reads one document, and nothing but it, up to ReadLimit. It refuses
// another form than SchemaName, a document that was cut short (a
// *CutShortError), and one whose numbers contradict its results. Fields that
// it does not know are left aside: a later version may have added them.
func ReadJSON(r io.Reader) (*Report, error) { return readJSON(r, ReadLimit) }

func readJSON(r io.Reader, limit int) (*Report, error) {
	data, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if err != nil {
		return nil, fmt.Errorf("reading a report: %w", err)
	}
	if len(data) > limit {
		return nil, fmt.Errorf("reading a report: larger than %d bytes", limit)
	}
	report, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("reading a report: %w", err)
	}
	return report, nil
}

func parse(data []byte) (*Report, error) {
	var doc struct {
		Report
		// Shadows the report's own, to tell an absent footer from an empty one.
		End *End `json:"end"`
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	if err := decoder.Decode(&doc); err != nil {
		return nil, syntax(err, data)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("something follows the document at byte %d", decoder.InputOffset())
	}
	if doc.Schema != SchemaName {
		return nil, fmt.Errorf("its schema is %.60q, this version reads %q", doc.Schema, SchemaName)
	}
	if doc.End == nil {
		return nil, &CutShortError{"it has no footer (end)"}
	}
	report := withoutNull(doc.Report)
	report.End = *doc.End
	if err := report.consistent(); err != nil {
		return nil, err
	}
	return &report, nil
}

// syntax tells a document that ends too early from one that is none.
func syntax(err error, data []byte) error {
	var fault *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case len(bytes.TrimSpace(data)) == 0:
		return &CutShortError{"it is empty"}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &CutShortError{fmt.Sprintf("it ends after %d bytes in the middle of a value", len(data))}
	case errors.As(err, &fault):
		line, column := place(data, fault.Offset)
		return fmt.Errorf("no JSON at line %d, column %d: %w", line, column, err)
	case errors.As(err, &kind):
		line, column := place(data, kind.Offset)
		return fmt.Errorf("line %d, column %d: the value of %s cannot be a %s", line, column, strings.TrimPrefix(kind.Field, "Report."), kind.Value)
	}
	return err
}

// place turns an offset as encoding/json counts it, behind the faulty byte,
// into line and column from 1.
func place(data []byte, offset int64) (line, column int) {
	before := data[:max(0, min(offset, int64(len(data)))-1)]
	if offset < 1 {
		before = nil
	}
	return 1 + bytes.Count(before, []byte("\n")), len(before) - bytes.LastIndexByte(before, '\n')
}

// consistent compares what the document says twice.
func (r *Report) consistent() error {
	if r.End.Results != len(r.Results) {
		return &CutShortError{fmt.Sprintf("its footer counts %d results, it holds %d", r.End.Results, len(r.Results))}
	}
	if r.End.Complete == r.Interrupted {
		return fmt.Errorf("its footer says complete: %t, the document interrupted: %t", r.End.Complete, r.Interrupted)
	}
	switch r.Verdict {
	case Conformant, Partial, NotConformant, Broken:
	default:
		return fmt.Errorf("there is no verdict %.40q", r.Verdict)
	}
	if r.Gate != Open && r.Gate != Closed {
		return fmt.Errorf("there is no gate %.40q", r.Gate)
	}
	seen := map[string]bool{}
	for i, row := range r.Results {
		switch {
		case row.ID == "":
			return fmt.Errorf("result %d has no id", i+1)
		case seen[row.ID]:
			return fmt.Errorf("there are two results for %.200q", row.ID)
		case !row.Outcome.Judged() && row.Outcome != evidence.Skipped && row.Outcome != evidence.Error:
			return fmt.Errorf("result %.200q: there is no outcome %.40q", row.ID, row.Outcome)
		}
		seen[row.ID] = true
	}
	if counted := summarize(r.Results); counted != r.Summary {
		return fmt.Errorf("its summary says %s; its results are %s", r.Summary, counted)
	}
	return nil
}
