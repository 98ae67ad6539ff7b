package sender

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/conformance/evidence"
)

const (
	ssrfHTTPS    = "sender.ssrf.https-only"
	ssrfInternal = "sender.ssrf.refuses-internal"
	ssrfResolves = "sender.ssrf.resolves-at-send"
)

func ssrfRules() []rule {
	return []rule{
		{id: ssrfHTTPS, record: recordHTTPS, judge: judgeHTTPS},
		// Alone, as what hangs in connecting looks like what is about to arrive: while
		// the timeline allows for it, it knows less of everybody's attempts.
		{id: ssrfInternal, record: recordInternal, judge: judgeInternal, alone: true},
		{id: ssrfResolves, record: recordResolves, judge: judgeInternal, alone: true},
	}
}

// publicAddress lies in the part of IPv6 that is for the public internet and
// given to nobody: a sender has no reason to refuse it, and whoever connects to
// it reaches nobody.
// source: IANA IPv6 Global Unicast Address Assignments.
const publicAddress = "3000::1"

// reached is what became of an endpoint at an address: a fact, as JSON.
type reached struct {
	URL         string `json:"url"`                   // without the port, which is another in every run
	Refused     string `json:"refused,omitempty"`     // the sender's words on creation
	Connections int    `json:"connections,omitempty"` // that were made there
	Logged      string `json:"logged,omitempty"`      // the error of its attempt in the sender's log
	Unseen      string `json:"unseen,omitempty"`      // why nothing can be said of it
}

// reachedFact begins the names of these facts; a label follows.
const reachedFact = "endpoint at: "

func (s *session) noteReached(label string, r reached) {
	text, err := json.Marshal(r)
	s.fail(err)
	s.rec.Fact(reachedFact+label, string(text))
}

// reachedOf reads them, in the order of their labels.
func reachedOf(t *evidence.Transcript) (labels []string, by map[string]reached) {
	by = map[string]reached{}
	for name, text := range t.Facts {
		label, ok := strings.CutPrefix(name, reachedFact)
		if !ok {
			continue
		}
		var r reached
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			panic(fmt.Sprintf("the fact %q of the transcript cannot be read: %v", name, err))
		}
		by[label] = r
		labels = append(labels, label)
	}
	slices.Sort(labels)
	return labels, by
}

// remove has no more attempts be made to an endpoint, where the sender offers a
// way to. It tells whether there is one.
func (e *endpoint) remove() bool {
	if e.id == "" || !e.s.Offers(drive.Disable) {
		return false
	}
	return e.s.must("deleting an endpoint", func(ctx context.Context) error { return e.s.Subject.DeleteEndpoint(ctx, e.id) })
}

// Labels of the two halves of recordHTTPS.
const (
	plainScheme  = "http"
	secureScheme = "https"
)

// recordHTTPS creates each endpoint twice. That the sender takes https shows
// that it was the scheme that it refused. Nothing is published to either.
func recordHTTPS(s *session) {
	host := "hooks.example.com"
	if s.Names != nil {
		host = "public" + nameZone
		s.Names.Set(host, netip.MustParseAddr(publicAddress))
	}
	proved, taken := false, false
	var refusal error
	for _, host := range []string{host, "[" + publicAddress + "]"} {
		for _, scheme := range []string{plainScheme, secureScheme, strings.ToUpper(plainScheme)} {
			label := scheme + " to " + host
			url := scheme + "://" + host + "/hook"
			e, err := s.endpointAt(label, url)
			if s.over() {
				return
			}
			r := reached{URL: url}
			switch {
			case err != nil:
				r.Refused = err.Error()
			case scheme == secureScheme:
				proved = true
			default:
				taken = true
			}
			if err != nil && scheme == secureScheme {
				refusal = err
			}
			s.noteReached(label, r)
			e.remove()
		}
	}
	if !proved && !taken {
		s.skip(ssrfHTTPS, evidence.NotObservable, "the sender refuses the same endpoints by https as well: %v", refusal)
	}
}

func judgeHTTPS(t *evidence.Transcript) []evidence.Finding {
	var findings []evidence.Finding
	labels, by := reachedOf(t)
	for _, label := range labels {
		if r := by[label]; r.Refused == "" && !strings.HasPrefix(r.URL, secureScheme) {
			findings = append(findings, evidence.Finding{Sent: "an endpoint to be created at " + r.URL, Expected: "it is refused, as events are sent by https only",
				Got: "it was created", Cause: "The scheme is not looked at, or the exception for test environments holds everywhere."})
		}
	}
	return findings
}

