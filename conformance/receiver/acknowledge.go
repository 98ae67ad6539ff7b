package receiver

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/conformance/suite"
	fp "github.com/whconform/whconform/fakeprovider"
	"github.com/whconform/whconform/reference/wire"
)

// receiver.acknowledge: a fast 2xx.
func acknowledgeRules() []rule {
	const burst, poison = "receiver.acknowledge.burst", "receiver.acknowledge.poison-event"
	const inline = "The work is done inside the request. Store the event, answer, and work on it afterwards."
	return []rule{
		{
			id: "receiver.acknowledge.within-provider-timeout", use: PreflightScenario,
			judge: within(ackFact, inline+" The provider gives up and sends again, and the same work begins a second time."),
		},
		{
			id:    "receiver.acknowledge.fast",
			alone: true,
			record: func(s *session) {
				if s.control() {
					s.volley("valid delivery", fastDeliveries, fastAtOnce, s.Bounds.Fast, true)
				}
			},
			judge: all(
				eachAccepted("100 valid deliveries, 8 at a time", "Some of several valid deliveries at a time meet an error."),
				quick("100 valid deliveries, 8 at a time", fastFact, inline)),
		},
		{
			id:    burst,
			alone: true,
			record: func(s *session) {
				if !s.Bounds.Load {
					for _, id := range []string{burst, burst + ".fast"} {
						s.skip(id, evidence.NotDeclared, "a burst is a load: add --allow-load")
					}
					return
				}
				if s.control() {
					s.volley("delivery of the burst,", s.Bounds.BurstSize, burstAtOnce, s.Bounds.Burst, false)
				}
			},
			judge: each("an answer within the provider's timeout", func(t *evidence.Transcript, x *wire.Exchange) (string, string) {
				if x.Fault == wire.FaultTimeout || x.Took > ackFact(t) {
					return fmt.Sprintf("%s after %v", suite.Came(x), x.Took.Round(time.Millisecond)), "Deliveries wait for one another: a lock, a pool of connections, a single worker, or the listen backlog of the server (5 in Python's socketserver)."
				}
				return "", ""
			}),
		},
		{
			id: burst + ".fast", use: burst,
			judge: all(
				eachAccepted("a burst of valid deliveries, 64 at a time", "A backlog, a pool or a rate limit is smaller than a common burst."),
				quick("a burst of valid deliveries, 64 at a time", func(t *evidence.Transcript) time.Duration { return durationFact(t, factBurst) },
					"Deliveries wait for one another: a lock, a pool of connections, a single worker, or the listen backlog of the server (5 in Python's socketserver).")),
		},
		{
			id: "receiver.acknowledge.no-redirect", use: PreflightScenario,
			judge: each("no 3xx", func(_ *evidence.Transcript, x *wire.Exchange) (string, string) {
				if x.Response == nil || x.Response.Status < 300 || x.Response.Status > 399 {
					return "", ""
				}
				to, _ := wire.Get(x.Response.Headers, "Location")
				return fmt.Sprintf("%s, to %q", suite.Came(x), to), "The registered URL is not the final one: a trailing slash, http instead of https, or a login page. Providers do not follow redirects."
			}),
		},
		{id: "receiver.acknowledge.handshake", record: recordHandshake, judge: judgeHandshake},
		{id: "receiver.acknowledge.answer", use: PreflightScenario, judge: judgeAnswer},
		{
			id:     poison,
			record: recordPoison,
			judge: each("no 5xx", func(_ *evidence.Transcript, x *wire.Exchange) (string, string) {
				if x.Response != nil && x.Response.Status < 500 {
					return "", ""
				}
				return suite.Came(x), "The event is worked on before it is answered, so one that cannot be processed fails the delivery and comes again for days."
			}),
		},
		{
			id: poison + ".acknowledged", use: poison,
			judge: acceptedSize("The event is judged by its content before it is answered. Once stored it is the receiver's own problem; the provider cannot mend it."),
		},
		{
			id: "receiver.acknowledge.unknown-type",
			record: func(s *session) {
				if s.control() {
					s.send("an authentic event of an unknown type", s.eventOf("whconform.unknown.type"))
				}
			},
			judge: acceptedSize("Types that the code does not know are refused. Providers add types without asking."),
		},
		{
			id: "receiver.acknowledge.unknown-fields",
			probes: func(s *session) []probe {
				probes := []probe{one("an added field at the top of the payload", fp.AddMember("whconform_added", `{"nested":[1,true,null]}`))}
				if s.eventHas("data") {
					probes = append(probes, one("an added field inside data", editJSON("added inside data", func(event map[string]any) {
						data, _ := event["data"].(map[string]any)
						data["whconform_added"] = "text"
					})))
				}
				return probes
			},
			judge: acceptedSize("The payload is bound to a strict schema. Providers may add fields at any time."),
		},
		{
			id: "receiver.acknowledge.other-version",
			record: func(s *session) {
				if !s.eventHas("api_version") {
					s.skip("receiver.acknowledge.other-version", evidence.NotApplicable, "the payload has no api_version")
					return
				}
				if s.control() {
					for _, version := range []string{"1999-01-01", "2999-12-31"} {
						s.deliver("an event of api_version "+version, editJSON("other version", func(event map[string]any) { event["api_version"] = version }))
					}
				}
			},
			judge: acceptedSize("The version is compared for equality. A provider's upgrade would stop every delivery at once."),
		},
		{
			id: "receiver.acknowledge.bare-minimum", use: PreflightScenario,
			judge: func(t *evidence.Transcript) []evidence.Finding {
				if t.Facts[factNeeds] == "" {
					return nil
				}
				return []evidence.Finding{{
					Sent: bareLabel, Expected: "2xx", Got: suite.Came(t.Find(bareLabel)) + "; with " + t.Facts[factNeeds] + " it was accepted",
					Cause:     "A guard meant for browsers (CSRF, session, content negotiation, bot filter) stands in front of the webhook route.",
					Exchanges: []string{bareLabel},
				}}
			},
		},
		{
			id: "receiver.acknowledge.bare-minimum.no-user-agent",
			probes: func(*session) []probe {
				return []probe{one("no User-Agent", fp.NoUserAgent())}
			},
			judge: reported,
		},
	}
}

