package sender

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/conformance/drive/adapter"
	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/conformance/suite"
	"github.com/whconform/whconform/fakeendpoint"
	"github.com/whconform/whconform/reference/profile"
	"github.com/whconform/whconform/reference/signature"
)

// small is a sender that makes one attempt inside Publish, signed as its test
// says: for what the engine makes of senders that are wrong from the start.
type small struct {
	drive.Sender // nil: nothing else is asked of it

	about  drive.About
	secret string // of every endpoint; "": one that is well formed
	refuse error  // of CreateEndpoint
	fail   error  // of Publish
	silent bool   // publishes and sends nothing
	mute   bool   // likewise, and tells no message
	dials  bool   // connects and says nothing
	wide   bool   // sends every event to all endpoints
	sign   func(in signature.Input, secret string) []byte

	mu   sync.Mutex
	made []drive.EndpointSpec
	n    int
}

const wellFormed = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

func (s *small) Has(string) bool    { return false }
func (s *small) About() drive.About { return s.about }

func (s *small) CreateEndpoint(_ context.Context, spec drive.EndpointSpec) (drive.Endpoint, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuse != nil {
		return drive.Endpoint{}, s.refuse
	}
	s.made = append(s.made, spec)
	secret := s.secret
	if secret == "" {
		secret = wellFormed
	}
	return drive.Endpoint{ID: fmt.Sprint(len(s.made)), Secret: secret}, nil
}

