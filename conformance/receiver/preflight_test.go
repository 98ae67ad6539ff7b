package receiver

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"golang.org/x/time/rate"

	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/conformance/evidence"
	fp "github.com/whconform/whconform/fakeprovider"
	"github.com/whconform/whconform/reference/profile"
	"github.com/whconform/whconform/reference/signature"
)

const (
	currentSecret  = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
	previousSecret = "whsec_YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXphYmNkZWY="
)

// tiny is a receiver of a dozen lines, right where nothing is set. Each field
// is one mistake of configuration.
type tiny struct {
	key     []byte                               // nil: the current secret, decoded
	headers string                               // "webhook-"
	content func(id, ts string, b []byte) []byte // id.ts.body
	encode  func([]byte) string                  // base64
	clock   time.Duration                        // how far its clock is ahead
	perUnit time.Duration                        // of the timestamp; a second
	respell string                               // parses the body and writes it again as this library does
}

func decoded(secret string) []byte {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		panic(err)
	}
	return key
}

func (c tiny) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil || !c.verifies(r.Header, body) {
		w.Header().Set("Date", time.Now().Add(c.clock).UTC().Format(http.TimeFormat))
		http.Error(w, "bad signature", http.StatusUnauthorized)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (c tiny) verifies(h http.Header, body []byte) bool {
	if c.key == nil {
		c.key = decoded(currentSecret)
	}
	if c.headers == "" {
		c.headers = "webhook-"
	}
	if c.content == nil {
		c.content = func(id, ts string, b []byte) []byte { return []byte(id + "." + ts + "." + string(b)) }
	}
	if c.encode == nil {
		c.encode = base64.StdEncoding.EncodeToString
	}
	if c.perUnit == 0 {
		c.perUnit = time.Second
	}
	if c.respell != "" {
		body, _ = fp.Respell(c.respell, body)
	}
	id, ts := h.Get(c.headers+"id"), h.Get(c.headers+"timestamp")
	n, err := strconv.ParseInt(ts, 10, 64)
	if err != nil || time.Since(time.Unix(0, 0).Add(time.Duration(n)*c.perUnit).Add(-c.clock)).Abs() > 5*time.Minute {
		return false
	}
	mac := hmac.New(sha256.New, c.key)
	mac.Write(c.content(id, ts, body))
	want := "v1," + c.encode(mac.Sum(nil))
	for token := range strings.FieldsSeq(h.Get(c.headers + "signature")) {
		if hmac.Equal([]byte(token), []byte(want)) {
			return true
		}
	}
	return false
}

// envOf is what a run has for the receiver at a URL.
func envOf(t *testing.T, url string, ack time.Duration) *Env {
	t.Helper()
	loaded, err := profile.Load("standard-webhooks")
	if err != nil {
		t.Fatal(err)
	}
	p := *loaded
	p.AckTimeout = ack
	provider, err := fp.New(fp.Config{Profile: &p, Clock: clock.New()})
	if err != nil {
		t.Fatal(err)
	}
	key := func(label, text string) signature.Key {
		k, err := provider.Scheme().Key(label, text)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	previous := key("previous", previousSecret)
	return &Env{
		Subject: drive.URL(fp.Target{URL: url}), Provider: provider, Profile: &p, Clock: clock.New(), Bounds: DefaultBounds(),
		Event: Event{Type: p.EventTypes[0], Render: ProfileEvent(&p, clock.New())},
		Keys: Keys{
			Current: key("current", currentSecret), Previous: &previous,
			Wrong: signature.RawKey("wrong", []byte("nobody was given this secret")), Third: signature.RawKey("third", []byte("nor was anybody given this one")),
			Texts: drive.Secrets{Current: currentSecret, Previous: previousSecret},
		},
		Limiter: rate.NewLimiter(rate.Inf, 1),
		Random:  func(string) *rand.ChaCha8 { return rand.NewChaCha8([32]byte{}) },
	}
}

func served(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL + "/hooks"
}

const amply = 10 * time.Second // a provider's timeout that no busy machine exceeds

func TestARightReceiverIsAcceptedWithoutADiagnosis(t *testing.T) {
	p := RunPreflight(t.Context(), envOf(t, served(t, tiny{}), amply))
	if !p.Accepted || p.Unreachable || p.Diagnosis != nil {
		t.Errorf("accepted %t, unreachable %t, diagnosis %+v", p.Accepted, p.Unreachable, p.Diagnosis)
	}
	if n := len(p.Transcript.Exchanges); n != 1+furtherValid {
		t.Errorf("%d deliveries were recorded", n)
	}
	if p.Transcript.Facts[factAccepted] != validLabel {
		t.Errorf("the accepted delivery is %q", p.Transcript.Facts[factAccepted])
	}
}

// Each receiver makes one common mistake. "401 expected 200" would be true of
// all of them; the diagnosis must say which it is.
func TestTheDiagnosisNamesTheMistake(t *testing.T) {
	bare := strings.TrimPrefix(currentSecret, "whsec_")
	status := func(code int, headers ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i+1 < len(headers); i += 2 {
				w.Header().Set(headers[i], headers[i+1])
			}
			w.WriteHeader(code)
		}
	}
	for _, tt := range []struct {
		name    string
		handler http.Handler
		cause   string
		fix     string
	}{
		{"the secret's text is the key", tiny{key: []byte(currentSecret)}, "the secret's text as the key, prefix included", "Decode what follows whsec_"},
		{"the secret's text without its prefix is the key", tiny{key: []byte(bare)}, "what follows the prefix as text", "Decode what follows whsec_"},
		{"the second secret alone is known", tiny{key: decoded(previousSecret)}, "accepts the second secret given and not the first", "current secret first"},
		{"the signature is compared in hex", tiny{encode: hex.EncodeToString}, "expects the signature in hex", "base64"},
		{"other headers are read", tiny{headers: "svix-"}, "looks for svix-* headers", "--profile svix"},
		{"the body alone is signed", tiny{content: func(_, _ string, b []byte) []byte { return b }}, "signs the body alone", "{id}.{ts}.{raw}"},
		{"the id is not signed", tiny{content: func(_, ts string, b []byte) []byte { return append([]byte(ts+"."), b...) }}, "signs the timestamp and the body", "{id}.{ts}.{raw}"},
		{"the timestamp is not signed", tiny{content: func(id, _ string, b []byte) []byte { return append([]byte(id+"."), b...) }}, "signs the id and the body", "{id}.{ts}.{raw}"},
		{"the timestamp is read as milliseconds", tiny{perUnit: time.Millisecond}, "reads the timestamp as milliseconds", "seconds"},
		{"the body is written again as Python does", tiny{respell: "python"}, "parses the body and writes it again", "get_data"},
		{"the clock is ahead", tiny{clock: 90 * time.Minute}, "clock is 1h", "Set the clock"},
		{"the clock is behind", tiny{clock: -24 * time.Hour}, "clock is -24h0m", "Set the clock"},
		{"quite another secret is configured", tiny{key: []byte("another")}, "Is this the secret it is configured with?", "Compare the secret"},
		{"the path is wrong", http.NotFoundHandler(), "Another route", "the path of the URL"},
		{"the method is not routed", status(http.StatusMethodNotAllowed), "Another route", "the path of the URL"},
		{"the URL is not the final one", status(http.StatusPermanentRedirect, "Location", "/hooks/"), "Providers do not follow it", "in its final form"},
		{"the handler fails", status(http.StatusInternalServerError), "met an error that it does not catch", "Compare"},
		{"the handler crashes", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }), "took the connection with it", "Compare"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := RunPreflight(t.Context(), envOf(t, served(t, tt.handler), amply))
			if p.Accepted || p.Unreachable || p.Diagnosis == nil {
				t.Fatalf("accepted %t, unreachable %t, diagnosis %+v", p.Accepted, p.Unreachable, p.Diagnosis)
			}
			if d := p.Diagnosis; !strings.Contains(d.Cause, tt.cause) || !strings.Contains(d.Fix, tt.fix) {
				t.Errorf("the cause is %q, the mend %q", d.Cause, d.Fix)
			}
			for _, label := range p.Diagnosis.Exchanges {
				if p.Transcript.Find(label) == nil {
					t.Errorf("the diagnosis points to %q, which was not recorded", label)
				}
			}
			if p.Transcript.Error != "" {
				t.Errorf("the scenario broke down: %s", p.Transcript.Error)
			}
			// The requirement itself is judged, and by the same transcript.
			if findings := byID(t, PreflightScenario).judge(&p.Transcript); len(findings) != 1 || findings[0].Sent != validLabel {
				t.Errorf("accepts-valid: %+v", findings)
			}
			if skip, ok := p.Transcript.Skips["receiver.replay.clock"]; !ok || skip.Reason != evidence.NotReached {
				t.Errorf("rows that need an acceptance are not marked: %+v", p.Transcript.Skips)
			}
		})
	}
}

