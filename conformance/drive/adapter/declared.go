package adapter

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
)

// Bounds of what a sender may declare.
const (
	maxSchedule   = 100 // attempts of one message; the documented contracts have 6 and 10
	maxEventTypes = 1000
	maxJitter     = 10 // ten times the delay
)

// memberError is a member of a result that is not what the protocol says.
type memberError struct{ member, problem string }

func (e *memberError) Error() string { return "the member " + e.member + " " + e.problem }

func wrongMember(member, format string, args ...any) error {
	return &memberError{member, fmt.Sprintf(format, args...)}
}

func missing(member string) error { return &memberError{member, "is missing"} }

// memberFault is what is to be said of a result whose member is wrong; ok is
// false for other errors.
func memberFault(err error) (detail string, ok bool) {
	var wrong *memberError
	if errors.As(err, &wrong) {
		return wrong.Error(), true
	}
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) && kind.Field != "" {
		return fmt.Sprintf("the member %s is a %s where %s is expected", kind.Field, kind.Value, kindName(kind.Type.Kind().String())), true
	}
	return "", false
}

// kindName says in words what JSON a kind of Go value is.
func kindName(kind string) string {
	switch {
	case kind == "string":
		return "a text"
	case kind == "slice":
		return "a list"
	case kind == "bool":
		return "true or false"
	case strings.HasPrefix(kind, "int"):
		return "a whole number"
	case strings.HasPrefix(kind, "float"):
		return "a number"
	}
	return "an object"
}

// checkDeclared looks at the numbers that a sender is then held to: what cannot
// be is said here, where the adapter's author reads it, and not as a finding.
func (i *Initialized) checkDeclared() error {
	for _, list := range []struct {
		name string
		list []float64
		more float64 // than which each is
	}{
		{"retrySchedule", i.RetrySchedule, -1},
		{"defaultSchedule", i.DefaultSchedule, -1},
		{"notifyAfter", i.NotifyAfter, 0},
	} {
		if err := checkTimes(list.name, list.list, list.more); err != nil {
			return err
		}
	}
	for _, one := range []struct {
		name   string
		number *float64
		least  float64
	}{
		{"granularity", i.Granularity, 0},
		{"timeout", i.Timeout, 0.001},
		{"connectTimeout", i.ConnectTimeout, 0.001},
		{"retryAfterCap", i.RetryAfterCap, 0},
		{"rotationOverlap", i.RotationOverlap, 0},
		{"disableAfter", i.DisableAfter, 0.001},
		{"failedKept", i.FailedKept, 0},
	} {
		if err := checkSeconds(one.name, one.number, one.least); err != nil {
			return err
		}
	}
	return i.checkOthers()
}

// checkOthers looks at what is no time.
func (i *Initialized) checkOthers() error {
	if j := i.Jitter; j != nil {
		switch {
		case j.Low < -1:
			return wrongMember("jitter.low", "is %v: a delay shortened by more than itself. It is a share: -0.2 for 20 %% less", j.Low)
		case j.High > maxJitter:
			return wrongMember("jitter.high", "is %v. It is a share of the delay: 0.2 for 20 %% more", j.High)
		case j.Low > j.High:
			return wrongMember("jitter.low", "is %v, more than jitter.high, %v", j.Low, j.High)
		}
	}
	if n := i.PerEndpointLimit; n != nil && *n < 1 {
		return wrongMember("perEndpointLimit", "is %d: nothing could be sent", *n)
	}
	if n := i.ErrorBodyKept; n != nil && *n < 0 {
		return wrongMember("errorBodyKept", "is %d", *n)
	}
	for n, status := range i.FinalStatuses {
		if status < 400 || status > 499 {
			return wrongMember(fmt.Sprintf("finalStatuses[%d]", n), "is %d; only those of 400 to 499 can be final", status)
		}
	}
	if err := checkTexts("apiVersions", i.APIVersions, maxEventTypes); err != nil {
		return err
	}
	return checkTexts("eventTypes", i.EventTypes, maxEventTypes)
}

// checkTimes looks at a list of times in seconds; nil is not declared.
func checkTimes(name string, list []float64, more float64) error {
	if list == nil {
		return nil
	}
	if len(list) == 0 {
		return wrongMember(name, "is empty: leave it out, or give one number for each attempt")
	}
	if len(list) > maxSchedule {
		return wrongMember(name, "has %d entries, more than %d", len(list), maxSchedule)
	}
	for n := range list {
		entry := fmt.Sprintf("%s[%d]", name, n)
		if err := checkSeconds(entry, &list[n], 0); err != nil {
			return err
		}
		if list[n] <= more {
			return wrongMember(entry, "is %v, which is no time to wait", list[n])
		}
	}
	return nil
}

// checkSeconds looks at a time in seconds; nil is not declared.
func checkSeconds(name string, n *float64, least float64) error {
	switch {
	case n == nil:
		return nil
	case math.IsNaN(*n) || *n < least:
		return wrongMember(name, "is %v seconds, less than %v", *n, least)
	case *n > maxSeconds:
		return wrongMember(name, "is %v seconds, more than ten years. Times are in seconds", *n)
	}
	return nil
}

func checkText(name, text string, least, most int) error {
	switch {
	case text == "" && least > 0:
		return wrongMember(name, "is missing or empty")
	case len(text) > most:
		return wrongMember(name, "has %d bytes, more than %d", len(text), most)
	}
	return nil
}

func checkTexts(name string, list []string, most int) error {
	if len(list) > most {
		return wrongMember(name, "has %d entries, more than %d", len(list), most)
	}
	for n, text := range list {
		if err := checkText(fmt.Sprintf("%s[%d]", name, n), text, 1, maxText); err != nil {
			return err
		}
	}
	return nil
}

func checkWord(name, word string, words ...string) error {
	for _, w := range words {
		if w == word {
			return nil
		}
	}
	if word == "" {
		return missing(name)
	}
	return wrongMember(name, "is %.40q, not one of %s", word, strings.Join(words, ", "))
}
