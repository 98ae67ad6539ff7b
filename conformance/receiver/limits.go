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

const (
	recommendedSize = 20 << 10 // what Standard Webhooks advises a payload to stay below
	largeHeader     = 1 << 20
	manyTokens      = 1000
	deepLevels      = 30_000
)

// receiver.limits: bad input costs little and breaks nothing.
func limitsRules() []rule {
	const oversize, chunkedOversize = "receiver.limits.rejects-oversize", "receiver.limits.rejects-oversize-chunked"
	const draining = "The body is read to its end before its size or its signature is looked at: anybody can make the receiver take in gigabytes. Some frameworks do so behind a limit too, and throw the rest away."
	return []rule{
		{
			id: "receiver.limits.accepts-recommended-size",
			probes: func(*session) []probe {
				return []probe{one("an event of 20 KiB", fp.FillTo(recommendedSize))}
			},
			judge: acceptedSize("A cap on the body lies below what providers are advised to send."),
		},
		{
			id:     "receiver.limits.accepts-provider-size",
			record: recordProviderSize,
			judge:  acceptedSize("A default cap of the framework, often 100 kB, is smaller than real events of this provider."),
		},
		{
			id: oversize,
			record: func(s *session) {
				if s.control() {
					s.deliver(s.oversizeLabel("declared in Content-Length"), fp.WithKeys(s.Keys.Wrong), fp.Oversize(s.Bounds.Oversize))
					s.afterwards()
				}
			},
			judge: all(oversizeRefused(draining), alive("An oversize body left the receiver unable to serve.")),
		},
		{id: oversize + ".status", use: oversize, judge: oversizeStatus},
		{
			id: chunkedOversize,
			record: func(s *session) {
				if s.control() {
					s.deliver(s.oversizeLabel("in chunks, without Content-Length"), fp.WithKeys(s.Keys.Wrong), fp.Oversize(s.Bounds.Oversize), fp.Chunked())
					s.afterwards()
				}
			},
			judge: all(oversizeRefused(draining+" If it is refused with a Content-Length, only that is compared with the limit, and a chunked body has none."), alive("An oversize body left the receiver unable to serve.")),
		},
		{id: chunkedOversize + ".status", use: chunkedOversize, judge: oversizeStatus},
		{
			id: chunkedOversize + ".bytes", use: chunkedOversize,
			judge: func(t *evidence.Transcript) []evidence.Finding {
				var facts []evidence.Finding
				for i := range t.Exchanges {
					if x := &t.Exchanges[i]; !isControl(x) {
						facts = append(facts, evidence.Finding{Sent: x.Label, Got: fmt.Sprintf("%d bytes of the body had left when it %s (buffers on the way included)", x.Sent, suite.Came(x)), Exchanges: []string{x.Label}})
					}
				}
				return facts
			},
		},

		{
			id:     "receiver.limits.lying-length",
			record: recordLyingLength,
			judge: all(
				but(notAccepted("A failed read of the body ends the handler without a status, which the framework turns into 200, or the body is filled up to its length."), incompleteLabel),
				alive("A body of another length than declared left the receiver unable to serve.")),
		},
		{
			id: "receiver.limits.lying-length.incomplete", use: "receiver.limits.lying-length",
			judge: only(notAccepted("The end of the connection is taken for the end of the body, so an incomplete request counts as a whole one."), incompleteLabel),
		},
		{
			id:     "receiver.limits.lying-length.stalled",
			slow:   true,
			record: func(s *session) { s.heldBody("a body that stops half way", fp.StallAfter(20)) },
			judge:  judgeHeldBody("A worker waits for the rest of a body without a bound on time."),
		},
		{
			id:     "receiver.limits.slow-body",
			slow:   true,
			record: func(s *session) { s.heldBody("a body of one byte at a time", fp.Drip(s.Bounds.Drip)) },
			judge:  judgeHeldBody("The bound on reading starts anew with every byte, or there is none."),
		},

		{
			id: "receiver.limits.huge-header",
			record: func(s *session) {
				if s.control() {
					s.deliver(mebibyteHeader, fp.HugeHeader(largeHeader))
					s.deliver("a header far larger still", fp.HugeHeader(int(s.Bounds.HeaderTop)))
					s.afterwards()
				}
			},
			judge: all(
				only(headerSurvived, mebibyteHeader),
				but(headerRefused, mebibyteHeader),
				alive("A huge header left the receiver unable to serve.")),
		},
		{
			id: "receiver.limits.many-signatures",
			probes: func(*session) []probe {
				return []probe{one("1,000 foreign signatures", fp.Tokens("many", fp.Foreign(manyTokens)))}
			},
			judge: all(
				rejected("Each signature costs work of its own, or splitting the list grows with the square of its length.", http.StatusRequestHeaderFieldsTooLarge, http.StatusRequestEntityTooLarge),
				within(ackFact, "Each signature costs work of its own: compute the expected one once and compare.")),
		},
		{
			id: "receiver.limits.many-signatures.fast", use: "receiver.limits.many-signatures",
			judge: within(fastFact, "Each signature costs work of its own: compute the expected one once and compare."),
		},
		{
			id: "receiver.limits.deep-json",
			record: func(s *session) {
				if s.control() {
					s.deliver("an authentic event with 30,000 nested arrays", fp.DeepJSON(deepLevels))
					s.afterwards()
				}
			},
			judge: alive("The parser's recursion took the process with it."),
		},
		{
			id: "receiver.limits.deep-json.answers", use: "receiver.limits.deep-json",
			judge: survived("Parsing a deeply nested body exhausts the stack, and it is parsed before the answer."),
		},
		{
			id: "receiver.limits.empty-body",
			probes: func(*session) []probe {
				return []probe{one("an authentic empty body", fp.BodyBytes(nil))}
			},
			judge: survived("An empty body is taken for granted to parse."),
		},
		{
			id: "receiver.limits.wrong-method",
			probes: func(s *session) []probe {
				methods := []string{http.MethodPut, http.MethodDelete}
				if h := s.Profile.Handshake; h != "get" && h != "meta_hub" {
					methods = append(methods, http.MethodGet)
				}
				if s.Profile.Handshake != "head" {
					methods = append(methods, http.MethodHead)
				}
				var probes []probe
				for _, m := range methods {
					probes = append(probes, one("an authentic delivery by "+m, fp.Method(m)))
				}
				return probes
			},
			judge: notAccepted("The route takes any method, so links, crawlers and caches can reach the handler."),
		},
		{
			id: "receiver.limits.content-type",
			probes: func(*session) []probe {
				return []probe{one("Content-Type: application/json; charset=utf-8", fp.ContentType("application/json; charset=utf-8"))}
			},
			judge: acceptedSize("The content type is compared as a whole, parameters included."),
		},
		{
			id: "receiver.limits.content-type.none",
			probes: func(*session) []probe {
				return []probe{one("no Content-Type", fp.NoContentType())}
			},
			judge: reported,
		},
		{
			id: "receiver.limits.chunked",
			probes: func(*session) []probe {
				return []probe{one("an authentic body in chunks", fp.Chunked())}
			},
			judge: acceptedSize("Something between the wire and the check knows no chunked bodies and hands on an empty one."),
		},
		{
			id: "receiver.limits.expect-continue",
			probes: func(*session) []probe {
				return []probe{one("an authentic delivery with Expect: 100-continue", fp.Expect100())}
			},
			judge: acceptedSize("The server or a proxy in front refuses the expectation instead of answering 100."),
		},
		{id: "receiver.limits.flood", record: recordFlood, judge: judgeFlood, alone: true, slow: true},
		{id: "receiver.limits.throttles", use: "receiver.limits.flood", judge: judgeThrottles},
		{
			id:     "receiver.limits.alive-after-abuse",
			record: recordAlive,
			judge:  judgeAlive,
			alone:  true,
		},
	}
}

