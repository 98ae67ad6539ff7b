package drive

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Observer tells what a receiver made of an event: what the wire alone cannot
// show. See [ObserveURL], [ObserveExec], [ObserveLog] and [ObserveControl].
type Observer interface {
	// Processed tells how often the effect of the event id came about, as an
	// outsider counts it. An event that was never seen has 0. The error is an
	// [*ObserverError], or the context's cause.
	Processed(ctx context.Context, id string) (Count, error)
}

// Count is what an observer tells of one event.
type Count struct {
	N      int  // how often the effect came about
	Failed bool // the event stands on the receiver's list of failed ones
	// Unknown says that the observer does not know the event: it answered 404,
	// or the event is missing from its answer. N is 0 then. Where even an event
	// that was acknowledged stays unknown, the observer's address may be wrong.
	Unknown bool
}

// Bounds of an observer.
const (
	// ObserveTimeout bounds one answer: an observer reads one row.
	ObserveTimeout = 5 * time.Second
	// answerMax bounds an answer in bytes. One that lists all events of a run,
	// for a pointer to choose from, has a few megabytes at most.
	answerMax = 8 << 20
	// countMax is the highest count that is believed: no run sends a thousandth
	// of it.
	countMax = 1_000_000_000
	// quoteMax is how much of an answer an error shows, in bytes.
	quoteMax = 160
)

// idSlot is what stands for the event's id in an address, an argument or a
// pattern.
const idSlot = "{id}"

// ObserveOptions are the bounds of an observer, and how it is spoken of. The
// zero value is ready to use.
type ObserveOptions struct {
	// Timeout bounds each answer; 0: ObserveTimeout.
	Timeout time.Duration
	// Redact takes secrets out of what errors show. May be nil.
	Redact func(string) string
}

func (o ObserveOptions) timeout() time.Duration {
	if o.Timeout <= 0 {
		return ObserveTimeout
	}
	return o.Timeout
}

func (o ObserveOptions) clean(text string) string {
	if o.Redact == nil {
		return text
	}
	return o.Redact(text)
}

// quote shows an answer, without secrets, cut. Redaction comes first: half a
// secret would not be known for one.
func (o ObserveOptions) quote(b []byte) string {
	text := o.clean(string(bytes.TrimSpace(b)))
	if len(text) <= quoteMax {
		return strconv.Quote(text)
	}
	return fmt.Sprintf("%q… (%d bytes)", strings.ToValidUTF8(text[:quoteMax], ""), len(b))
}

// ObserverFault is what an observer did wrong.
type ObserverFault string

// The faults.
const (
	ObserverUnreachable ObserverFault = "unreachable" // no contact, or it broke off
	ObserverHangs       ObserverFault = "hangs"       // no answer in time
	ObserverNonsense    ObserverFault = "nonsense"    // an answer that tells no count
	ObserverLies        ObserverFault = "lies"        // a count that cannot be true
	ObserverRefuses     ObserverFault = "refuses"     // it says that it cannot tell now
	ObserverUnfit       ObserverFault = "unfit"       // it cannot tell, however often it is asked
)

// ObserverError says that an observer did not tell the count. It breaks the rows
// that need it, and says nothing about the receiver.
type ObserverError struct {
	Fault    ObserverFault
	Observer string // which, e.g. "--observe http://127.0.0.1:8080/_obs/{id}", without credentials
	ID       string // of the event it was asked for; "" for none
	Got      string // what it did, with its answer quoted, cut and without secrets
	Expected string
	Err      error // the cause below, may be nil
}

func (e *ObserverError) Error() string {
	text := "the observer " + e.Observer
	if e.ID != "" {
		text += ", asked for " + e.ID
	}
	text += ": " + e.Got
	if e.Expected != "" {
		text += "; expected " + e.Expected
	}
	return text
}

// Unwrap returns the cause.
func (e *ObserverError) Unwrap() error { return e.Err }

// passing tells whether asking again may help: the observer may be part of a
// receiver that is just starting.
func passing(err error) bool {
	var of *ObserverError
	if !errors.As(err, &of) {
		return false
	}
	switch of.Fault {
	case ObserverUnreachable, ObserverHangs, ObserverRefuses:
		return true
	}
	return false
}

// expectedCount is what every observer may answer.
const expectedCount = `{"processed": N}, with "failed": true for an event on the list of failed ones, or N alone, a whole number`

// errNoCount says that an answer tells no count; the text behind it says why.
var errNoCount = errors.New("no count")

// parseCount reads an observer's answer: a number, {"processed": n, "failed":
// bool}, or "failed" for an event on the list of failed ones.
func parseCount(answer []byte) (Count, error) {
	d := json.NewDecoder(bytes.NewReader(answer))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return Count{}, fmt.Errorf("%w: it is neither JSON nor a number", errNoCount)
	}
	if d.More() {
		return Count{}, fmt.Errorf("%w: there is more than one value", errNoCount)
	}
	return countOf(v)
}

// countOf reads a count out of a JSON value.
func countOf(v any) (Count, error) {
	switch v := v.(type) {
	case json.Number:
		n, err := wholeNumber(v)
		return Count{N: n}, err
	case string:
		if v == "failed" {
			return Count{Failed: true}, nil
		}
		return Count{}, fmt.Errorf("%w: it is a text", errNoCount)
	case map[string]any:
		return countOfObject(v)
	}
	return Count{}, fmt.Errorf("%w: it is %s", errNoCount, kindOf(v))
}

func countOfObject(v map[string]any) (Count, error) {
	var c Count
	if failed, there := v["failed"]; there {
		is, isBool := failed.(bool)
		if !isBool {
			return Count{}, fmt.Errorf("%w: its member failed is %s", errNoCount, kindOf(failed))
		}
		c.Failed = is
	}
	processed, there := v["processed"]
	if !there {
		return Count{}, fmt.Errorf("%w: the member processed is missing", errNoCount)
	}
	number, isNumber := processed.(json.Number)
	if !isNumber {
		return Count{}, fmt.Errorf("%w: its member processed is %s", errNoCount, kindOf(processed))
	}
	n, err := wholeNumber(number)
	c.N = n
	return c, err
}

// wholeNumber reads a count. 1.0 is not taken: whoever counts has whole numbers.
func wholeNumber(n json.Number) (int, error) {
	count, err := strconv.Atoi(string(n))
	switch {
	case err != nil:
		return 0, fmt.Errorf("%w: the number is not a whole one, or too large", errNoCount)
	case count < 0 || count > countMax:
		return 0, fmt.Errorf("%w: the number is not from 0 to %d", errNoCount, countMax)
	}
	return count, nil
}

// kindOf names the kind of a JSON value.
func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "true or false"
	case json.Number:
		return "a number"
	case string:
		return "a text"
	case []any:
		return "a list"
	}
	return "an object"
}
