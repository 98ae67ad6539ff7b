package receiver

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/conformance/suite"
	fp "github.com/whconform/whconform/fakeprovider"
	"github.com/whconform/whconform/reference/signature"
	"github.com/whconform/whconform/reference/wire"
)

// PreflightScenario is recorded before all others: a valid delivery. What needs
// an acceptance is reached only if it is accepted in the provider's time.
const PreflightScenario = "receiver.signature.accepts-valid"

const (
	validLabel = "a valid delivery"
	// bareLabel names the first delivery where only one with a browser's
	// headers was accepted after it. It is a control then, not a probe.
	bareLabel = "control: a valid delivery with no more headers than a provider sends"
	richLabel = "a valid delivery with a browser's headers"

	factAccepted = "accepted" // label of the delivery that was accepted first
	factNeeds    = "needs"    // the headers without which none was
	factAnswer   = "answer"   // what the profile demands of an answer

	// furtherValid is how many valid deliveries follow the first, at one
	// moment: a provider delivers several at a time, and a handler that works
	// for seconds with one worker is in time only for the first of them.
	furtherValid = 3
	// patience is how much longer than the provider's timeout the first answer
	// is waited for, so that a slow receiver is told from a dead one.
	patience = 2
	// patienceMore is added: profiles with a timeout of 3 s would leave a cold
	// start no room.
	patienceMore = 5 * time.Second

	// startPatience is how long a receiver may answer 5xx at the start of a run:
	// frameworks open their port a second or two before they can work.
	startPatience = 4 * time.Second

	// slowAnswer is how long an answer takes above which probes are sent side
	// by side, so that a run of some hundred deliveries still ends.
	slowAnswer = time.Second
	// slowAtOnce is how many of a scenario's probes are then under way.
	slowAtOnce = 8
)

// Preflight is what the first delivery showed.
type Preflight struct {
	Transcript  evidence.Transcript
	Accepted    bool // in the provider's time: go on
	Unreachable bool // no answer of any kind: there is no verdict
	// Diagnosis explains what is not simply an acceptance; nil if it is.
	Diagnosis *evidence.Finding
}

// JudgedFromPreflight tells whether a requirement is judged even when the
// preflight was not accepted.
func JudgedFromPreflight(id string) bool {
	for _, r := range rules() {
		if r.id == id {
			return r.id == PreflightScenario || r.use == PreflightScenario
		}
	}
	return false
}

// RunPreflight sends a valid delivery. If it is refused, it finds out why, as
// far as other deliveries can tell. It may add to e.Extra what the receiver
// turns out to need.
func RunPreflight(ctx context.Context, e *Env) Preflight {
	var p Preflight
	scenario := suite.Scenario{Name: PreflightScenario, Record: func(ctx context.Context, rec *suite.Recorder) error {
		s := e.session(ctx, rec, PreflightScenario)
		s.preflight(&p)
		return s.err
	}}
	recorded := suite.Record(ctx, suite.Config{}, []suite.Scenario{scenario})
	if len(recorded) == 0 { // ctx had ended before
		recorded = []evidence.Transcript{{Scenario: PreflightScenario, Partial: true}}
	}
	p.Transcript = recorded[0]
	return p
}

func (s *session) preflight(p *Preflight) {
	var answer []string
	if s.Profile.EmptyAnswer {
		answer = append(answer, "empty")
	}
	if s.Profile.NoSetCookie {
		answer = append(answer, "no-set-cookie")
	}
	s.rec.Fact(factAnswer, strings.Join(answer, " "))

	draft, ok := s.draft(s.event())
	if !ok {
		return
	}
	to := s.target()
	to.Answer = patience*s.Profile.AckTimeout + patienceMore
	first := s.exchange(to, validLabel, draft)
	if evidence.Throttles(&first) {
		s.slowDown(&first)
		first = s.exchange(to, validLabel, draft)
	}
	first = s.startingUp(to, draft, first)
	switch {
	case s.over():
	case evidence.Throttles(&first):
		s.rec.Add(first)
		p.Diagnosis = &evidence.Finding{
			Sent: validLabel, Expected: "2xx", Got: suite.Came(&first) + " twice", Exchanges: []string{validLabel},
			Cause: "A rate limit refuses even the first deliveries of a run, or one before it has used the limit up.",
			Fix:   "Lift the limit for this run, or wait until it is over, and lower --rate.",
		}
		s.unreached("the control, a valid delivery, was throttled")
	case first.OK():
		s.rec.Add(first)
		s.rec.Fact(factAccepted, validLabel)
		p.Accepted = true
		if late := s.further(to, &first); late != nil && !s.over() {
			p.Accepted, p.Diagnosis = false, s.lateDiagnosis(late)
			s.unreached("a valid delivery took longer than the provider waits", "receiver.acknowledge.within-provider-timeout")
		}
		s.checkObserver()
	case unreachable(&first):
		s.rec.Add(first)
		p.Unreachable = true
		p.Diagnosis = reachDiagnosis(&first)
	default:
		s.refused(p, first)
	}
}

