package sender

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/reference/profile"
	"github.com/whconform/whconform/reference/wire"
)

const (
	requestPost = "sender.request.post"
	apiVersion  = "sender.request.api-version"

	// retriedName is an endpoint whose first answer is an error, plainName one
	// that takes everything.
	retriedName = "retried"
	plainName   = "plain"

	// smallEvent is the largest payload that a SHOULD allows. source: 07, SW.
	smallEvent = 20 << 10

	// eventAge is how long before it is published an event has happened, so that
	// its time differs from that of every attempt.
	eventAge = 90 * time.Second
)

// sender.request: what an attempt looks like. One scenario shows it to all rows
// but the one about versions.
func requestRules() []rule {
	return []rule{
		{id: requestPost, record: recordRequests, judge: judgePost},
		{id: "sender.request.headers", use: requestPost, judge: judgeHeaders},
		{id: "sender.request.content-type", use: requestPost, judge: judgeContentType},
		{id: "sender.request.payload-shape", use: requestPost, judge: judgeShape},
		{id: "sender.request.type-name", use: requestPost, judge: judgeTypeName},
		{id: "sender.request.event-time", use: requestPost, judge: judgeEventTime},
		{id: "sender.request.small", use: requestPost, judge: judgeSmall},
		{id: "sender.request.minified", use: requestPost, judge: reportMinified},
		{id: apiVersion, record: recordVersions, judge: judgeVersions},
		{id: "sender.request.fields-only-added", use: requestPost, judge: judgeFields},
		{id: "sender.request.user-agent", use: requestPost, judge: reportUserAgent},
		{id: "sender.request.no-secret", use: requestPost, judge: judgeNoSecret},
	}
}

// Facts about the profile's requests.
const (
	factHeaders = "profile headers" // their names
	factMembers = "payload members" // at the top of a payload
	factTime    = "time member"     // the one of them that tells when the event happened; absent: none does
	factEventAt = "event time"      // of the events that were published, RFC 3339
)

// recordRequests publishes an event that has to be tried twice, and several of
// one type with fewer and fewer values in them.
func recordRequests(s *session) {
	s.profileFacts()
	at := s.now().Add(-eventAge).Truncate(time.Second)
	s.rec.Fact(factEventAt, at.UTC().Format(time.RFC3339))
	retried, plain := s.endpoint(retriedName, "500,200"), s.endpoint(plainName, "200")
	retried.publishEvent(drive.Event{At: at, Payload: s.payloadWith(retried, at, `"a note"`, `["a","b"]`)})
	for _, values := range [][2]string{{`"a note"`, `["a"]`}, {`""`, `[]`}, {`null`, `null`}} {
		plain.publishEvent(drive.Event{At: at, Payload: s.payloadWith(plain, at, values[0], values[1])})
	}
	plain.await(3, s.within(1))
	if s.affords(s.within(2)) {
		retried.await(2, s.within(2))
	}
}

// payloadWith is an event whose optional members have these values, in JSON.
func (s *session) payloadWith(e *endpoint, at time.Time, note, list string) json.RawMessage {
	data := fmt.Sprintf(`{"for":%q,"amount":4200,"note":%s,"list":%s}`, e.label(), note, list)
	return s.envelope(e.eventType, at, data)
}

// profileFacts records what the profile says of a request.
func (s *session) profileFacts() {
	names := []string{}
	spec := s.Profile.Signature
	if spec.ID.In == "header" {
		names = append(names, spec.ID.Name)
	}
	if spec.Timestamp.In == "header" {
		names = append(names, spec.Timestamp.Name)
	}
	if spec.Signature.In == "header" {
		names = append(names, spec.Signature.Name)
	}
	names = append(names, slices.Sorted(maps.Keys(s.Profile.Headers))...)
	s.rec.Fact(factHeaders, strings.Join(names, " "))

	// What a payload looks like is read from the profile's example of one.
	example := profile.PayloadData{ID: "id", Type: "a.type", Time: s.now().UTC(), Seq: 1, Random: "r4nd0m"}
	text, err := s.Profile.NewPayload(example)
	var members map[string]any
	if err != nil || json.Unmarshal(text, &members) != nil {
		return // a payload that is no JSON object has no members to ask for
	}
	s.rec.Fact(factMembers, strings.Join(slices.Sorted(maps.Keys(members)), " "))
	for name, value := range members {
		if value == example.Now() {
			s.rec.Fact(factTime, name)
		}
	}
}

