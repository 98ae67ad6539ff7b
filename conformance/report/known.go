package report

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/whconform/whconform/conformance/catalogue"
	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/reference/wire"
)

// Known is what is known to fail: the reason of each requirement, by id. It
// lets a pipeline go on while old faults are mended, and stop for new ones:
//
//   - a broken MUST or SHOULD that is listed becomes an xfail, which leaves the
//     gate open. The verdict stays: a known fault is a fault;
//   - one that is listed and holds becomes an xpass, which closes the gate, as
//     the list would hide its next fault;
//   - an error is never excused, and neither is what was not reached: nothing
//     is known of the requirement then. A MAY cannot fail.
type Known map[string]string

// Bounds of a list.
const (
	// knownLimit bounds a file that is read, 1 MiB: the whole catalogue with a
	// paragraph for each row is a tenth of it.
	knownLimit = 1 << 20
	// reasonRunes is how long a reason that is made from a finding may be. It
	// is there to be replaced by a better one.
	reasonRunes = 160
)

// ReadKnown reads a list: a line each with a pattern, as [catalogue.Match] takes
// it, then # and the reason, which is required. Empty lines and those that begin
// with # say nothing. Where several patterns match a requirement the first
// gives the reason. A pattern that matches nothing is an error: what it was
// meant for would go unnoticed. All faults are reported, with their lines.
func ReadKnown(r io.Reader) (Known, error) {
	data, err := io.ReadAll(io.LimitReader(r, knownLimit+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading what is known to fail: %w", err)
	case len(data) > knownLimit:
		return nil, fmt.Errorf("reading what is known to fail: larger than %d bytes", knownLimit)
	}
	known := Known{}
	var faults []error
	number := 0
	for line := range bytes.Lines(data) {
		number++
		if err := known.add(strings.TrimSpace(string(line))); err != nil {
			faults = append(faults, fmt.Errorf("line %d: %w", number, err))
		}
	}
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("reading what is known to fail: %w", err)
	}
	return known, nil
}

// add takes in one line.
func (k Known) add(line string) error {
	if line == "" || strings.HasPrefix(line, "#") {
		return nil
	}
	if !utf8.ValidString(line) {
		return errors.New("it is not UTF-8")
	}
	pattern, reason, _ := strings.Cut(line, "#")
	ids, err := catalogue.Match([]string{strings.TrimSpace(pattern)})
	if err != nil {
		return err
	}
	if reason = strings.TrimSpace(reason); reason == "" {
		return fmt.Errorf("no reason is given for %s. Write one behind a #", strings.TrimSpace(pattern))
	}
	for _, id := range ids {
		if _, ok := k[id]; !ok {
			k[id] = reason
		}
	}
	return nil
}

// Excuse returns the results as the list has them. It is pure, and what an
// earlier list made of them does not count.
func Excuse(rows []Result, known Known) []Result {
	out := slices.Clone(rows)
	for i := range out {
		row := &out[i]
		row.Outcome = unexcused(*row)
		row.Known = known[row.ID]
		if row.Known == "" {
			continue
		}
		switch row.Outcome {
		case evidence.Fail, evidence.Warn:
			row.Outcome = evidence.XFail
		case evidence.Pass:
			row.Outcome = evidence.XPass
		}
	}
	return out
}

// unexcused is the outcome without any list.
func unexcused(row Result) evidence.Outcome {
	switch {
	case row.Outcome == evidence.XPass:
		return evidence.Pass
	case row.Outcome == evidence.XFail && row.Level == evidence.Must:
		return evidence.Fail
	case row.Outcome == evidence.XFail:
		return evidence.Warn
	}
	return row.Outcome
}

// Excuse settles the report anew with a list of what is known to fail, in place
// of any that was applied before.
func (r *Report) Excuse(known Known) {
	r.Results = Excuse(r.Results, known)
	r.settle()
}

// WriteKnown writes the list that opens the gate for this report, in the form
// that [ReadKnown] reads: what fails, a line each, its first finding as the
// reason; under strict also what warns. Reasons that were listed already are
// kept, those of requirements that could not be judged this time too. What was
// listed and holds is left out. The error is the writer's.
func WriteKnown(w io.Writer, r *Report) error {
	var out bytes.Buffer
	out.WriteString("# What is known to fail: a requirement or a pattern, then # and the reason.\n")
	for _, row := range r.Results {
		reason := row.Known
		switch row.Outcome {
		case evidence.Fail:
		case evidence.Warn:
			if !r.Strict {
				continue
			}
		case evidence.XFail, evidence.Skipped, evidence.Error:
			if reason == "" {
				continue
			}
		default:
			continue
		}
		if reason == "" {
			reason = firstRunes(summaryOf(row), reasonRunes)
		}
		fmt.Fprintf(&out, "%s  # %s\n", wire.Printable(row.ID), wire.Printable(reason))
	}
	if _, err := w.Write(out.Bytes()); err != nil {
		return fmt.Errorf("writing what is known to fail: %w", err)
	}
	return nil
}

// firstRunes cuts a text at n characters.
func firstRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i] + "…"
		}
		n--
	}
	return s
}
