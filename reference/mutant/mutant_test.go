package mutant

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/whconform/whconform/reference/profile"
	"github.com/whconform/whconform/reference/signature"
)

func TestEveryMutantSaysWhatIsWrongWithIt(t *testing.T) {
	names := map[string]bool{}
	for _, m := range Receivers() {
		t.Run(m.Name, func(t *testing.T) {
			if names[m.Name] || m.Name == "" || strings.Trim(m.Name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
				t.Errorf("the name %q is taken, empty or not made of words and dashes", m.Name)
			}
			names[m.Name] = true
			if !strings.HasSuffix(m.Doc, ".") || strings.Contains(m.Doc, "\n") {
				t.Errorf("the doc is not one sentence: %q", m.Doc)
			}
			if len(m.Fails) == 0 && len(m.Reports) == 0 && m.Verdict == "" {
				t.Error("it breaks nothing")
			}
			for _, id := range slices.Concat(m.Fails, m.Reports) {
				if !strings.HasPrefix(id, "receiver.") || strings.Count(id, ".") < 2 {
					t.Errorf("%q is no requirement id", id)
				}
			}
			if len(slices.Compact(slices.Sorted(slices.Values(m.Fails)))) != len(m.Fails) {
				t.Error("a requirement is listed twice")
			}
			if m.Verdict != "" && m.Verdict != VerdictError {
				t.Errorf("unknown verdict %q", m.Verdict)
			}
		})
	}
}

func TestFind(t *testing.T) {
	for _, m := range Receivers() {
		found, err := Find(m.Name)
		if err != nil || found.Doc != m.Doc || found.Profile == "" {
			t.Errorf("%s: found %q of profile %q, %v", m.Name, found.Doc, found.Profile, err)
		}
	}
	if _, err := Find("no-such"); err == nil || !strings.Contains(err.Error(), "accepts-all") {
		t.Errorf("the error does not list the names: %v", err)
	}
}

// A mutant that refused an ordinary delivery would be caught for that, and its
// fault would never be reached.
func TestAllButTheGeneralMutantsAcceptAnOrdinaryDelivery(t *testing.T) {
	for _, m := range Receivers() {
		if m.Verdict != "" || slices.Contains(m.Fails, acceptsValid) || slices.Contains(m.Fails, "receiver.acknowledge.bare-minimum") {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			c, scheme := config(t, m)
			h := handler(t, m, c)
			for range 3 {
				if status := deliver(t, h, scheme, c, "ordinary"); status < 200 || status > 299 {
					if slices.Contains(m.Fails, "receiver.duplicate.acks-duplicate") || slices.Contains(m.Fails, "receiver.duplicate.acks-retry") {
						continue
					}
					t.Fatalf("answered %d", status)
				}
			}
		})
	}
}

func TestAMutantStartsAnewInEachRun(t *testing.T) {
	m, err := Find("conflicts-on-a-copy")
	if err != nil {
		t.Fatal(err)
	}
	c, scheme := config(t, m)
	for range 2 {
		h := handler(t, m, c)
		for _, want := range []int{http.StatusOK, http.StatusConflict} {
			if got := deliver(t, h, scheme, c, "msg_1"); got != want {
				t.Errorf("answered %d, want %d", got, want)
			}
		}
	}
}

func TestWithoutASecretOnlyThoseStartWhoseFaultThatIs(t *testing.T) {
	for _, m := range Receivers() {
		if slices.Contains(m.Fails, acceptsValid) || m.Verdict != "" {
			continue // they have no secret at all
		}
		c, _ := config(t, m)
		c.Keys = nil
		_, err := m.HTTPServer(c)
		if starts := slices.Contains(m.Fails, "receiver.signature.unset-secret"); starts != (err == nil) {
			t.Errorf("%s: %v, want it to start: %v", m.Name, err, starts)
		}
	}
}

// config is a mutant's configuration for a test that does not wait.
func config(t *testing.T, m Mutant) (Config, signature.Scheme) {
	t.Helper()
	p, err := profile.Load(m.Profile)
	if err != nil {
		t.Fatal(err)
	}
	scheme, err := p.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	text := "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
	key, err := scheme.Key("current", text)
	if err != nil {
		t.Fatal(err)
	}
	return Config{
		Profile: p, Keys: []signature.Key{key}, Clock: clock.NewMock(),
		AckTimeout: time.Millisecond, Fast: time.Millisecond, Burst: time.Millisecond,
	}, scheme
}

func handler(t *testing.T, m Mutant, c Config) http.Handler {
	t.Helper()
	s, err := m.HTTPServer(c)
	if err != nil {
		t.Fatal(err)
	}
	return s.Handler
}

// deliver sends an ordinary event and returns the status.
func deliver(t *testing.T, h http.Handler, scheme signature.Scheme, c Config, id string) int {
	t.Helper()
	body, err := c.Profile.NewPayload(profile.PayloadData{ID: id, Type: c.Profile.EventTypes[0], Time: c.Clock.Now(), Seq: 1, Random: "r1"})
	if err != nil {
		t.Fatal(err)
	}
	headers, err := scheme.Sign(signature.Input{ID: id, Time: c.Clock.Now(), Body: body}, c.Keys[0])
	if err != nil {
		t.Fatal(err)
	}
	req := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(string(body)))
	req.Header.Set("Content-Type", c.Profile.ContentType)
	for _, header := range headers {
		req.Header.Set(header.Name, header.Value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	return w.Code
}