func judgePost(t *evidence.Transcript) []evidence.Finding {
	findings := arrived(plainName, 1, "")(t)
	return append(findings, eachAttempt("POST with the payload as the body", func(_ *evidence.Transcript, a *attempt) (string, string) {
		switch {
		case a.Request.Method != "POST":
			return "the method is " + a.Request.Method, "The client's default method is used, or a redirect or a wrapper changed it."
		case a.Request.Size == 0:
			return "the body is empty", "The payload is put into the query, or the body was read once already, by a logger for instance, and not set again."
		}
		return "", ""
	})(t)...)
}

func judgeHeaders(t *evidence.Transcript) []evidence.Finding {
	var findings []evidence.Finding
	for _, name := range t.SplitFact(factHeaders) {
		findings = append(findings, eachAttempt(name+", with one value", func(_ *evidence.Transcript, a *attempt) (string, string) {
			value, there := wire.Get(a.Request.Headers, name)
			switch n := wire.Count(a.Request.Headers, name); {
			case !there:
				return "there is no " + name, similar(a.Request.Headers, name)
			case n > 1:
				return fmt.Sprintf("there are %d lines %s", n, name), "Headers are added to a request that is used for several attempts, instead of being set on a fresh one."
			case strings.TrimSpace(value) == "":
				return name + " is empty", ""
			}
			return "", ""
		})(t)...)
	}
	return findings
}

// similar names a header that was probably meant for the one that is missing.
func similar(headers []wire.Header, name string) string {
	plain := func(s string) string {
		s = strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(s))
		return strings.TrimPrefix(s, "x")
	}
	for _, h := range headers {
		a, b := plain(h.Name), plain(name)
		if a == b || strings.HasSuffix(a, b) || strings.HasSuffix(b, a) && len(a) > 3 {
			return "The request carries " + h.Name + " instead."
		}
	}
	return ""
}

func judgeContentType(t *evidence.Transcript) []evidence.Finding {
	return eachAttempt("application/json, and a body that parses", func(_ *evidence.Transcript, a *attempt) (string, string) {
		value, there := wire.Get(a.Request.Headers, "Content-Type")
		kind, _, _ := strings.Cut(value, ";")
		switch {
		case !there:
			return "there is no Content-Type", "The client sets none for a body of bytes."
		case !strings.EqualFold(strings.TrimSpace(kind), "application/json"):
			return "Content-Type: " + value, "Helpers that post a string set text/plain, those that post a map a form type."
		case a.whole() && !json.Valid(a.Request.Body):
			return "the body is no JSON", "The payload was encoded twice, or compressed without a Content-Encoding."
		}
		return "", ""
	})(t)
}

// whole tells whether all of the request's body is in the transcript.
func (a *attempt) whole() bool { return a.Request.Size == int64(len(a.Request.Body)) && !a.Uncaught }

// members are those of a JSON object; nil for anything else.
func (a *attempt) members() map[string]json.RawMessage {
	var out map[string]json.RawMessage
	if json.Unmarshal(a.Request.Body, &out) != nil {
		return nil
	}
	return out
}

// text is a member of the payload that is a string.
func (a *attempt) text(member string) (value string, is bool) {
	raw, there := a.members()[member]
	is = there && json.Unmarshal(raw, &value) == nil
	return value, is
}

func judgeShape(t *evidence.Transcript) []evidence.Finding {
	want := t.SplitFact(factMembers)
	return eachAttempt("the members "+strings.Join(want, ", "), func(_ *evidence.Transcript, a *attempt) (string, string) {
		got := a.members()
		if got == nil {
			return "the payload is no JSON object", ""
		}
		var missing []string
		for _, name := range want {
			if _, there := got[name]; there {
				continue
			}
			// What is peculiar to the type may stand at the top instead.
			if name == "data" && len(got) >= len(want) && !slices.Contains(want, "delivery_id") {
				continue
			}
			missing = append(missing, name)
		}
		if len(missing) > 0 {
			return "it lacks " + strings.Join(missing, ", "), "The envelope is built for each type by itself, or carries other names than the profile's."
		}
		return "", ""
	})(t)
}

