package sender

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/reference/signature"
)

const (
	verifiesRow = "sender.signature.verifies"
	anyContent  = "sender.signature.any-content"
	secretForm  = "sender.signature.secret-form"
	timestamp   = "sender.signature.timestamp-now"
	ed25519Row  = "sender.signature.ed25519"

	// severalEvents are published to one endpoint to compare their ids.
	severalEvents = 10
	// severalEndpoints are made to compare their secrets.
	severalEndpoints = 4
	// clockError is how far a timestamp may be from the attempt. source: 07.
	clockError = 5 * time.Second
)

// sender.signature: every attempt proves where it comes from.
func signatureRules() []rule {
	return []rule{
		{id: verifiesRow, record: recordVerifies, judge: all(arrived(plainName, 1, ""), judgeVerifies)},
		{id: "sender.signature.tokens", use: verifiesRow, judge: judgeTokens},
		{id: anyContent, record: recordContents, judge: judgeContents},
		{id: anyContent + ".refused", use: anyContent, judge: reportRefused},
		{id: secretForm, record: recordSecrets, judge: judgeSecretForm},
		{id: "sender.signature.secret-per-endpoint", use: secretForm, judge: judgeShared},
		{id: "sender.signature.id-unique", use: verifiesRow, judge: judgeIDs},
		{id: timestamp, use: verifiesRow, judge: judgeTimestamps},
		{id: ed25519Row, record: recordEd25519, judge: all(arrived(asymmetricName, 1, ""), judgeEd25519)},
	}
}

// recordVerifies publishes events that arrive at once and one that takes several
// attempts.
func recordVerifies(s *session) {
	if in := s.Profile.Signature.Timestamp.In; in != "header" && in != "signature" {
		s.skip(timestamp, evidence.NotApplicable, "the profile's requests carry no time beside the payload")
	}
	retried, plain := s.endpoint(retriedName, "500*2,200"), s.endpoint(plainName, "200")
	retried.publish()
	for range severalEvents {
		plain.publish()
	}
	plain.await(severalEvents, s.within(1))
	for _, n := range []int{3, 2} {
		if s.affords(s.within(n)) {
			retried.await(n, s.within(n))
			return
		}
	}
}

func judgeVerifies(t *evidence.Transcript) []evidence.Finding {
	return eachAttempt("a signature by the endpoint's secret over the bytes that arrived", func(_ *evidence.Transcript, a *attempt) (string, string) {
		if a.verified() {
			return "", ""
		}
		return a.unverified()
	})(t)
}

func judgeTokens(t *evidence.Transcript) []evidence.Finding {
	f := readForm(t)
	return eachAttempt("signatures as the profile spells them: "+f.Grammar, func(_ *evidence.Transcript, a *attempt) (string, string) {
		value := header(a, f.Header)
		if value == "" {
			return "there is no " + f.Header, ""
		}
		return f.wrong(value)
	})(t)
}

// judgeIDs looks at the endpoint that takes everything: there each request is
// an event of its own.
func judgeIDs(t *evidence.Transcript) []evidence.Finding {
	const expected = "an id that no other event has, without a full stop, of characters that are safe in a header"
	var findings []evidence.Finding
	seen := map[string]attempt{}
	for _, a := range attempts(t, plainName) {
		before, repeated := seen[a.ID]
		seen[a.ID] = a
		switch unsafe := unsafeIn(a.ID); {
		case a.ID == "":
			findings = append(findings, finding(described(&a), expected, "it carries no id", "", a))
		case repeated:
			findings = append(findings, finding(described(&a), expected, fmt.Sprintf("the id %q again, of another event", cut(a.ID)),
				"Ids are made from the type or the content, or counted anew, or the first event was sent again after its 200.", before, a))
		case unsafe != "":
			findings = append(findings, finding(described(&a), expected, fmt.Sprintf("the id %q, with %s", cut(a.ID), unsafe), "", a))
		}
	}
	return findings
}

// unsafeIn names the first character of an id that does not belong there.
func unsafeIn(id string) string {
	for _, r := range id {
		switch {
		case r == '.':
			return "a full stop, which makes the signed text ambiguous"
		case r <= ' ' || r > '~':
			return fmt.Sprintf("%q", r)
		}
	}
	return ""
}