func TestARedirectIsShownWithItsDestinationAndJudged(t *testing.T) {
	p := RunPreflight(t.Context(), envOf(t, served(t, http.RedirectHandler("/elsewhere", http.StatusFound)), amply))
	if p.Diagnosis == nil || !strings.Contains(p.Diagnosis.Got, `"/elsewhere"`) {
		t.Fatalf("the diagnosis is %+v", p.Diagnosis)
	}
	const id = "receiver.acknowledge.no-redirect"
	if _, skipped := p.Transcript.Skips[id]; skipped {
		t.Error("the row about redirects is not judged")
	}
	if findings := byID(t, id).judge(&p.Transcript); len(findings) != 1 {
		t.Errorf("got %+v", findings)
	}
}

func TestAGuardForBrowsersIsSatisfiedAndTold(t *testing.T) {
	for _, tt := range []struct {
		name  string
		guard func(http.Header) bool
		needs string
	}{
		{"a cookie", func(h http.Header) bool { return h.Get("Cookie") != "" }, "a browser's headers (Accept"},
		{"an Origin", func(h http.Header) bool { return strings.HasPrefix(h.Get("Origin"), "http://127.0.0.1:") }, "a browser's headers (Accept"},
		{"a browser's User-Agent", func(h http.Header) bool { return strings.Contains(h.Get("User-Agent"), "Firefox") }, "User-Agent"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			guarded := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if !tt.guard(r.Header) {
					http.Error(w, "CSRF", http.StatusForbidden)
					return
				}
				tiny{}.ServeHTTP(w, r)
			})
			e := envOf(t, served(t, guarded), amply)
			p := RunPreflight(t.Context(), e)
			if !p.Accepted || p.Diagnosis != nil {
				t.Fatalf("accepted %t, diagnosis %+v", p.Accepted, p.Diagnosis)
			}
			if needs := p.Transcript.Facts[factNeeds]; !strings.Contains(needs, tt.needs) {
				t.Errorf("it needs %q", needs)
			}
			if findings := byID(t, "receiver.acknowledge.bare-minimum").judge(&p.Transcript); len(findings) != 1 {
				t.Errorf("bare-minimum: %+v", findings)
			}
			if findings := byID(t, PreflightScenario).judge(&p.Transcript); len(findings) > 0 {
				t.Errorf("accepts-valid: %+v", findings)
			}
			// The run goes on with them.
			again := RunPreflight(t.Context(), e)
			if !again.Accepted || again.Transcript.Facts[factNeeds] != "" {
				t.Errorf("with the headers found: accepted %t, needs %q", again.Accepted, again.Transcript.Facts[factNeeds])
			}
		})
	}
}