const (
	aliveLabel = "a valid delivery after every other scenario"
	factDied   = "died" // the scenarios that ended the receiver, or what is known of it
)

func recordAlive(s *session) {
	s.rec.Fact(factDied, strings.Join(s.rec.Died(), ", "))
	s.deliver(aliveLabel)
}

// judgeAlive: the receiver still serves, and nothing ended it on the way, also
// if it was started again.
func judgeAlive(t *evidence.Transcript) []evidence.Finding {
	var findings []evidence.Finding
	x := t.Find(aliveLabel)
	if died := t.Facts[factDied]; died != "" {
		finding := evidence.Finding{
			Sent: "the deliveries of " + died, Expected: "a receiver that goes on listening", Got: "it stopped listening and had to be started again",
			Cause: "An exception that nobody catches ends the process, or a supervisor ends it. Everything in flight is lost.",
		}
		if x != nil && x.Fault == wire.FaultRefused {
			finding.Got = "it stopped listening and did not come back, so which of them ended it is not known"
			finding.Fix = "Read the receiver's own output. Run it under --exec CMD, or start it in a loop: then each scenario is tried again by itself, and the delivery that ends it is named."
			return []evidence.Finding{finding}
		}
		findings = append(findings, finding)
	}
	if x != nil && !x.OK() && !evidence.Throttles(x) {
		findings = append(findings, evidence.Finding{
			Sent: aliveLabel, Expected: "2xx", Got: suite.Came(x),
			Cause:     "What was sent before has changed the receiver's state: a lock, a pool, a block list or the process itself.",
			Exchanges: []string{aliveLabel},
		})
	}
	return findings
}

