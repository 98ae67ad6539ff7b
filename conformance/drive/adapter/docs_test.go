package adapter

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// document is docs/adapter-protocol.md.
func document(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/adapter-protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Every message that the document shows is one of the schema.
func TestTheMessagesInTheDocumentAreValid(t *testing.T) {
	message := compiled(t, "")
	shown := 0
	for line := range strings.Lines(document(t)) {
		line = strings.TrimLeft(line, "→← ")
		if strings.HasPrefix(line, `{"jsonrpc"`) {
			shown++
			valid(t, message, line)
		}
	}
	if shown < 10 {
		t.Errorf("it shows %d messages", shown)
	}
}

// The document names every method, every number that a sender declares, and
// every fault that a peer can be blamed for.
func TestTheDocumentIsComplete(t *testing.T) {
	text := document(t)
	for _, method := range append(schemaMethods(t), MethodCancel) {
		if !strings.Contains(text, "### `"+method+"`\n") {
			t.Errorf("there is no section on %s", method)
		}
	}
	for field := range reflect.TypeFor[Initialized]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if !strings.Contains(text, "`"+name+"`") {
			t.Errorf("it does not explain %s", name)
		}
	}
	for _, k := range []Kind{Banner, Garbage, WrongID, DoubledID, LongLine, Died, CutLine, GaveUp, Unread, Silent, BadResult, Version, BadStatus, NoContact} {
		if !strings.Contains(text, "| `"+string(k)+"`") {
			t.Errorf("it does not explain %s", k)
		}
	}
}

// python is the n-th adapter in Python that the document gives to copy, started.
func python(t *testing.T, n int, env ...string) *Session {
	t.Helper()
	interpreter, err := exec.LookPath("python3")
	if err != nil {
		if os.Getenv("WHCONFORM_PEERS") != "" {
			t.Fatal("python3 is not installed, and WHCONFORM_PEERS demands it")
		}
		t.Skip("NOT TESTED HERE: the Python adapters of docs/adapter-protocol.md, as python3 is not installed")
	}
	found := regexp.MustCompile("(?s)```python\n(.*?)```").FindAllStringSubmatch(document(t), -1)
	if len(found) <= n {
		t.Fatalf("it has %d", len(found))
	}
	p, err := Start(Command{Args: []string{interpreter, "-c", found[n][1]}, Env: append(os.Environ(), env...)}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), p, InitializeParams{Profile: "standard-webhooks"})
	if err != nil {
		_ = p.Close(t.Context())
		t.Fatal(err)
	}
	return s
}

// The adapters that the document gives to copy work.
func TestTheReceiversAdapterInTheDocumentWorks(t *testing.T) {
	database := t.TempDir() + "/shop.db"
	const setUp = "import sqlite3, sys\nwith sqlite3.connect(sys.argv[1]) as db:\n" +
		"  db.execute('CREATE TABLE ledger (event_id TEXT)')\n  db.executemany('INSERT INTO ledger VALUES (?)', [('evt_1',), ('evt_1',)])"
	if interpreter, err := exec.LookPath("python3"); err == nil {
		if out, err := exec.Command(interpreter, "-c", setUp, database).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	noLeaks(t)
	s := python(t, 0, "SHOP_DATABASE="+database)
	if !slices.Equal(s.About.Capabilities, []string{MethodProcessed}) {
		t.Errorf("it told %+v", s.About)
	}
	for id, want := range map[string]int{"evt_1": 2, "evt_2": 0} {
		if got, err := s.Processed(t.Context(), id); err != nil || got.Processed != want {
			t.Errorf("%s: %+v, %v", id, got, err)
		}
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestTheSendersAdapterInTheDocumentWorks(t *testing.T) {
	type delivery struct {
		header http.Header
		body   string
	}
	came := make(chan delivery, 10)
	var count atomic.Int64
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if count.Add(1) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		came <- delivery{r.Header, string(body)}
	}))
	defer shop.Close()
	s := python(t, 1)
	if len(s.About.RetrySchedule) != 4 || len(s.About.DefaultSchedule) != 10 || s.About.Jitter == nil {
		t.Errorf("it declares %+v", s.About)
	}
	e, err := s.CreateEndpoint(t.Context(), CreateEndpointParams{URL: shop.URL, EventTypes: []string{"a.b"}})
	if err != nil {
		t.Fatal(err)
	}
	if p, err := s.Publish(t.Context(), PublishParams{Type: "a.c", PayloadBase64: []byte("x")}); err != nil || len(p.MessageIDs) != 0 {
		t.Errorf("an event of another type: %+v, %v", p, err)
	}
	p, err := s.Publish(t.Context(), PublishParams{Type: "a.b", PayloadBase64: []byte("{ }")})
	if err != nil || len(p.MessageIDs) != 1 {
		t.Fatalf("published %+v, %v", p, err)
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(e.Secret, "whsec_"))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		var got delivery
		select {
		case got = <-came:
		case <-time.After(20 * time.Second):
			t.Fatalf("%d attempts came", count.Load())
		}
		id, at := got.header.Get("webhook-id"), got.header.Get("webhook-timestamp")
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + at + "." + got.body))
		if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); got.body != "{ }" || id != p.MessageIDs[0] || got.header.Get("webhook-signature") != want {
			t.Errorf("it sent %+v, want %s", got, want)
		}
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