// late answers rightly after a while, one delivery at a time if single.
func late(wait time.Duration, single bool) http.Handler {
	var one sync.Mutex
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if single {
			one.Lock()
			defer one.Unlock()
		}
		working := time.NewTimer(wait)
		defer working.Stop()
		select {
		case <-working.C:
		case <-r.Context().Done():
		}
		tiny{}.ServeHTTP(w, r)
	})
}

func TestAnAnswerAfterTheProvidersTimeoutIsNoAcceptance(t *testing.T) {
	for _, tt := range []struct {
		name    string
		handler http.Handler
		ack     time.Duration
	}{
		{"late", late(300*time.Millisecond, false), 100 * time.Millisecond},
		{"in time for the first, with one worker for the others", late(300*time.Millisecond, true), 700 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := RunPreflight(t.Context(), envOf(t, served(t, tt.handler), tt.ack))
			if p.Accepted || p.Unreachable || p.Diagnosis == nil {
				t.Fatalf("accepted %t, unreachable %t, diagnosis %+v", p.Accepted, p.Unreachable, p.Diagnosis)
			}
			if d := p.Diagnosis; !strings.Contains(d.Cause, "inside the request") || !strings.Contains(d.Got, "answered 204 after") {
				t.Errorf("the diagnosis is %+v", d)
			}
			if _, skipped := p.Transcript.Skips["receiver.acknowledge.within-provider-timeout"]; skipped {
				t.Error("the row about the timeout is not judged")
			}
			if findings := byID(t, "receiver.acknowledge.within-provider-timeout").judge(&p.Transcript); len(findings) == 0 {
				// The bound stands in the transcript.
				t.Errorf("within-provider-timeout: nothing found, bound %s", p.Transcript.Facts[evidence.FactAckTimeout])
			}
		})
	}
}

func TestSlowAnswersAreNotedSoThatMoreIsSentAtOnce(t *testing.T) {
	t.Parallel()
	for wait, want := range map[time.Duration]bool{0: false, slowAnswer + 100*time.Millisecond: true} {
		e := envOf(t, served(t, late(wait, false)), amply)
		if p := RunPreflight(t.Context(), e); !p.Accepted || e.Slow != want {
			t.Errorf("%v: accepted %t, slow %t", wait, p.Accepted, e.Slow)
		}
	}
}

func TestAThrottledControlIsTriedAgain(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	seen := 0
	e := envOf(t, served(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen++
		first := seen == 1
		mu.Unlock()
		if first {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		tiny{}.ServeHTTP(w, r)
	})), amply)
	e.Limiter.SetLimit(1000)
	p := RunPreflight(t.Context(), e)
	if !p.Accepted {
		t.Errorf("diagnosis %+v", p.Diagnosis)
	}
	if limit := e.Limiter.Limit(); limit != 500 {
		t.Errorf("the rate is %v after it was throttled, want half", limit)
	}
}