// recordInternal creates an endpoint for each spelling and publishes to those
// that the sender takes. Connections to this machine are seen. Elsewhere only
// the sender's own log can tell that there was none; and nothing is published
// there when one has been seen here, or where endpoints cannot be deleted.
func recordInternal(s *session) {
	if !s.control() {
		return
	}
	var here []*caught
	for _, p := range seenProbes() {
		w, err := newTripwire(p.listen)
		port := 443
		if err == nil {
			defer w.close()
			port = w.port()
		}
		here = append(here, s.catch(p.label, p.at(port), w))
	}
	connected := s.watchSeen(here)
	var elsewhere []*caught
	for _, p := range unseenProbes() {
		elsewhere = append(elsewhere, s.catch(p.label, p.url, nil))
	}
	if unseen := s.watchUnseen(elsewhere, !connected); unseen > 0 && !connected {
		s.skip(ssrfInternal, evidence.NotObservable, "the sender takes %s at internal addresses, and nothing shows whether it connects to them; a log with the errors of attempts would (message.attempts, endpoint.delete)", plural(unseen, "endpoint"))
	}
}

// caught is an endpoint at a place that no sender may connect to.
type caught struct {
	reached
	label string
	wire  *tripwire // that is there; nil: none
	e     *endpoint // nil: it was refused
	id    string    // of the message that was published
}

// catch creates an endpoint.
func (s *session) catch(label, url string, wire *tripwire) *caught {
	c := &caught{reached: reached{URL: url}, label: label, wire: wire}
	if wire != nil {
		c.URL = strings.Replace(url, fmt.Sprintf(":%d/", wire.port()), "/", 1)
	}
	e, refusal := s.endpointAt(label, url)
	switch {
	case refusal != nil:
		c.Refused = refusal.Error()
	case !s.over():
		c.e = e
	}
	return c
}

// publish publishes to the endpoint, which may have been taken for nobody.
func (c *caught) publish() {
	ids := c.e.offer()
	if len(ids) > 0 {
		c.id = ids[0]
	}
}

// watchSeen publishes to endpoints on this machine that were created, and tells
// whether somebody connected. Where this system has no such address to listen
// on, an endpoint says nothing.
func (s *session) watchSeen(all []*caught) (connected bool) {
	tried := false
	for _, c := range all {
		if c.e != nil && c.wire != nil {
			c.publish()
			tried = true
		}
	}
	if tried {
		s.untilTried()
	}
	for _, c := range all {
		if c.wire != nil {
			c.Connections = c.wire.count()
			connected = connected || c.Connections > 0
		} else if c.e != nil {
			c.Unseen = "this system has no such address to listen on"
		}
		if c.e != nil {
			c.e.remove()
		}
		s.noteReached(c.label, c.reached)
	}
	return connected
}

// untilTried lets pass the time in which a message that was just published is
// tried, and once more where that is soon.
func (s *session) untilTried() {
	_, first := s.Declared.window(0)
	wait := first + s.Bounds.Settle
	if s.Declared.attemptsAtMost() > 1 {
		if again := s.Declared.begins(1) + 2*s.Declared.ConnectTimeout + s.Bounds.Settle; s.virtual() || again < patienceReal/8 {
			wait = again
		}
	}
	s.until(wait)
}

// watchUnseen publishes to endpoints elsewhere that were created, if it is to,
// and counts those of which nothing can be said.
func (s *session) watchUnseen(all []*caught, publish bool) (unseen int) {
	publish = publish && s.Offers(drive.AttemptLog) && s.Offers(drive.Disable)
	taken := 0
	for _, c := range all {
		if c.e != nil {
			c.Unseen = "no connection to it can be seen"
			taken++
		}
	}
	if publish && taken > 0 {
		s.Timeline.Stuck(taken) // some networks drop what goes to such addresses
		for _, c := range all {
			if c.e != nil {
				c.publish()
			}
		}
		_, first := s.Declared.window(0)
		s.until(first + s.Declared.gaveUpBy())
	}
	for _, c := range all {
		if publish && c.id != "" {
			if log, ok := s.logOf(c.e, c.id); ok && len(log) > 0 {
				c.Logged = log[0].Error
				if log[0].Status == 0 && refusesItself(log[0]) {
					c.Unseen = ""
				}
			}
		}
		if c.e != nil {
			c.e.remove()
		}
		if c.Unseen != "" {
			unseen++
		}
		s.noteReached(c.label, c.reached)
	}
	if publish && taken > 0 {
		s.Timeline.Stuck(-taken)
	}
	return unseen
}

// networkError are words of errors that come of trying to connect.
var networkError = regexp.MustCompile(`(?i)time[d-]? ?out|deadline|connection refused|ECONN|EHOST|ENET|ETIMEDOUT|ENOTFOUND|unreachable|no route|no such host|reset|certificate|x509|tls|handshake|EOF`)