const mebibyteHeader = "a header of 1 MiB"

// acceptedSize is accepted for rows where a rejection by size or type is the
// very fault.
func acceptedSize(cause string) judge {
	return each("2xx", func(_ *evidence.Transcript, x *wire.Exchange) (string, string) {
		switch {
		case x.OK():
			return "", ""
		case x.Response == nil || x.Response.Status >= 500:
			return suite.Came(x), notAnAnswer(x)
		}
		return suite.Came(x), cause
	})
}

// recordProviderSize sends an event as large as the profile's provider sends.
func recordProviderSize(s *session) {
	const id = "receiver.limits.accepts-provider-size"
	if s.Profile.EventBytes <= recommendedSize {
		s.skip(id, evidence.NotApplicable, "the profile names no event larger than %d bytes", recommendedSize)
		return
	}
	if s.control() {
		s.deliver(fmt.Sprintf("an event of %d bytes", s.Profile.EventBytes), fp.FillTo(int(s.Profile.EventBytes)))
	}
}

func (s *session) oversizeLabel(how string) string {
	return fmt.Sprintf("a forged body of %d MiB, %s", s.Bounds.Oversize>>20, how)
}

// oversizeRefused: 413, or another 4xx, or the end of the connection, as long
// as it comes before the whole body has gone. A receiver that drains the body
// has done the work that it should refuse, whatever it answers then.
func oversizeRefused(draining string) judge {
	return each("413 or an early close", func(_ *evidence.Transcript, x *wire.Exchange) (string, string) {
		drained := x.Sent >= x.Request.Size
		switch {
		case x.OK():
			return fmt.Sprintf("it was accepted (%d)", x.Response.Status), draining
		case x.Response != nil && drained:
			return fmt.Sprintf("%s, but only after all %d bytes were read", suite.Came(x), x.Request.Size), draining
		case x.Response != nil && x.Response.Status >= 400 && x.Response.Status < 500:
			return "", ""
		case x.Response != nil:
			return suite.Came(x), notAnAnswer(x)
		case (x.Fault == wire.FaultClosed || x.Fault == wire.FaultReset) && !drained:
			return "", ""
		}
		return suite.Came(x), draining
	})
}