// judgeTimestamps looks at every attempt, but a retry that carries its first
// attempt's time: that is for sender.retry.fresh-timestamp to tell.
func judgeTimestamps(t *evidence.Transcript) []evidence.Finding {
	f := readForm(t)
	first := map[string]string{} // message -> timestamp
	return eachAttempt(fmt.Sprintf("the time of the attempt in whole seconds, within %v", clockError), func(_ *evidence.Transcript, a *attempt) (string, string) {
		text, there := f.timestamp(a)
		if !there {
			return "it carries no timestamp", ""
		}
		before, retry := first[a.ID]
		if !retry {
			first[a.ID] = text
		}
		at, ok := f.instant(text)
		off := a.Began.Truncate(time.Second).Sub(at)
		switch {
		case retry && text == before:
			return "", ""
		case !ok:
			return fmt.Sprintf("the timestamp is %q", cut(text)), "A fraction, a date, or a number with blanks or a sign is written where whole seconds are expected."
		case off.Abs() <= clockError:
			return "", ""
		case a.Began.UnixMilli()/1000 == at.Unix()/1000:
			return "the timestamp is " + text + ", in milliseconds", "Most languages' clocks count milliseconds."
		}
		return fmt.Sprintf("the timestamp is %v off", shown(off.Abs())), "The time of the event is sent, the sender's clock is wrong, or local time was taken for UTC."
	})(t)
}

// Content.

const (
	contentName = "any content"
	// contentFact begins the name of a fact: "content: N" is the SHA-256 of the
	// payload that was published as event N and what it is. declinedFact: of one
	// that publishing refused.
	contentFact  = "content: "
	declinedFact = "refused: "
)

// recordContents publishes every payload of the corpus byte for byte.
func recordContents(s *session) {
	if !s.control() {
		return
	}
	id := ""
	if s.Profile.Signature.ID.In == "body" {
		id = s.Profile.IDPrefix + "whconform_any_content"
	}
	e := s.endpoint(contentName, "200")
	corpus, err := contents(e.eventType, id, s.now())
	if err != nil {
		s.fail(err)
		return
	}
	if s.Bounds.Sparse {
		const small = 128 << 10 // larger ones differ in nothing else
		corpus = slices.DeleteFunc(corpus, func(c content) bool { return len(c.body) > small })
	}
	accepted := 0
	for _, c := range corpus {
		_, err := e.tryPublish(drive.Event{Raw: c.body})
		switch {
		case s.over():
			return
		case refused(err):
			s.rec.Fact(declinedFact+c.what, oneLine(err.Error()))
			continue
		case err != nil:
			s.fail(fmt.Errorf("publishing %s: %w", c.what, err))
			return
		}
		accepted++
		sum := sha256.Sum256(c.body)
		s.rec.Fact(fmt.Sprintf("%s%d", contentFact, accepted), hex.EncodeToString(sum[:])+" "+c.what)
	}
	if accepted == 0 {
		s.skip(anyContent, evidence.NotObservable, "publishing refuses every payload of exact bytes")
	}
	e.await(accepted, s.within(1))
	s.settle()
}

// oneLine makes a sender's message fit for a report.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > 200 {
		text = text[:200] + "…"
	}
	return text
}

// judgeContents finds the request of each accepted payload, by the message's id
// or by its bytes, and expects it to verify over the bytes received.
func judgeContents(t *evidence.Transcript) []evidence.Finding {
	var findings []evidence.Finding
	got := attempts(t, contentName)
	used := make([]bool, len(got))
	find := func(p publication, digest string) *attempt {
		i := slices.IndexFunc(got, func(a attempt) bool { return slices.Contains(p.IDs, a.ID) })
		if i < 0 {
			i = slices.IndexFunc(got, func(a attempt) bool { return a.digest() == digest })
		}
		if i < 0 {
			return nil
		}
		used[i] = true
		return &got[i]
	}
	var missing []string
	for n, p := range published(t, contentName) {
		digest, what, _ := strings.Cut(t.Facts[fmt.Sprintf("%s%d", contentFact, n+1)], " ")
		a := find(p, digest)
		switch {
		case a == nil:
			missing = append(missing, what)
		case !a.verified():
			wrong, cause := a.unverified()
			if a.digest() != digest && cause == "" {
				cause = "Other bytes arrive than were published: the signature was made before they were written again."
			}
			findings = append(findings, finding(what, "a signature that verifies over the bytes received", wrong, cause, *a))
		}
	}
	// What cannot be told apart by id or bytes is counted.
	spare := len(got)
	for _, is := range used {
		if is {
			spare--
		}
	}
	if spare < len(missing) {
		findings = append(findings, evidence.Finding{
			Sent: strings.Join(missing, "; "), Expected: "what publishing accepted to arrive", Got: "it never came",
			Cause: "The payload was accepted and an error met while sending it, for instance when it is read back as text or as JSON.",
		})
	}
	for i := range got {
		if !used[i] && !got[i].verified() {
			wrong, cause := got[i].unverified()
			findings = append(findings, finding(described(&got[i]), "a signature that verifies over the bytes received", wrong, cause, got[i]))
		}
	}
	return findings
}