// refusesItself tells whether a log's line is that of an attempt that the sender
// refused before it connected: an error, at once, and not one of the network.
func refusesItself(a drive.LoggedAttempt) bool {
	return a.Error != "" && a.Duration < time.Second && !networkError.MatchString(a.Error)
}

func judgeInternal(t *evidence.Transcript) []evidence.Finding {
	var findings []evidence.Finding
	labels, by := reachedOf(t)
	for _, label := range labels {
		r := by[label]
		if r.Connections == 0 {
			continue
		}
		findings = append(findings, evidence.Finding{Sent: fmt.Sprintf("an event for an endpoint at %s (%s)", r.URL, label), Expected: "the endpoint is refused, or no connection is made",
			Got: fmt.Sprintf("%s there", plural(r.Connections, "connection")), Cause: causeOfConnection(label)})
	}
	return findings
}

func causeOfConnection(label string) string {
	switch {
	case label == nameInside || label == nameMixed:
		return "The URL's text is checked, and not the addresses that its name resolves to."
	case label == nameRebound || label == nameAlternates:
		return "The addresses are checked when the endpoint is created, or by another look-up than the one that is connected by."
	case strings.Contains(label, ","):
		return "The address is compared as text, and this spelling of it is another text."
	}
	return "Addresses are not checked."
}

// Names of recordResolves, as its labels have them.
const (
	nameInside     = "a name that is internal from the start"
	nameMixed      = "a name with an internal address among several"
	nameRebound    = "a name that turned internal after the endpoint was created"
	nameAlternates = "a name that is public when it is looked up first, and then internal"
)

// nameProbe is a name with what it resolves to, answer by answer, before its
// endpoint was created and, where that is another, after it.
type nameProbe struct {
	label, name   string
	before, after [][]netip.Addr
}

func nameProbes(inside netip.Addr) []nameProbe {
	public := netip.MustParseAddr(publicAddress)
	return []nameProbe{
		{nameInside, "inside" + nameZone, [][]netip.Addr{{inside}}, nil},
		{nameMixed, "mixed" + nameZone, [][]netip.Addr{{public, inside}}, nil},
		{nameRebound, "rebound" + nameZone, [][]netip.Addr{{public}}, [][]netip.Addr{{inside}}},
		{nameAlternates, "alternates" + nameZone, [][]netip.Addr{{public}}, [][]netip.Addr{{public}, {inside}}},
	}
}

// recordResolves lets names lead to where no sender may connect to. The fake
// endpoint's own address may be allowed, so they lead to another one of this
// machine.
func recordResolves(s *session) {
	if s.Names == nil {
		s.skip(ssrfResolves, evidence.NotObservable, "the run has no name server of its own")
		return
	}
	inside, found := trapAddress()
	if !found {
		s.skip(ssrfResolves, evidence.NotObservable, "this system has no loopback address beside 127.0.0.1 to listen on")
		return
	}
	if !s.control() {
		return
	}
	var all []*caught
	asked := map[string]int{}
	for _, p := range nameProbes(inside) {
		wire, err := newTripwire(inside.String())
		if err != nil {
			s.fail(err)
			return
		}
		defer wire.close()
		s.Names.Sequence(p.name, p.before...)
		c := s.catch(p.label, fmt.Sprintf("https://%s:%d/hook", p.name, wire.port()), wire)
		if p.after != nil {
			s.Names.Sequence(p.name, p.after...)
		}
		asked[p.label] = s.Names.Asked(p.name)
		all = append(all, c)
	}
	s.Timeline.Stuck(len(all)) // some networks drop what goes to the public address
	connected := s.watchSeen(all)
	moved := 0
	for i, p := range nameProbes(inside) {
		if p.after != nil && all[i].e != nil && s.Names.Asked(p.name) > asked[p.label] {
			moved++
		}
		s.Names.Set(p.name) // what may still be tried ends at once
	}
	s.Timeline.Stuck(-len(all))
	if moved == 0 && !connected {
		s.skip(ssrfResolves, evidence.NotObservable, "the sender did not ask the run's name server when it sent, or refuses every endpoint whose host is a name below %s", strings.TrimPrefix(nameZone, "."))
	}
}

// trapAddress is an address of this machine that no sender was told to allow.
func trapAddress() (netip.Addr, bool) {
	for _, address := range []string{trapIPv4, trapIPv6} {
		if w, err := newTripwire(address); err == nil {
			w.close()
			return netip.MustParseAddr(address), true
		}
	}
	return netip.Addr{}, false
}