// typeForm is what the name of an event type may look like. source: SW.
var typeForm = regexp.MustCompile(`^[a-zA-Z0-9_]+(\.[a-zA-Z0-9_]+)*$`)

func judgeTypeName(t *evidence.Transcript) []evidence.Finding {
	return eachAttempt("letters, digits and underscores in parts joined by full stops", func(_ *evidence.Transcript, a *attempt) (string, string) {
		name, is := a.text("type")
		switch {
		case !is:
			return "the payload has no type", ""
		case !typeForm.MatchString(name):
			return fmt.Sprintf("the type is %q", name), ""
		}
		return "", ""
	})(t)
}

func judgeEventTime(t *evidence.Transcript) []evidence.Finding {
	member := t.Facts[factTime]
	if member == "" {
		return nil
	}
	want, err := time.Parse(time.RFC3339, t.Facts[factEventAt])
	if err != nil {
		panic(fmt.Sprintf("the fact %q of the transcript cannot be read: %v", factEventAt, err))
	}
	return eachAttempt(fmt.Sprintf("%s: %s, when the event happened, with an offset", member, want.Format(time.RFC3339)), func(_ *evidence.Transcript, a *attempt) (string, string) {
		value, is := a.text(member)
		if !is {
			return "the payload has no text called " + member, "A number of seconds is no ISO 8601."
		}
		at, err := time.Parse(time.RFC3339, value)
		switch {
		case err != nil:
			return fmt.Sprintf("%s is %q", member, value), "It is not ISO 8601 with an offset: without one it is read differently in every zone."
		case at.Sub(want).Abs() <= time.Second:
			return "", ""
		case a.Began.Sub(at).Abs() <= eventAge/2:
			return fmt.Sprintf("%s is %s, when it was sent", member, value), "The time is taken when the message is made or sent, not when the event is recorded."
		}
		return fmt.Sprintf("%s is %s", member, value), "A time in another zone was written without its offset, or with that of UTC."
	})(t)
}

func judgeSmall(t *evidence.Transcript) []evidence.Finding {
	return eachAttempt(fmt.Sprintf("at most %d bytes", smallEvent), func(_ *evidence.Transcript, a *attempt) (string, string) {
		if a.Request.Size > smallEvent {
			return fmt.Sprintf("%d bytes", a.Request.Size), "The payload holds whole objects where their ids would do."
		}
		return "", ""
	})(t)
}

// reportMinified tells of each endpoint's first payload whether it has blanks
// that mean nothing.
func reportMinified(t *evidence.Transcript) []evidence.Finding {
	var facts []evidence.Finding
	for _, name := range endpoints(t) {
		a := attempts(t, name)[0]
		var compact bytes.Buffer
		if json.Compact(&compact, a.Request.Body) != nil {
			continue
		}
		got := "without insignificant blanks"
		if n := len(a.Request.Body) - compact.Len(); n > 0 {
			got = fmt.Sprintf("%d of %d bytes are insignificant blanks", n, len(a.Request.Body))
		}
		facts = append(facts, finding(described(&a), "", got, "", a))
	}
	return facts
}