// recordPoison sends authentic events that no receiver can process.
func recordPoison(s *session) {
	if !s.control() {
		return
	}
	if s.eventHas() {
		s.deliver("an authentic event about something unknown", editJSON("unknown reference", func(event map[string]any) {
			if data, ok := event["data"].(map[string]any); ok {
				event["data"] = estranged(data)
			} else {
				event["object"] = "whconform-unknown"
			}
		}))
		s.deliver("an authentic event without its data", editJSON("without data", func(event map[string]any) {
			delete(event, "data")
		}))
	}
	s.deliver("an authentic body of malformed JSON", fp.EditBody("malformed", func(b []byte) ([]byte, error) { return b[:len(b)*2/3], nil }))
}

// estranged replaces every value by one that nobody knows.
func estranged(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, value := range v {
			out[name] = estranged(value)
		}
		return out
	case string:
		return "whconform-unknown"
	case float64:
		return 987654321
	}
	return v
}

// judgeAnswer holds the answer against the profile where that is strict, and
// tells what is unusual about it elsewhere.
func judgeAnswer(t *evidence.Transcript) []evidence.Finding {
	x := t.Find(t.Facts[factAccepted])
	if x == nil || x.Response == nil {
		return nil
	}
	strict := t.Facts[factAnswer]
	var findings []evidence.Finding
	found := func(expected, got, cause string) {
		findings = append(findings, evidence.Finding{Sent: "a valid delivery", Expected: expected, Got: got, Cause: cause, Exchanges: []string{x.Label}})
	}
	cookies := wire.Count(x.Response.Headers, "Set-Cookie")
	if strings.Contains(strict, "no-set-cookie") && cookies > 0 {
		found("no Set-Cookie", fmt.Sprintf("%d Set-Cookie lines", cookies), "A session middleware runs on the webhook route.")
	}
	if strings.Contains(strict, "empty") && x.Response.Size > 0 {
		found("an empty body", fmt.Sprintf("a body of %d bytes", x.Response.Size), "The framework writes a default body.")
	}
	if strict != "" {
		return findings
	}
	kind, _ := wire.Get(x.Response.Headers, "Content-Type")
	if strings.HasPrefix(kind, "text/html") {
		found("", "an HTML page answers a valid delivery: is this the webhook's URL?", "")
	}
	if cookies > 0 {
		found("", "the answer sets a cookie, which no provider keeps", "")
	}
	found("", fmt.Sprintf("%s with a body of %d bytes", http.StatusText(x.Response.Status), x.Response.Size), "")
	return findings
}