// oversizeStatus: among the refusals only 413 says what is wrong, or 411 where a
// body without a length is not taken at all.
func oversizeStatus(t *evidence.Transcript) []evidence.Finding {
	return each("413 or an early close", func(_ *evidence.Transcript, x *wire.Exchange) (string, string) {
		if x.Response != nil && x.Sent < x.Request.Size && x.Response.Status >= 400 && x.Response.Status < 500 &&
			x.Response.Status != http.StatusRequestEntityTooLarge && x.Response.Status != http.StatusLengthRequired {
			return suite.Came(x), "The size check answers with the status of the signature check. A provider whose event is too large cannot tell what to mend."
		}
		return "", ""
	})(t)
}

const incompleteLabel = "a body that ends short of its Content-Length, signed as far as it came"

// recordLyingLength sends a body that ends before its Content-Length, and one
// that goes on after it, each signed over the whole event; then one that ends
// early and is signed over what comes.
func recordLyingLength(s *session) {
	if !s.control() {
		return
	}
	event := s.event()
	size := int64(len(event.Body))
	s.send("a body cut off 10 bytes before its Content-Length", event,
		fp.EditSentBody("cut off", func(b []byte) ([]byte, error) { return b[:len(b)-10], nil }), fp.DeclaredLength(size), fp.HalfClose())
	s.deliver("a body 5 bytes longer than its Content-Length", fp.DeclaredLength(size-5))
	s.deliver(incompleteLabel, fp.DeclaredLength(size+10), fp.HalfClose())
	s.afterwards()
}

// notAccepted expects anything but a 2xx.
func notAccepted(cause string) judge {
	return each("no 2xx", func(_ *evidence.Transcript, x *wire.Exchange) (string, string) {
		if x.OK() {
			return fmt.Sprintf("it was accepted (%d)", x.Response.Status), cause
		}
		return "", ""
	})
}

// heldBody sends a body that does not come to an end, and valid deliveries
// meanwhile.
func (s *session) heldBody(label string, change fp.Alteration) {
	if !s.control() {
		return
	}
	draft, ok := s.draft(s.event(), change)
	if !ok {
		return
	}
	to := s.target()
	to.Answer = s.Bounds.Stall
	held := make(chan wire.Exchange, 1)
	go func() { held <- s.Provider.Send(s.ctx, to, draft, label) }()
	for i := range 5 {
		s.deliver(fmt.Sprintf("meanwhile: valid delivery %d", i+1))
	}
	x := <-held
	if !s.over() {
		s.rec.Add(x)
	}
}

// judgeHeldBody: others are served meanwhile, and the held connection ends.
func judgeHeldBody(cause string) judge {
	return all(
		only(copiesAccepted("One slow connection holds a worker that others need."), "meanwhile"),
		but(func(t *evidence.Transcript) []evidence.Finding {
			return each("an answer or the end of the connection within "+t.Facts[factStall], func(_ *evidence.Transcript, x *wire.Exchange) (string, string) {
				if x.Fault == wire.FaultTimeout {
					return fmt.Sprintf("the connection was still held after %v", x.Took.Round(time.Second)), cause
				}
				return "", ""
			})(t)
		}, "meanwhile"),
	)
}

// headerSurvived: many right receivers take a header of 1 MiB, others refuse it
// or close.
func headerSurvived(t *evidence.Transcript) []evidence.Finding {
	return each("no 5xx", func(_ *evidence.Transcript, x *wire.Exchange) (string, string) {
		if x.Response != nil && x.Response.Status >= 500 || x.Fault == wire.FaultTimeout {
			return suite.Came(x), "A header larger than expected is met by an error that is not caught."
		}
		return "", ""
	})(t)
}

// headerRefused: no receiver needs a header of many megabytes.
func headerRefused(t *evidence.Transcript) []evidence.Finding {
	return each("a 4xx, or a closed connection", func(_ *evidence.Transcript, x *wire.Exchange) (string, string) {
		if x.Response != nil && x.Response.Status >= 400 && x.Response.Status < 500 {
			return "", ""
		}
		if x.Fault == wire.FaultClosed || x.Fault == wire.FaultReset {
			return "", ""
		}
		return suite.Came(x), "There is no bound on the size of a request's header."
	})(t)
}

func ackFact(t *evidence.Transcript) time.Duration { return durationFact(t, evidence.FactAckTimeout) }