func TestNobodyThereIsToldFromARefusal(t *testing.T) {
	listen := func(t *testing.T, serve func(net.Conn)) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		var serving sync.WaitGroup
		serving.Go(func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				serving.Go(func() {
					defer conn.Close()
					serve(conn)
				})
			}
		})
		t.Cleanup(func() {
			_ = l.Close()
			serving.Wait()
		})
		return l.Addr().String()
	}
	read := func(c net.Conn) { _, _ = c.Read(make([]byte, 4096)) }
	for _, tt := range []struct {
		name  string
		url   func(*testing.T) string
		ack   time.Duration
		cause string
	}{
		{"a closed port", func(t *testing.T) string {
			s := httptest.NewServer(nil)
			s.Close()
			return s.URL
		}, amply, "Nothing listens there"},
		{"another protocol", func(t *testing.T) string {
			return "http://" + listen(t, func(c net.Conn) { read(c); _, _ = io.WriteString(c, "220 mail ready\r\n") })
		}, amply, "Another protocol"},
		{"plain http to a TLS port, which answers 400", func(t *testing.T) string {
			s := httptest.NewUnstartedServer(tiny{})
			s.Config.ErrorLog = log.New(io.Discard, "", 0)
			s.StartTLS()
			t.Cleanup(s.Close)
			return strings.Replace(s.URL, "https", "http", 1)
		}, amply, ""},
		{"https to a plain port", func(t *testing.T) string { return strings.Replace(served(t, tiny{}), "http", "https", 1) }, amply, "TLS handshake failed"},
		{"a certificate that nobody knows", func(t *testing.T) string {
			s := httptest.NewUnstartedServer(tiny{})
			s.Config.ErrorLog = log.New(io.Discard, "", 0)
			s.StartTLS()
			t.Cleanup(s.Close)
			return s.URL
		}, amply, "--cacert"},
		{"a name that does not resolve", func(*testing.T) string { return "http://receiver.invalid/" }, amply, "does not resolve"},
		{"a receiver that never answers", func(t *testing.T) string {
			return "http://" + listen(t, func(c net.Conn) { read(c); read(c) })
		}, 100 * time.Millisecond, "never answered"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := RunPreflight(t.Context(), envOf(t, tt.url(t), tt.ack))
			if tt.cause == "" { // a TLS server answers 400 in plain HTTP: that is an answer
				if p.Accepted || p.Diagnosis == nil {
					t.Errorf("accepted %t, diagnosis %+v", p.Accepted, p.Diagnosis)
				}
				return
			}
			if p.Accepted || !p.Unreachable || p.Diagnosis == nil {
				t.Fatalf("accepted %t, unreachable %t, diagnosis %+v", p.Accepted, p.Unreachable, p.Diagnosis)
			}
			if !strings.Contains(p.Diagnosis.Cause, tt.cause) || p.Diagnosis.Got == "" {
				t.Errorf("the diagnosis is %+v", p.Diagnosis)
			}
		})
	}
}

func TestAPreflightThatIsCutShortAccusesNobody(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := RunPreflight(ctx, envOf(t, served(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // a server hears of a closed connection only after the body
		cancel()
		<-r.Context().Done()
	})), amply))
	if p.Accepted || p.Unreachable || p.Diagnosis != nil || !p.Transcript.Partial {
		t.Errorf("accepted %t, unreachable %t, partial %t, diagnosis %+v", p.Accepted, p.Unreachable, p.Transcript.Partial, p.Diagnosis)
	}
	before := RunPreflight(ctx, envOf(t, served(t, tiny{}), amply))
	if before.Accepted || before.Unreachable || !before.Transcript.Partial || len(before.Transcript.Exchanges) > 0 {
		t.Errorf("after the end of the run: %+v", before)
	}
}

func TestTheDiagnosisHoldsNoSecret(t *testing.T) {
	for _, h := range []http.Handler{tiny{key: []byte(currentSecret)}, tiny{key: decoded(previousSecret)}, tiny{key: []byte("another")}} {
		e := envOf(t, served(t, h), amply)
		p := RunPreflight(t.Context(), e)
		text := fmt.Appendf(nil, "%+v %+v", p.Diagnosis, p.Transcript)
		for _, x := range p.Transcript.Exchanges {
			text = fmt.Appendf(text, " %s", x.Request.Body)
		}
		for _, k := range []signature.Key{e.Keys.Current, *e.Keys.Previous, e.Keys.Wrong} {
			if form, found := k.In(text); found {
				t.Errorf("%s stands in it as %s", k.Label, form)
			}
		}
	}
}