// startingUp sends again while the receiver answers 5xx: its port may be open
// before its database is.
func (s *session) startingUp(to fp.Target, draft fp.Draft, x wire.Exchange) wire.Exchange {
	bound := time.NewTimer(startPatience)
	defer bound.Stop()
	again := time.NewTicker(startPatience / 10)
	defer again.Stop()
	for !s.over() && x.Response != nil && x.Response.Status >= 500 && !evidence.Throttles(&x) {
		select {
		case <-again.C:
			x = s.exchange(to, validLabel, draft)
		case <-bound.C:
			return x
		case <-s.ctx.Done():
			return x
		}
	}
	return x
}

// further sends more valid deliveries, unless the first was late already, and
// returns one that was answered too late for the provider, or nil. It notes
// when answers are slow, so that the run sends more at a time.
func (s *session) further(to fp.Target, first *wire.Exchange) (late *wire.Exchange) {
	slowest := first
	if first.Took <= s.Profile.AckTimeout {
		more := make([]wire.Exchange, furtherValid)
		var sending sync.WaitGroup
		for i := range more {
			if draft, ok := s.draft(s.event()); ok {
				sending.Go(func() { more[i] = s.sendTo(to, fmt.Sprintf("valid delivery %d", i+2), draft) })
			}
		}
		sending.Wait()
		for i := range more {
			if more[i].Took > slowest.Took {
				slowest = &more[i]
			}
		}
	}
	s.Slow = slowest.Took > slowAnswer
	if slowest.Took > s.Profile.AckTimeout {
		return slowest
	}
	return nil
}

func (s *session) lateDiagnosis(late *wire.Exchange) *evidence.Finding {
	return &evidence.Finding{
		Sent: late.Label, Expected: fmt.Sprintf("2xx within %v, the provider's timeout", s.Profile.AckTimeout),
		Got:   fmt.Sprintf("%s after %v", suite.Came(late), late.Took.Round(100*time.Millisecond)),
		Cause: "The work is done inside the request. The provider has given up by then and will send again.",
		Fix:   "Store the event, answer, and work on it afterwards.", Exchanges: []string{late.Label},
	}
}

// unreachable: no statement about a webhook receiver can be made. A connection
// that is closed or reset without an answer is one: it crashed.
func unreachable(x *wire.Exchange) bool {
	switch x.Fault {
	case wire.FaultRefused, wire.FaultDNS, wire.FaultTLS, wire.FaultNotHTTP, wire.FaultTimeout:
		return true
	}
	return false
}

func reachDiagnosis(x *wire.Exchange) *evidence.Finding {
	causes := map[string]string{
		wire.FaultRefused: "Nothing listens there. Is the receiver running, and is the port right?",
		wire.FaultDNS:     "The host name does not resolve. Is it spelt right?",
		wire.FaultTLS:     "The TLS handshake failed. For a private authority give its certificate by --cacert; --insecure goes on without verification and reports the fault; for a plain port write http://.",
		wire.FaultNotHTTP: "Another protocol is spoken there. For a TLS port write https://.",
		wire.FaultTimeout: "The receiver took the delivery and never answered. Does its handler block, for example on a database?",
	}
	return &evidence.Finding{Sent: validLabel, Expected: "an answer", Got: x.FaultDetail, Cause: causes[x.Fault], Exchanges: []string{x.Label}}
}