// judgeFields compares the fields of the events of one type: those that were
// published with null or nothing in a field must have it all the same.
func judgeFields(t *evidence.Transcript) []evidence.Finding {
	var findings []evidence.Finding
	got := attempts(t, plainName)
	var all []string // of any of them: they come in any order
	for i := range got {
		all = append(all, fields(got[i].Request.Body)...)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	for i := range got {
		has := fields(got[i].Request.Body)
		gone := slices.DeleteFunc(slices.Clone(all), func(f string) bool { return slices.Contains(has, f) })
		if len(gone) > 0 {
			findings = append(findings, finding("an event of one type whose values are empty or null", "the fields of the others", "it lacks "+strings.Join(gone, ", "),
				"Empty or null members are left out when the payload is written (omitempty, NON_NULL, compact).", got[i]))
		}
	}
	return findings
}

// fields lists the paths of all members of the objects in a payload, sorted.
func fields(payload []byte) []string {
	var root any
	if json.Unmarshal(payload, &root) != nil {
		return nil
	}
	var out []string
	var walk func(prefix string, v any)
	walk = func(prefix string, v any) {
		object, is := v.(map[string]any)
		if !is {
			return
		}
		for name, value := range object {
			out = append(out, prefix+name)
			walk(prefix+name+".", value)
		}
	}
	walk("", root)
	slices.Sort(out)
	return out
}

// libraryAgents begin the names that HTTP libraries give themselves.
var libraryAgents = []string{"go-http-client", "python-requests", "python-urllib", "python-httpx", "aiohttp", "node", "undici", "axios", "okhttp", "java/", "apache-httpclient", "guzzlehttp", "faraday", "ruby", "curl", "wget", "dart"}

func reportUserAgent(t *evidence.Transcript) []evidence.Finding {
	list := everyAttempt(t)
	if len(list) == 0 {
		return nil
	}
	value, there := wire.Get(list[0].Request.Headers, "User-Agent")
	got, cause := "User-Agent: "+value, ""
	if !there {
		got = "there is no User-Agent"
	}
	for _, name := range libraryAgents {
		if strings.HasPrefix(strings.ToLower(value), name) {
			cause = "It names the HTTP library instead of the sender."
		}
	}
	return []evidence.Finding{finding(described(&list[0]), "", got, cause, list[0])}
}

func judgeNoSecret(t *evidence.Transcript) []evidence.Finding {
	return eachAttempt("the secret nowhere in the request", func(_ *evidence.Transcript, a *attempt) (string, string) {
		if len(a.Leaks) > 0 {
			return "it holds " + strings.Join(a.Leaks, ", "), "The secret is sent as a token, in a header or in the URL, or the whole endpoint record is part of the payload."
		}
		return "", ""
	})(t)
}

// recordVersions makes endpoints that are pinned to two versions, one event for
// both, with a retry.
func recordVersions(s *session) {
	names := s.Subject.About().APIVersions
	if len(names) < 2 {
		names = []string{"2026-01-01", "2026-06-01"}
	}
	first, last := names[0], names[len(names)-1]
	var made []*endpoint
	for _, version := range []string{first, last} {
		e := s.endpointFor("pinned to "+version, "500,200", func(spec *drive.EndpointSpec) { spec.APIVersion = version })
		e.publish()
		made = append(made, e)
	}
	s.rec.Fact(factVersions, first+" "+last)
	within := s.within(1)
	n := 1
	if s.affords(s.within(2)) {
		n, within = 2, s.within(2)
	}
	seen := false
	for _, e := range made {
		e.await(n, within)
		if e.path == nil {
			return
		}
		for _, x := range e.path.Exchanges() {
			seen = seen || mentions(&x, first) || mentions(&x, last)
		}
	}
	if !seen {
		s.skip(apiVersion, evidence.NotObservable, "no payload or header names the version that it is in")
	}
}

const factVersions = "versions" // that the endpoints are pinned to

// mentions tells whether a version is a value in a request's payload or headers.
func mentions(x *wire.Exchange, version string) bool {
	if bytes.Contains(x.Request.Body, []byte(`"`+version+`"`)) {
		return true
	}
	return slices.ContainsFunc(x.Request.Headers, func(h wire.Header) bool { return h.Value == version })
}

func judgeVersions(t *evidence.Transcript) []evidence.Finding {
	versions := t.SplitFact(factVersions)
	var findings []evidence.Finding
	for i, version := range versions {
		other := versions[len(versions)-1-i]
		name := "pinned to " + version
		findings = append(findings, arrived(name, 1, "")(t)...)
		for _, a := range attempts(t, name) {
			switch {
			case mentions(&a.Exchange, version):
			case mentions(&a.Exchange, other):
				findings = append(findings, finding(described(&a), "the version "+version, "it is in "+other, "The payload is rendered when it is sent, or once for all endpoints.", a))
			default:
				findings = append(findings, finding(described(&a), "the version "+version, "it names no version, as others do", "", a))
			}
		}
	}
	return findings
}