// digest is the SHA-256 of the request's body, in hex.
func (a *attempt) digest() string {
	if a.Digest != "" {
		return a.Digest
	}
	sum := sha256.Sum256(a.Request.Body)
	return hex.EncodeToString(sum[:])
}

func reportRefused(t *evidence.Transcript) []evidence.Finding {
	var facts []evidence.Finding
	for name, text := range t.Facts {
		if what, ok := strings.CutPrefix(name, declinedFact); ok {
			facts = append(facts, evidence.Finding{Sent: what, Got: "publishing refuses it: " + text})
		}
	}
	slices.SortFunc(facts, func(a, b evidence.Finding) int { return strings.Compare(a.Sent, b.Sent) })
	return facts
}

// Secrets.

// factShared names the endpoints that have one secret between them, with " and "
// between the two of a pair and ";" between pairs.
const factShared = "shared secrets"

// recordSecrets makes endpoints and looks at their secrets.
func recordSecrets(s *session) {
	if s.Subject.About().GivenSecrets {
		for _, id := range []string{secretForm, "sender.signature.secret-per-endpoint"} {
			s.skip(id, evidence.NotObservable, "the secret was given to the run, the sender did not make it")
		}
		return
	}
	var shared []string
	var made []*endpoint
	for i := range severalEndpoints {
		e := s.endpoint(fmt.Sprintf("endpoint %d", i+1), "200")
		if e.unmade() {
			return
		}
		for _, other := range made {
			if e.sharesSecret(other) {
				shared = append(shared, other.name+" and "+e.name)
			}
		}
		made = append(made, e)
	}
	s.rec.Fact(factShared, strings.Join(shared, ";"))
}

// sharesSecret tells whether two endpoints have a symmetric secret in common.
func (e *endpoint) sharesSecret(other *endpoint) bool {
	for i, k := range e.keysOf() {
		if k.Kind() != signature.Ed25519Public && slices.Contains(other.textsOf(), e.textsOf()[i]) {
			return true
		}
	}
	return false
}

func judgeSecretForm(t *evidence.Transcript) []evidence.Finding {
	var findings []evidence.Finding
	for name, text := range t.Facts {
		of, is := strings.CutPrefix(name, secretFact)
		if !is || text == secretWell {
			continue
		}
		findings = append(findings, evidence.Finding{
			Sent: "creating " + of, Expected: "a secret in the form of the profile", Got: text,
			Cause: "The secret is made of another number of bytes, in another encoding, or shown without its prefix.",
		})
	}
	slices.SortFunc(findings, func(a, b evidence.Finding) int { return strings.Compare(a.Sent, b.Sent) })
	return findings
}

func judgeShared(t *evidence.Transcript) []evidence.Finding {
	if t.Facts[factShared] == "" {
		return nil
	}
	var findings []evidence.Finding
	for pair := range strings.SplitSeq(t.Facts[factShared], ";") {
		findings = append(findings, evidence.Finding{
			Sent: "creating " + pair, Expected: "a secret for each", Got: "both have the same secret",
			Cause: "The secret is taken from the configuration or derived from the account.",
		})
	}
	return findings
}

// Ed25519.

const asymmetricName = "asymmetric"

// recordEd25519 publishes to an endpoint whose key is public.
func recordEd25519(s *session) {
	e := s.endpoint(asymmetricName, "200")
	if e.unmade() {
		return
	}
	public := ""
	for _, k := range e.keysOf() {
		if k.Kind() == signature.Ed25519Public {
			public = k.Label
		}
	}
	if public == "" {
		s.skip(ed25519Row, evidence.NotObservable, "creating an endpoint returned no public key: return whpk_… as the secret, or behind the symmetric one with a blank between them")
		return
	}
	s.rec.Fact(factPublic, public)
	e.publish()
	e.await(1, s.firstWithin())
}

const factPublic = "public key" // its label

func judgeEd25519(t *evidence.Transcript) []evidence.Finding {
	f := readForm(t)
	return eachAttempt("a v1a signature that verifies under the public key", func(t *evidence.Transcript, a *attempt) (string, string) {
		if slices.Contains(a.By, t.Facts[factPublic]) {
			return "", ""
		}
		for _, e := range f.elements(header(a, f.Header)) {
			if f.Versions[e.label] == signature.Ed25519 {
				return "its " + e.label + " signature does not verify", "The key was exported in another form than its 32 bytes, or a hash was signed instead of the text."
			}
		}
		return "it carries no such signature", ""
	})(t)
}