// refused looks for the reason of a refusal, and goes on if a browser's headers
// were all that was missing.
func (s *session) refused(p *Preflight, first wire.Exchange) {
	finding := evidence.Finding{
		Sent: validLabel, Expected: "2xx", Got: suite.Came(&first), Exchanges: []string{validLabel},
		Cause: notAnAnswer(&first),
		Fix:   "Compare the secret, the scheme (--profile) and the path of the URL with the receiver's configuration, then run `whconform explain " + PreflightScenario + "`.",
	}
	p.Diagnosis = &finding
	var shown []string
	if first.Response != nil && first.Response.Status >= 300 && first.Response.Status < 400 {
		location, _ := wire.Get(first.Response.Headers, "Location")
		finding.Got += fmt.Sprintf(", to %q", location)
		finding.Fix = "Give the URL that answers, in its final form."
		shown = append(shown, "receiver.acknowledge.no-redirect")
	}
	if first.Response != nil && first.Response.Status >= 400 && first.Response.Status < 500 && first.Response.Status != 404 && first.Response.Status != 405 {
		finding.Cause = "The receiver computes another signature, or refuses the event itself. Is this the secret it is configured with?"
		if s.browserNeeded(p, first) {
			return
		}
		s.diagnose(&finding)
	}
	s.rec.Add(first)
	s.unreached("the control, a valid delivery, was not accepted: "+suite.Came(&first), shown...)
}

// browserNeeded tries the delivery with a browser's headers. If that is
// accepted, the run goes on with them.
func (s *session) browserNeeded(p *Preflight, first wire.Exchange) bool {
	browser := []wire.Header{
		{Name: "Accept", Value: "text/html,application/json;q=0.9,*/*;q=0.8"}, {Name: "Accept-Language", Value: "en"},
		{Name: "Cookie", Value: "session=whconform; csrftoken=whconform"}, {Name: "X-CSRFToken", Value: "whconform"},
		{Name: "X-Requested-With", Value: "XMLHttpRequest"}, {Name: "Origin", Value: s.origin()}, {Name: "Referer", Value: s.origin() + "/"},
	}
	agent := "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
	for _, try := range []struct {
		needs   string
		headers []wire.Header
		changes []fp.Alteration
	}{
		{"a browser's headers (Accept, Cookie, Origin, Referer, …)", browser, nil},
		{"a browser's headers and User-Agent", browser, []fp.Alteration{fp.SetHeader("User-Agent", agent)}},
	} {
		draft, ok := s.draft(s.event(), try.changes...)
		if !ok {
			return false
		}
		to := s.target()
		to.Headers = append(to.Headers, try.headers...)
		x := s.exchange(to, richLabel, draft)
		if !x.OK() {
			continue
		}
		if len(try.changes) > 0 {
			// Every delivery needs it, and a header of the run's own goes first.
			try.headers = append(try.headers, wire.Header{Name: "User-Agent", Value: agent})
		}
		s.Extra = append(s.Extra, try.headers...)
		first.Label = bareLabel
		s.rec.Add(first)
		s.rec.Add(x)
		s.rec.Fact(factAccepted, richLabel)
		s.rec.Fact(factNeeds, try.needs)
		p.Accepted, p.Diagnosis = true, nil
		return true
	}
	return false
}

func (s *session) origin() string {
	target := s.Subject.Target(0).URL
	scheme, rest, _ := strings.Cut(target, "://")
	host, _, _ := strings.Cut(rest, "/")
	return scheme + "://" + host
}

// diagnose sends deliveries that are right for one common mistake each. The
// first that is accepted names the mistake.
func (s *session) diagnose(finding *evidence.Finding) {
	for i, guess := range s.guesses() {
		x := s.deliver(fmt.Sprintf("control: diagnosis %d, %s", i+1, guess.label), guess.changes...)
		if x.OK() {
			finding.Cause, finding.Fix = guess.cause, guess.fix
			finding.Exchanges = append(finding.Exchanges, x.Label)
			return
		}
		if offset, ok := clockOffset(&x); ok && i == 0 && s.tolerance() > 0 && (offset > s.tolerance() || offset < -s.tolerance()) {
			finding.Cause = fmt.Sprintf("The receiver's clock is %v off, by its Date header: every timestamp lies outside its tolerance.", offset.Round(time.Second))
			finding.Fix = "Set the clock of one of the two machines."
			return
		}
	}
}

type guess struct {
	label, cause, fix string
	changes           []fp.Alteration
}

