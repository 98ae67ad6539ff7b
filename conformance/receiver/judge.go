package receiver

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/conformance/suite"
	"github.com/whconform/whconform/reference/wire"
)

// judge is what a check does: from a transcript to findings.
type judge = func(*evidence.Transcript) []evidence.Finding

// expectation tells what is wrong with one probe's exchange: what came and the
// likely cause. got is "" when nothing is wrong.
type expectation func(t *evidence.Transcript, x *wire.Exchange) (got, cause string)

// each judges every probe of a transcript by one expectation. Controls are not
// probes. A throttled exchange says nothing either way, and neither does one
// that found nobody listening: what ended the receiver came before it.
func each(expected string, wrong expectation) judge {
	return func(t *evidence.Transcript) []evidence.Finding {
		var findings []evidence.Finding
		for i := range t.Exchanges {
			x := &t.Exchanges[i]
			if isControl(x) || evidence.Throttles(x) || x.Fault == wire.FaultRefused {
				continue
			}
			if got, cause := wrong(t, x); got != "" {
				findings = append(findings, evidence.Finding{Sent: x.Label, Expected: expected, Got: got, Cause: cause, Exchanges: []string{x.Label}})
			}
		}
		return findings
	}
}

// all joins the findings of several judges.
func all(judges ...judge) judge {
	return func(t *evidence.Transcript) []evidence.Finding {
		var findings []evidence.Finding
		for _, j := range judges {
			findings = append(findings, j(t)...)
		}
		return findings
	}
}

// only judges the probes whose label begins with one of the prefixes.
func only(j judge, prefixes ...string) judge {
	return filtered(j, func(label string) bool { return hasAnyPrefix(label, prefixes) })
}

// but judges the probes whose label begins with none of the prefixes.
func but(j judge, prefixes ...string) judge {
	return filtered(j, func(label string) bool { return !hasAnyPrefix(label, prefixes) })
}

func filtered(j judge, keep func(label string) bool) judge {
	return func(t *evidence.Transcript) []evidence.Finding {
		part := *t
		part.Exchanges = nil
		for _, x := range t.Exchanges {
			if isControl(&x) || keep(x.Label) {
				part.Exchanges = append(part.Exchanges, x)
			}
		}
		return j(&part)
	}
}

func hasAnyPrefix(s string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(s, p) })
}

func isControl(x *wire.Exchange) bool { return strings.HasPrefix(x.Label, "control") }

// rejected expects a rejection of every probe. cause is the likely cause where
// the receiver accepts what it should refuse; also are further statuses that
// count, where size, type or headers are what is tried.
func rejected(cause string, also ...int) judge {
	return each("a rejection (400, 401, 403 or 422, or what the profile says)", func(t *evidence.Transcript, x *wire.Exchange) (string, string) {
		switch {
		case x.OK():
			return fmt.Sprintf("it was accepted (%d)", x.Response.Status), cause
		case x.Response != nil && (isRejection(t, x.Response.Status) || slices.Contains(also, x.Response.Status)):
			return "", ""
		}
		return suite.Came(x) + ", which is no rejection", notAnAnswer(x)
	})
}

// accepted expects a 2xx for every probe.
func accepted(cause string) judge {
	return each("2xx", func(t *evidence.Transcript, x *wire.Exchange) (string, string) {
		switch {
		case x.OK():
			return "", ""
		case x.Response != nil && isRejection(t, x.Response.Status):
			return "it was " + suite.Came(x), cause
		}
		return "it was not accepted: " + suite.Came(x), notAnAnswer(x)
	})
}

// survived expects an answer of the receiver's own making: anything but a 5xx,
// a dropped connection or a hang. A 4xx is as good as a 2xx.
func survived(cause string) judge {
	return each("2xx or a rejection, no 5xx", func(_ *evidence.Transcript, x *wire.Exchange) (string, string) {
		if x.Response != nil && x.Response.Status < 500 {
			return "", ""
		}
		if cause != "" {
			return suite.Came(x), cause
		}
		return suite.Came(x), notAnAnswer(x)
	})
}

// alive expects the control after the probes to be accepted.
func alive(cause string) judge {
	return func(t *evidence.Transcript) []evidence.Finding {
		x := t.Find(afterLabel)
		if x == nil || x.OK() || evidence.Throttles(x) {
			return nil
		}
		return []evidence.Finding{{
			Sent: "a valid delivery after this scenario's probes", Expected: "2xx", Got: suite.Came(x),
			Cause: cause, Exchanges: []string{afterLabel},
		}}
	}
}

// within expects each probe that was answered to be answered in time.
func within(bound func(*evidence.Transcript) time.Duration, cause string) judge {
	return func(t *evidence.Transcript) []evidence.Finding {
		limit := bound(t)
		return each(fmt.Sprintf("an answer within %v", limit), func(_ *evidence.Transcript, x *wire.Exchange) (string, string) {
			if x.Took <= limit {
				return "", ""
			}
			return fmt.Sprintf("%s after %v", suite.Came(x), x.Took.Round(time.Millisecond)), cause
		})(t)
	}
}

// fastFact is the bound that the run has for "within 1 s".
func fastFact(t *evidence.Transcript) time.Duration { return durationFact(t, factFast) }

func durationFact(t *evidence.Transcript, name string) time.Duration {
	d, err := time.ParseDuration(t.Facts[name])
	if err != nil {
		panic(fmt.Sprintf("the transcript has no duration called %q", name))
	}
	return d
}

// reported lists what came back of each probe, for rows that are told and not
// judged.
func reported(t *evidence.Transcript) []evidence.Finding {
	var facts []evidence.Finding
	for i := range t.Exchanges {
		x := &t.Exchanges[i]
		if !isControl(x) {
			facts = append(facts, evidence.Finding{Sent: x.Label, Got: suite.Came(x), Exchanges: []string{x.Label}})
		}
	}
	return facts
}

func isRejection(t *evidence.Transcript, status int) bool {
	return slices.Contains(t.SplitFact(evidence.FactRejections), strconv.Itoa(status))
}

// notAnAnswer is the likely cause where neither a 2xx nor a rejection came.
func notAnAnswer(x *wire.Exchange) string {
	switch {
	case x.Response == nil && x.Fault == wire.FaultTimeout:
		return "The handler hangs on this delivery, or works on it before it answers."
	case x.Response == nil && x.Fault == wire.FaultRefused:
		return "The receiver no longer listens: its process has ended."
	case x.Response == nil:
		return "The handler crashed on this delivery and took the connection with it, or a server or proxy in front dropped it."
	case x.Response.Status >= 500:
		return "The handler met an error that it does not catch. A provider takes a 5xx for a failure and sends again, for days."
	case x.Response.Status >= 300 && x.Response.Status < 400:
		return "A redirect, often a trailing slash, a login page or http to https. Providers do not follow it."
	case x.Response.Status == 404 || x.Response.Status == 405:
		return "Another route or a framework's guard answered, not the webhook handler."
	case x.Response.Status == 408:
		return "The server gave up reading the request before the handler saw it."
	case x.Response.Status == 413 || x.Response.Status == 415 || x.Response.Status == 431:
		return "A server, proxy or framework in front refuses the request by its size, type or headers before the handler sees it."
	}
	return "Something other than the signature check answered."
}
