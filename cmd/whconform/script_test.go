package main

import (
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/benbjohnson/clock"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/whconform/whconform/reference/profile"
	"github.com/whconform/whconform/reference/receiver"
	"github.com/whconform/whconform/reference/signature"
)

// The scripts under testdata/script read like terminal sessions. Beside
// testscript's own commands they have those of TestScripts, and whconform
// itself, which is this test's binary under another name.

func TestMain(m *testing.M) {
	// Under the race detector a process sleeps for a second before it ends, to
	// let others report. Hundreds of processes are started here.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=10"); err != nil {
		log.Fatal(err)
	}
	testscript.Main(m, map[string]func(){"whconform": main})
}

var updateScripts = os.Getenv("UPDATE_SCRIPTS") != ""

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		UpdateScripts:       updateScripts,
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("GORACE", "atexit_sleep_ms=10")
			e.Setenv("SECRET", newSecret())
			e.Setenv("OLD_SECRET", newSecret())
			// Nobody can listen there without being root.
			e.Setenv("DEAD", "http://127.0.0.1:1/")
			text := "# the receiver's own, as its team keeps them\n\n" + e.Getenv("SECRET") + "\n  # the one before\n" + e.Getenv("OLD_SECRET") + "\n"
			return os.WriteFile(filepath.Join(e.WorkDir, "secrets.txt"), []byte(text), 0o600)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "serve": serve, "discloses": discloses, "widest": widest,
		},
	})
}

func newSecret() string {
	raw := make([]byte, 32)
	_, _ = rand.Read(raw) // never fails
	return "whsec_" + base64.StdEncoding.EncodeToString(raw)
}

// exits CODE PROGRAM ARG... runs a program that must end with this code. What
// it prints is for the stdout and stderr commands, as with exec.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARG...")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		code = ended.ExitCode()
	} else if err != nil {
		ts.Fatalf("running %s: %v", args[1], err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
	// Whatever is tried, in no script does a secret come out.
	discloses(ts, true, []string{"stdout"})
	discloses(ts, true, []string{"stderr"})
}

// discloses FILE tells whether a secret of the script stands in the file.
func discloses(ts *testscript.TestScript, neg bool, args []string) {
	for _, file := range args {
		text := ts.ReadFile(file)
		for _, name := range []string{"SECRET", "OLD_SECRET"} {
			secret := ts.Getenv(name)
			bare := strings.TrimPrefix(secret, "whsec_")
			if strings.Contains(text, secret) || strings.Contains(text, bare) {
				if neg {
					ts.Fatalf("%s holds $%s", file, name)
				}
				return
			}
		}
	}
	if !neg {
		ts.Fatalf("no secret stands in %v", args)
	}
}

// widest COLUMNS checks that no line of the last output is wider.
func widest(ts *testscript.TestScript, _ bool, args []string) {
	columns, err := strconv.Atoi(args[0])
	ts.Check(err)
	for line := range strings.Lines(ts.ReadFile("stdout")) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > columns {
			ts.Fatalf("%d columns: %s", n, line)
		}
	}
}

// serve KIND listens on loopback until the script ends and sets URL:
//
//	reference  the reference receiver, with $SECRET and $OLD_SECRET
//	tls        the same over https, with its certificate in cert.pem
//	tls-only   speaks TLS and answers plain HTTP with an alert
//	accepts    a receiver that accepts anything
//	refuses    one that refuses everything
//	throttles  one that answers 429
//	echoes     one that answers with the secret it knows, in every way it can
//	silent     takes connections and never answers
//	garbage    speaks another protocol
func serve(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: serve KIND")
	}
	address := ""
	switch args[0] {
	case "silent", "garbage":
		address = "http://" + listen(ts, args[0] == "garbage") + "/"
	case "tls-only":
		address = "https://" + listenTLS(ts) + "/"
	case "tls":
		s := httptest.NewUnstartedServer(referenceHandler(ts))
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		s.StartTLS()
		ts.Defer(s.Close)
		certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
		ts.Check(os.WriteFile(ts.MkAbs("cert.pem"), certificate, 0o644))
		address = s.URL + "/"
	default:
		s := httptest.NewServer(handler(ts, args[0]))
		ts.Defer(s.Close)
		address = s.URL + "/"
	}
	ts.Setenv("URL", address)
	ts.Setenv("HOSTPORT", strings.Trim(strings.TrimPrefix(strings.TrimPrefix(address, "http://"), "https://"), "/"))
}

func handler(ts *testscript.TestScript, kind string) http.Handler {
	answer := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, 1<<20))
			w.WriteHeader(status)
		}
	}
	switch kind {
	case "reference":
		return referenceHandler(ts)
	case "accepts":
		return answer(http.StatusOK)
	case "refuses":
		return answer(http.StatusUnauthorized)
	case "throttles":
		return answer(http.StatusTooManyRequests)
	case "echoes":
		secret := ts.Getenv("SECRET")
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, 1<<20))
			w.Header().Set("X-Debug", secret)
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, "configured with "+secret+" / "+strings.TrimPrefix(secret, "whsec_")+"\n")
		})
	}
	ts.Fatalf("serve: there is no kind %q", kind)
	return nil
}

func referenceHandler(ts *testscript.TestScript) http.Handler {
	p, err := profile.Load("standard-webhooks")
	ts.Check(err)
	scheme, err := p.Scheme()
	ts.Check(err)
	var keys []signature.Key
	for _, name := range []string{"SECRET", "OLD_SECRET"} {
		key, err := scheme.Key(name, ts.Getenv(name))
		ts.Check(err)
		keys = append(keys, key)
	}
	h, err := receiver.New(receiver.Config{Profile: p, Keys: keys, Store: receiver.NewMemory(), Clock: clock.New()})
	ts.Check(err)
	return h
}

// listenTLS shakes hands and no more. Unlike Go's HTTP server, it does not
// answer plain HTTP in plain HTTP.
func listenTLS(ts *testscript.TestScript) string {
	certificates := httptest.NewUnstartedServer(nil)
	certificates.StartTLS()
	config := certificates.TLS.Clone()
	certificates.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = tls.Server(c, config).Handshake()
			_ = c.Close()
		}
	}()
	ts.Defer(func() {
		_ = l.Close()
		<-done
	})
	return l.Addr().String()
}

// listen takes connections; with garbage it greets them as another protocol.
func listen(ts *testscript.TestScript, garbage bool) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		var open []net.Conn
		for {
			c, err := l.Accept()
			if err != nil {
				break
			}
			if garbage {
				_, _ = io.WriteString(c, "220 mail.example ESMTP\r\n")
			}
			open = append(open, c)
		}
		for _, c := range open {
			_ = c.Close()
		}
	}()
	ts.Defer(func() {
		_ = l.Close()
		<-done
	})
	return l.Addr().String()
}