func (s *session) guesses() []guess {
	text := s.Keys.Texts.Current
	guesses := []guess{
		{"signed with the secret's text", "The receiver uses the secret's text as the key, prefix included, instead of the bytes that its base64 part stands for.",
			"Decode what follows whsec_ as base64 and use those bytes as the HMAC key.", []fp.Alteration{fp.WithKeys(signature.RawKey("the secret's text", []byte(text)))}},
	}
	if _, bare, ok := strings.Cut(text, "_"); ok {
		guesses = append(guesses, guess{"signed with the secret's text without its prefix", "The receiver uses what follows the prefix as text, without decoding it from base64.",
			"Decode what follows whsec_ as base64 and use those bytes as the HMAC key.", []fp.Alteration{fp.WithKeys(signature.RawKey("the secret's bare text", []byte(bare)))}})
	}
	if s.Keys.Previous != nil {
		guesses = append(guesses, guess{"signed with the second secret given", "The receiver accepts the second secret given and not the first.",
			"Give the receiver's current secret first, or configure the new one at the receiver.", []fp.Alteration{fp.WithKeys(*s.Keys.Previous)}})
	}
	guesses = append(guesses, guess{"with the MAC in hex", "The receiver expects the signature in hex.", "Decode the signature as standard base64.",
		[]fp.Alteration{reencoded("hex", hex.EncodeToString)}})
	if s.Profile.Signature.ID.In == "header" {
		var rename []fp.Alteration
		for _, name := range s.Provider.SignatureHeaders() {
			if rest, ok := strings.CutPrefix(strings.ToLower(name), "webhook-"); ok {
				rename = append(rename, fp.RenameHeader(name, "svix-"+rest))
			}
		}
		if len(rename) > 0 {
			guesses = append(guesses, guess{"with svix-* headers", "The receiver looks for svix-* headers.", "Run with --profile svix, or read the webhook-* headers too.", rename})
		}
	}
	for _, content := range []struct {
		what  string
		atoms []string
	}{{"the body alone", []string{"{raw}"}}, {"the timestamp and the body", []string{"{ts}", ".", "{raw}"}}, {"the id and the body", []string{"{id}", ".", "{raw}"}}} {
		if change, ok := s.signedOver(content.atoms); ok {
			guesses = append(guesses, guess{"signed over " + content.what, "The receiver signs " + content.what + " instead of what the profile says.",
				"Sign " + strings.Join(s.Profile.Signature.Content, "") + " with the raw body.", []fp.Alteration{change}})
		}
	}
	if s.Profile.Signature.Timestamp.Unit == "s" {
		guesses = append(guesses, guess{"with the timestamp in milliseconds", "The receiver reads the timestamp as milliseconds.", "Compare seconds with seconds.",
			[]fp.Alteration{fp.Timestamp(fmt.Sprint(s.Clock.Now().UnixMilli()))}})
	}
	return append(guesses, s.respelledGuesses()...)
}

// signedOver makes tokens over other content than the scheme's.
func (s *session) signedOver(atoms []string) (fp.Alteration, bool) {
	if strings.Join(s.Profile.Signature.Content, "") == strings.Join(atoms, "") {
		return fp.Alteration{}, false
	}
	return s.signedBy(func(spec *signature.Spec) {
		spec.Content = atoms
		spec.ID.Signed = slices.Contains(atoms, "{id}") // a scheme that contradicts itself is refused
	})
}

// signedBy makes tokens with the right secret by a scheme that is not the
// profile's; false where there is no such scheme.
func (s *session) signedBy(edit func(*signature.Spec)) (fp.Alteration, bool) {
	spec := s.Provider.Scheme().Spec()
	edit(&spec)
	other, err := signature.New(spec)
	if err != nil {
		return fp.Alteration{}, false
	}
	return fp.Alteration{Name: "another scheme", Stage: fp.OnTokens, Apply: func(d *fp.Draft) {
		if token, err := other.Token(d.Input, s.Keys.Current); err == nil {
			d.Tokens = []signature.Token{token}
		}
	}}, true
}

// respelledGuesses sign what a JSON library would make of the event and send
// the event itself.
func (s *session) respelledGuesses() []guess {
	var guesses []guess
	for _, lib := range fp.Serializers() {
		guesses = append(guesses, guess{"signed over the body as " + lib.Name + " writes it",
			"The receiver parses the body and writes it again before it checks the signature, as " + lib.Library + " does.", lib.RawBody,
			[]fp.Alteration{{Name: "respelled", Stage: fp.OnTokens, Apply: func(d *fp.Draft) {
				in := d.Input
				body, err := fp.Respell(lib.Name, in.Body)
				if err != nil {
					return
				}
				in.Body = body
				if token, err := s.Provider.Scheme().Token(in, s.Keys.Current); err == nil {
					d.Tokens = []signature.Token{token}
				}
			}}}})
	}
	return guesses
}

// unreached marks what the preflight's transcript cannot show, as nothing was
// accepted in time: every row judged from it but accepts-valid itself and shown.
func (s *session) unreached(why string, shown ...string) {
	for _, r := range rules() {
		if r.use == PreflightScenario && !slices.Contains(shown, r.id) {
			s.rec.Skip(r.id, evidence.NotReached, why)
		}
	}
}
