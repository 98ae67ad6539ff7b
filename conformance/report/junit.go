package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/whconform/whconform/conformance/catalogue"
	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/reference/wire"
)

// The elements of JUnit XML that pipelines agree on. Their order within an
// element is that of the schema which Jenkins checks by.
type (
	junitSuites struct {
		XMLName xml.Name   `xml:"testsuites"`
		Name    string     `xml:"name,attr"`
		Counts  junitCount `xml:",any,attr"`
		Suite   junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name       string          `xml:"name,attr"`
		Counts     junitCount      `xml:",any,attr"`
		Timestamp  string          `xml:"timestamp,attr"`
		Properties []junitProperty `xml:"properties>property"`
		Cases      []junitCase     `xml:"testcase"`
		Out        *junitText      `xml:"system-out"`
	}
	junitProperty struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		Time    string        `xml:"time,attr"`
		Skipped *junitProblem `xml:"skipped"`
		Error   *junitProblem `xml:"error"`
		Failure *junitProblem `xml:"failure"`
		Out     *junitText    `xml:"system-out"`
	}
	junitProblem struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr,omitempty"`
		// As CDATA, which keeps line breaks readable in the file itself.
		Text string `xml:",cdata"`
	}
	junitText struct {
		Text string `xml:",cdata"`
	}
)

// junitCount are the attributes that a suite and the whole have in common.
type junitCount []xml.Attr

// WriteJUnit writes the report as JUnit XML, for pipelines that show tests.
// Every requirement is a test case, its group the class. A broken MUST is a
// failure, and so is whatever else closes the gate by itself: a warning under
// strict, and what is listed as known to fail but holds. What could not be
// judged is an error, what was not judged is skipped with its reason, and so is
// what is known to fail. Other warnings, facts and remarks are the output of
// their case. Seed, verdict and gate are properties.
//
// A gate may be closed without any of these: where nothing was judged, or a part
// was not reached. So there is a case more, "verdict", which fails when the gate
// is closed: a pipeline that reads nothing but this file is not green then.
//
// The document is XML 1.0 whatever a subject sent: characters that have no
// place in it are escaped as in the text form. The error is the writer's.
func WriteJUnit(w io.Writer, r *Report) error {
	suite := junitSuite{
		Name:      line("whconform " + r.Subject.Kind),
		Timestamp: r.Began.UTC().Format("2006-01-02T15:04:05"),
		Properties: []junitProperty{
			{"subject", line(r.Subject.Target)}, {"profile", line(r.Profile)}, {"seed", strconv.FormatUint(r.Seed, 10)},
			{"verdict", line(string(r.Verdict))}, {"gate", line(string(r.Gate))}, {"version", line(r.Suite.Version)},
		},
		Cases: make([]junitCase, len(r.Results), len(r.Results)+1),
	}
	failures, errs, skipped := 0, 0, 0
	for i, row := range r.Results {
		suite.Cases[i] = junitOf(r, row)
		switch c := suite.Cases[i]; {
		case c.Failure != nil:
			failures++
		case c.Error != nil:
			errs++
		case c.Skipped != nil:
			skipped++
		}
	}
	verdict := junitVerdict(r)
	if suite.Cases = append(suite.Cases, verdict); verdict.Failure != nil {
		failures++
	}
	suite.Counts = counted(len(suite.Cases), failures, errs, skipped, r.DurationMS)
	suite.Out = output(func(t *text) {
		t.verdict()
		t.diagnosis()
	}, r)
	out, err := xml.MarshalIndent(junitSuites{Name: "whconform", Counts: suite.Counts, Suite: suite}, "", "  ")
	if err == nil {
		_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, out)
	}
	if err != nil {
		return fmt.Errorf("writing the report as JUnit XML: %w", err)
	}
	return nil
}

