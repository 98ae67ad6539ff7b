package conformance_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/whconform/whconform/conformance"
	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/conformance/receiver"
	"github.com/whconform/whconform/conformance/report"
	"github.com/whconform/whconform/fakeprovider"
	"github.com/whconform/whconform/reference/profile"
	ref "github.com/whconform/whconform/reference/receiver"
	"github.com/whconform/whconform/reference/signature"
)

// The secrets of every run here.
const (
	current  = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
	previous = "whsec_YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXphYmNkZWY="
	private  = "whsk_RUQyNTUxOSBzZWVkIEVEMjU1MTkgc2VlZCBFRDI1NTE="
)

func TestMain(m *testing.M) {
	if role := os.Getenv(suiteVariable); role != "" {
		os.Exit(runOwnSuite(role))
	}
	os.Exit(m.Run())
}

// standard is the default profile with the provider's timeout given.
func standard(t testing.TB, ack time.Duration) *profile.Profile {
	t.Helper()
	loaded, err := profile.Load("standard-webhooks")
	if err != nil {
		t.Fatal(err)
	}
	p := *loaded
	p.AckTimeout = ack
	return &p
}

func keyOf(t testing.TB, label, text string) signature.Key {
	t.Helper()
	scheme, err := standard(t, time.Second).Scheme()
	if err != nil {
		t.Fatal(err)
	}
	key, err := scheme.Key(label, text)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// little are bounds under which a whole run ends within a second or two, and
// which a busy machine does not exceed.
func little() receiver.Bounds {
	b := receiver.DefaultBounds()
	b.Fast, b.Burst = 20*time.Second, 20*time.Second
	b.Oversize, b.HeaderTop, b.BurstSize = 12<<20, 6<<20, 64
	return b
}

// serve serves a handler that needs no secrets of the suite's.
func serve(t testing.TB, h http.Handler) drive.Receiver {
	t.Helper()
	return serveConfig(t, drive.HandlerConfig{New: drive.Serve(h), Path: "/hooks"})
}

func serveConfig(t testing.TB, c drive.HandlerConfig) drive.Receiver {
	t.Helper()
	r, err := drive.Handler(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
	return r
}

// reference serves the reference receiver with all three secrets.
func reference(t testing.TB, p *profile.Profile) drive.Receiver {
	t.Helper()
	return serveConfig(t, drive.HandlerConfig{
		Secrets: drive.Secrets{Current: current, Previous: previous, Public: keyOf(t, "private", private).PublicText()},
		New: func(s drive.Secrets) (*http.Server, error) {
			scheme, err := ref.Scheme(p)
			if err != nil {
				return nil, err
			}
			var keys []signature.Key
			for _, text := range []string{s.Current, s.Previous, s.Public} {
				if text == "" {
					continue
				}
				key, err := scheme.Key("key", text)
				if err != nil {
					return nil, err
				}
				keys = append(keys, key)
			}
			h, err := ref.New(ref.Config{Profile: p, Keys: keys, Store: ref.NewMemory(), Clock: clock.New()})
			if err != nil {
				return nil, err
			}
			return ref.HTTPServer(h), nil
		},
	})
}

// small is a receiver as a team might write it on a morning. It knows the
// current secret alone.
type small struct {
	takesUnsigned bool               // accepts what bears no signature
	chatty        bool               // tells its secret to whoever is refused, in many forms
	before        func(delivery int) // called with the number of each delivery that verified
	count         chan int
}

func (s small) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.Error(w, "POST only", http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64<<10))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		http.Error(w, "too large", http.StatusRequestEntityTooLarge)
		return
	case err != nil:
		http.Error(w, "the body broke off", http.StatusBadRequest)
		return
	}
	if s.takesUnsigned && r.Header.Get("webhook-signature") == "" || verifies(r.Header, body) {
		if s.before != nil {
			n := <-s.count + 1
			s.count <- n
			s.before(n)
		}
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if s.chatty {
		raw, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(current, "whsec_"))
		w.Header().Set("X-Debug-Secret", current)
		w.Header().Set("X-Debug-Hex", fmt.Sprintf("%X", raw))
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, "bad signature; the secret is %s, %s, %x, %s", current, raw, raw, base64.URLEncoding.EncodeToString([]byte("<"+string(raw)+">")))
		return
	}
	http.Error(w, "bad signature", http.StatusUnauthorized)
}

func verifies(h http.Header, body []byte) bool {
	id, ts := h.Get("webhook-id"), h.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(ts, 10, 64)
	if err != nil || id == "" || strconv.FormatInt(seconds, 10) != ts || time.Since(time.Unix(seconds, 0)).Abs() > 5*time.Minute {
		return false
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(current, "whsec_"))
	if err != nil {
		return false
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", id, ts, body)
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	for token := range strings.FieldsSeq(h.Get("webhook-signature")) {
		if hmac.Equal([]byte(token), []byte(want)) {
			return true
		}
	}
	return false
}

// pickyHandler is a small receiver that judges an authentic event by its
// content before it answers, which breaks a SHOULD.
type pickyHandler struct{}

func (pickyHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || verifies(r.Header, body) && !json.Valid(body) {
		http.Error(w, "malformed event", http.StatusBadRequest)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	small{}.ServeHTTP(w, r)
}

// config is a run of the whole suite, as short as it gets.
func config(t testing.TB, r drive.Receiver) conformance.Config {
	t.Helper()
	return conformance.Config{Receiver: r, Profile: standard(t, 10*time.Second), Secrets: []string{current}, Bounds: little(), Rate: 1e6}
}

// row finds a requirement's result.
func row(t testing.TB, r *report.Report, id string) report.Result {
	t.Helper()
	for _, row := range r.Results {
		if row.ID == id {
			return row
		}
	}
	t.Fatalf("the report has no row %s", id)
	return report.Result{}
}

// outcomes are what a report says of each requirement.
func outcomes(r *report.Report) map[string]string {
	out := map[string]string{}
	for _, row := range r.Results {
		out[row.ID] = strings.TrimSpace(string(row.Outcome) + " " + string(row.SkipReason))
	}
	return out
}

// asked are the rows that were asked for and could be tried.
func asked(r *report.Report) (rows []report.Result) {
	for _, row := range r.Results {
		switch row.SkipReason {
		case evidence.NotSelected, evidence.NotApplicable, evidence.NotDeclared, evidence.NoCheck:
		default:
			rows = append(rows, row)
		}
	}
	return rows
}

// at is whoever listens at a URL.
func at(url string) drive.Receiver { return drive.URL(fakeprovider.Target{URL: url}) }