func (s *small) Publish(ctx context.Context, e drive.Event) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.fail != nil:
		return nil, s.fail
	case s.mute:
		return nil, nil
	case s.dials:
		host := strings.TrimPrefix(s.made[0].URL, "http://")
		host, _, _ = strings.Cut(host, "/")
		c, err := net.Dial("tcp", host)
		if err == nil {
			err = c.Close()
		}
		return []string{"msg_1"}, err
	}
	var ids []string
	for i := range s.made {
		if !s.wide && e.Type != s.made[i].EventTypes[0] {
			continue
		}
		s.n++
		id := fmt.Sprintf("msg_%d", s.n)
		ids = append(ids, id)
		if s.silent {
			continue
		}
		if err := s.post(ctx, s.made[i].URL, id, append(e.Payload, e.Raw...)); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

func (s *small) post(ctx context.Context, url, id string, body []byte) error {
	scheme, err := signature.New(signature.StandardWebhooks())
	if err != nil {
		return err
	}
	in := signature.Input{ID: id, Time: time.Now(), Body: body}
	secret := s.secret
	if secret == "" {
		secret = wellFormed
	}
	var headers http.Header = http.Header{"Content-Type": {"application/json"}}
	token := signature.Token{Version: "v1", Text: ""}
	if s.sign == nil {
		key, err := scheme.Key("", secret)
		if err == nil {
			token, err = scheme.Token(in, key)
		}
		if err != nil {
			return err
		}
	} else {
		token.Text = string(s.sign(in, secret))
	}
	for _, h := range scheme.Headers(in, token) {
		headers.Set(h.Name, h.Value)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header = headers
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

// around makes an Env around a small sender, in real time.
func around(t *testing.T, s *small) *Env {
	t.Helper()
	p, err := profile.Load("standard-webhooks")
	if err != nil {
		t.Fatal(err)
	}
	server, err := fakeendpoint.Start(fakeendpoint.Config{Clock: clock.New(), Profile: p})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	e := &Env{
		Subject: s, Server: server, Timeline: drive.NewRealTimeline(), Profile: p, Mode: Scaled, Random: random,
		// Waiting for what does not come is what these tests do.
		Bounds: Bounds{First: 50 * time.Millisecond, Settle: 10 * time.Millisecond, Call: 5 * time.Second},
	}
	granularity := time.Millisecond
	s.about.Granularity = &granularity
	e.Prepare()
	return e
}

func TestThePreflightTellsWhatIsWrong(t *testing.T) {
	refusal := &adapter.Error{Code: adapter.NotPossible, Message: "127.0.0.1 is internal"}
	for _, tt := range []struct {
		name                  string
		s                     *small
		accepted, unreachable bool
		got, cause            string
	}{
		{"a right one", &small{}, true, false, "", ""},
		{"nothing is sent", &small{silent: true}, false, false, "none came", "dispatcher"},
		{"no endpoint gets it", &small{mute: true}, false, false, "none came", "matched no endpoint"},
		{"a connection without a request", &small{dials: true}, false, false, "no request on it", "connecting"},
		{"the address is refused", &small{refuse: refusal}, false, true, "127.0.0.1 is internal", "allowHosts"},
		{"the adapter dies", &small{refuse: errors.New("early-death")}, false, true, "early-death", "adapter check"},
		{"publishing fails", &small{fail: errors.New("no database")}, false, true, "no database", "adapter or the sender"},
		{"it signs with the secret's text", &small{sign: macBy(func(secret string) []byte { return []byte(secret) }, nil)}, false, false, "does not verify", "text of the secret"},
		{"it signs nonsense", &small{sign: func(signature.Input, string) []byte { return []byte("AAAA") }}, false, false, "does not verify", "another secret"},
		{"its secret is short, and it signs by another", &small{secret: "whsec_c2hvcnQ=", sign: macBy(func(string) []byte { return []byte("other") }, nil)}, false, false, "does not verify", "too short"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := RunPreflight(t.Context(), around(t, tt.s))
			if p.Accepted != tt.accepted || p.Unreachable != tt.unreachable || (p.Diagnosis == nil) != tt.accepted {
				t.Fatalf("accepted: %t, unreachable: %t, %+v", p.Accepted, p.Unreachable, p.Diagnosis)
			}
			if p.Diagnosis != nil && (!strings.Contains(p.Diagnosis.Got, tt.got) || !strings.Contains(p.Diagnosis.Cause, tt.cause)) {
				t.Errorf("the diagnosis is %+v", p.Diagnosis)
			}
			if p.Diagnosis == nil || !p.Unreachable {
				if p.Transcript.Error != "" || p.Transcript.Scenario != PreflightScenario {
					t.Errorf("the transcript is %+v", p.Transcript)
				}
			}
		})
	}
}

// macBy signs by the specification, with another key, and over another body
// where change is set.
func macBy(key func(secret string) []byte, change func([]byte) []byte) func(signature.Input, string) []byte {
	return func(in signature.Input, secret string) []byte {
		scheme, err := signature.New(signature.StandardWebhooks())
		if err != nil {
			panic(err)
		}
		k, err := scheme.Key("", secret)
		if key != nil {
			k, err = signature.RawKey("", key(secret)), nil
		}
		if err != nil {
			panic(err)
		}
		if change != nil {
			in.Body = change(in.Body)
		}
		token, err := scheme.Token(in, k)
		if err != nil {
			panic(err)
		}
		return []byte(token.Text)
	}
}

// contentOf signs another text than the profile's.
func contentOf(pieces ...string) func(signature.Input, string) []byte {
	return func(in signature.Input, secret string) []byte {
		spec := signature.StandardWebhooks()
		spec.Content, spec.ID.Signed = pieces, slices.Contains(pieces, "{id}")
		scheme, err := signature.New(spec)
		if err != nil {
			panic(err)
		}
		key, err := scheme.Key("", secret)
		if err != nil {
			panic(err)
		}
		token, err := scheme.Token(in, key)
		if err != nil {
			panic(err)
		}
		return []byte(token.Text)
	}
}

func TestWhatWasSignedInsteadIsFound(t *testing.T) {
	for name, tt := range map[string]struct {
		sign func(signature.Input, string) []byte
		body string
		want string
	}{
		"the secret's text":           {macBy(func(s string) []byte { return []byte(s) }, nil), "{}", "with the text of the secret as it stands"},
		"the text behind the prefix":  {macBy(func(s string) []byte { return []byte(strings.TrimPrefix(s, "whsec_")) }, nil), "{}", "with the text behind whsec_"},
		"an empty secret":             {macBy(func(string) []byte { return nil }, nil), "{}", "with an empty secret"},
		"no body":                     {macBy(nil, func([]byte) []byte { return nil }), "{}", "covers an empty body"},
		"the body without a line end": {macBy(nil, bytes.TrimSpace), "{}\n", "without the blanks or line ends"},
		"compact JSON":                {macBy(nil, func([]byte) []byte { return []byte(`{"a":1}`) }), `{ "a": 1 }`, "without its insignificant blanks"},
		"Python's spelling":           {macBy(nil, func([]byte) []byte { return []byte(`{"a": 1, "b": "\u00e9"}`) }), `{"a":1,"b":"é"}`, "as Python"},
		"the body alone":              {contentOf("{raw}"), "{}", "covers {raw} instead of {id}.{ts}.{raw}"},
		"no id":                       {contentOf("{ts}", ".", "{raw}"), "{}", "covers {ts}.{raw} instead"},
		"another order":               {contentOf("{ts}", ".", "{id}", ".", "{raw}"), "{}", "covers {ts}.{id}.{raw} instead"},
		"something else":              {macBy(nil, func([]byte) []byte { return []byte("?") }), "{}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := around(t, &small{sign: tt.sign})
			transcript := recordedOn(t, e, func(s *session) {
				to := s.endpoint(plainName, "200")
				to.publishBody([]byte(tt.body))
				to.await(1, time.Second)
			})
			a := attempts(transcript, plainName)
			if len(a) != 1 || a[0].verified() {
				t.Fatalf("attempts: %+v", a)
			}
			if !strings.Contains(a[0].Hint, tt.want) || (a[0].Hint == "") != (tt.want == "") {
				t.Errorf("the hint is %q, want %q", a[0].Hint, tt.want)
			}
		})
	}
}

// recordedOn records a scenario that a test makes up.
func recordedOn(t *testing.T, e *Env, record func(*session)) *evidence.Transcript {
	t.Helper()
	r := rule{id: "sender.example.row", record: record}
	all := suite.Record(t.Context(), suite.Config{}, []suite.Scenario{{Name: r.id, Record: e.recorder(r, nil, &gate{})}})
	if len(all) != 1 {
		t.Fatalf("%d transcripts", len(all))
	}
	return &all[0]
}

func TestWhatOthersPublishedIsDropped(t *testing.T) {
	e := around(t, &small{wide: true})
	record := func(name string, s *session) *endpoint {
		to := s.endpoint(name, "200")
		to.publish()
		to.await(1, time.Second)
		return to
	}
	var first *endpoint
	done := make(chan struct{})
	waited := make(chan *evidence.Transcript)
	go func() {
		all := suite.Record(t.Context(), suite.Config{}, []suite.Scenario{{Name: "sender.example.first", Record: e.recorder(rule{id: "sender.example.first", record: func(s *session) {
			first = record("a", s)
			close(done)
			first.await(2, 5*time.Second) // the other scenario's
		}}, nil, &gate{})}})
		waited <- &all[0]
	}()
	<-done
	second := recordedOn(t, e, func(s *session) { record("b", s) })
	transcript := <-waited
	if arrived, _ := first.path.Count(); arrived != 2 {
		t.Fatalf("%d requests came at the first endpoint, want its own and the other's", arrived)
	}
	if got := labels(attempts(transcript, "a")); len(got) != 1 || transcript.Error != "" {
		t.Errorf("the first scenario has %q, %s", got, transcript.Error)
	}
	if got := labels(attempts(second, "b")); len(got) != 1 || second.Error != "" {
		t.Errorf("the second scenario has %q, %s", got, second.Error)
	}
}

func TestSecretsAreReadAsTheyWereMeant(t *testing.T) {
	e := around(t, &small{})
	transcript := recordedOn(t, e, func(s *session) {
		for name, tt := range map[string]struct{ text, want string }{
			"well formed":     {wellFormed, secretWell},
			"without whsec_":  {strings.TrimPrefix(wellFormed, "whsec_"), "does not begin with whsec_"},
			"too short":       {"whsec_c2hvcnQ=", "too short"},
			"no base64":       {"whsec_???", "not well encoded"},
			"url-safe":        {"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLa--", "not well encoded"},
			"nothing":         {"", "empty"},
			"a public key":    {"whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=", secretWell},
			"a cut asymmetic": {"whpk_11qYAYKxCrfVS/7TyWQHOg==", "too short"},
		} {
			if _, problem := s.readSecret("label", tt.text); !strings.Contains(problem, tt.want) {
				t.Errorf("%s: %q", name, problem)
			}
		}
		both := &endpoint{s: s, name: "both"}
		both.addSecret(wellFormed + " whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=")
		if keys := both.keysOf(); len(keys) != 2 || keys[1].Kind() != signature.Ed25519Public {
			t.Errorf("the keys are %v", keys)
		}
	})
	text := fmt.Sprint(transcript.Facts)
	if strings.Contains(text, strings.TrimPrefix(wellFormed, "whsec_")) {
		t.Error("a secret stands in the facts")
	}
}

func TestACallThatFailsEndsTheScenarioWithWhatWasDone(t *testing.T) {
	transcript := recordedOn(t, around(t, &small{fail: errors.New("no database")}), func(s *session) {
		to := s.endpoint(plainName, "200")
		to.publish()
		to.publish() // not done any more
		if to.await(1, time.Hour) {
			t.Error("it waits on")
		}
	})
	if want := `recording sender.example.row: publishing to the endpoint "plain": no database`; transcript.Error != want {
		t.Errorf("the error is %q", transcript.Error)
	}
}