func counted(tests, failures, errs, skipped int, ms int64) junitCount {
	attr := func(name, value string) xml.Attr { return xml.Attr{Name: xml.Name{Local: name}, Value: value} }
	return junitCount{
		attr("tests", strconv.Itoa(tests)), attr("failures", strconv.Itoa(failures)), attr("errors", strconv.Itoa(errs)),
		attr("skipped", strconv.Itoa(skipped)), attr("time", seconds(ms)),
	}
}

// junitVerdict is the gate as a test case.
func junitVerdict(r *Report) junitCase {
	c := junitCase{Class: "whconform", Name: "verdict", Time: seconds(0)}
	if r.Gate != Open {
		message := string(r.Verdict) + ", and the gate is closed"
		if len(r.Reasons) > 0 {
			message = string(r.Verdict) + ": " + strings.Join(r.Reasons, "; ")
		}
		c.Failure = &junitProblem{Message: line(message), Type: line(string(r.Verdict))}
	}
	return c
}

// junitOf is one requirement as a test case.
func junitOf(r *Report, row Result) junitCase {
	c := junitCase{Class: line(catalogue.Requirement{ID: row.ID}.Group()), Name: line(row.ID), Time: seconds(row.DurationMS)}
	findings := func(t *text) {
		t.text(0, row.Statement)
		t.all(row.Findings)
	}
	problem := func() *junitProblem {
		return &junitProblem{Message: summaryOf(row), Type: line(row.Level), Text: output(findings, r).Text}
	}
	switch row.Outcome {
	case evidence.Fail:
		c.Failure = problem()
	case evidence.Warn:
		if r.Strict {
			c.Failure = problem()
			break
		}
		c.Out = output(findings, r)
	case evidence.XPass:
		c.Failure = &junitProblem{Message: line(listedFor(row, unexpectedPass)), Type: string(row.Outcome)}
	case evidence.XFail:
		c.Skipped = &junitProblem{Message: line(listedFor(row, "known to fail: "+summaryOf(row)))}
		c.Out = output(findings, r)
	case evidence.Error:
		c.Error = &junitProblem{
			Message: "could not be judged: " + firstLine(row.Detail), Type: string(row.Outcome),
			Text: output(func(t *text) { t.quoted(0, row.Detail) }, r).Text,
		}
	case evidence.Skipped:
		message := string(row.SkipReason)
		if row.SkipDetail != "" {
			message += ": " + row.SkipDetail
		}
		c.Skipped = &junitProblem{Message: line(message)}
	case evidence.Info:
		c.Out = output(func(t *text) { t.factsOf(row, 0) }, r)
	case evidence.Pass:
		c.Out = output(func(t *text) {
			if row.Remark != "" {
				t.text(0, row.Remark)
			}
		}, r)
	}
	return c
}

// listedFor adds why a requirement is known to fail.
func listedFor(row Result, message string) string {
	if row.Known == "" {
		return message
	}
	return strings.TrimSuffix(shorter(message), ".") + ". Listed for: " + row.Known
}

// output is a part of the text form, which is safe and readable; nil if it is
// empty.
func output(write func(*text), r *Report) *junitText {
	t := &text{page: page{width: DefaultWidth}, report: r}
	write(t)
	if t.Len() == 0 {
		return nil
	}
	return &junitText{t.String()}
}

// summaryOf is the first finding on one line.
func summaryOf(row Result) string {
	if len(row.Findings) == 0 {
		return line(row.Statement)
	}
	f := row.Findings[0]
	message := f.Got
	if f.Sent != "" {
		message = f.Sent + ": " + f.Got
	}
	if f.Expected != "" {
		message += "; expected " + f.Expected
	}
	if more := len(row.Findings) - 1; more > 0 {
		message = shorter(message) + fmt.Sprintf(" (and %d more)", more)
	}
	return line(message)
}

// line is a value in one line without anything that acts on a reader.
func line(text string) string { return wire.Printable(shorter(text)) }

func firstLine(text string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line(first)
}

func seconds(ms int64) string {
	return strconv.FormatFloat((time.Duration(ms) * time.Millisecond).Seconds(), 'f', 3, 64)
}
