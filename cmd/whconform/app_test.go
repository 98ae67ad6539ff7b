package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/whconform/whconform/conformance/report"
	"github.com/whconform/whconform/conformance/suite"
)

// call runs the program in this process. Not for runs of the suite: Ginkgo
// ends a process that was started with -test.count.
func call(t *testing.T, env map[string]string, args ...string) (code int, out, errText string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = run(t.Context(), args, strings.NewReader(""), &stdout, &stderr, func(name string) (string, bool) {
		value, ok := env[name]
		return value, ok
	})
	return code, stdout.String(), stderr.String()
}

func TestColoursAreForTerminalsWhoseOwnersWantThem(t *testing.T) {
	for name, c := range map[string]struct {
		terminal, forbidden bool
		env                 map[string]string
		want                bool
	}{
		"a terminal":                 {terminal: true, want: true},
		"a pipe":                     {},
		"--no-color":                 {terminal: true, forbidden: true},
		"NO_COLOR":                   {terminal: true, env: map[string]string{"NO_COLOR": "1"}},
		"NO_COLOR, set to nothing":   {terminal: true, env: map[string]string{"NO_COLOR": ""}, want: true},
		"a terminal that cannot":     {terminal: true, env: map[string]string{"TERM": "dumb"}},
		"a terminal that can colour": {terminal: true, env: map[string]string{"TERM": "xterm-256color"}, want: true},
	} {
		a := &app{lookup: func(name string) (string, bool) { v, ok := c.env[name]; return v, ok }}
		if c.terminal {
			a.outFile = os.Stdout // color asks only whether there is one
		}
		if got := a.color(c.forbidden); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

func TestProgressIsOneLineOnATerminalAndFewLinesElsewhere(t *testing.T) {
	for name, c := range map[string]struct {
		live, verbose bool
		want          string
	}{
		"a terminal": {live: true, want: "judging …\r\x1b[K1 of 2  a\r\x1b[K2 of 2  b\r\x1b[K"},
		"a file":     {want: "judging\n"},
	} {
		var out bytes.Buffer
		a := &app{err: newRedactor(&out, &secrets{}), lookup: noEnvironment}
		p := a.newProgress(c.verbose)
		p.live = c.live
		p.begin("judging")
		p.step(suite.Progress{Scenario: "a", Done: 1, Total: 2})
		p.step(suite.Progress{Scenario: "b", Done: 2, Total: 2})
		p.end()
		if out.String() != c.want {
			t.Errorf("%s: %q, want %q", name, out.String(), c.want)
		}
	}
}

func TestAReportTakesTheNamedFilesPlaceOnlyWhenItIsWhole(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "report.json")
	if err := os.WriteFile(file, []byte("the last run's"), 0o600); err != nil {
		t.Fatal(err)
	}
	// An error after the file was opened: the old report is still there.
	code, text := execute(t, "receiver", "http://127.0.0.1:1/", "--secret", newSecret(), "--report", "json="+file, "--report", "xml="+file)
	if code != report.ExitUsage {
		t.Errorf("exit code %d: %s", code, text)
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != "the last run's" {
		t.Errorf("%q, %v", got, err)
	}
	code, _ = execute(t, "receiver", "http://127.0.0.1:1/", "--secret", newSecret(), "--report", "json="+file)
	if code != report.ExitError {
		t.Errorf("exit code %d, want %d", code, report.ExitError)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if r, err := report.ReadJSON(f); err != nil || r.Verdict != report.Broken {
		t.Errorf("%v, %v", r, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%d files are left, want the report alone (%v)", len(entries), err)
	}
}

func TestAFullDiskIsAnError(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("this system has no /dev/full")
	}
	code, text := execute(t, "receiver", "http://127.0.0.1:1/", "--secret", newSecret(), "--report", "json=/dev/full")
	if code != report.ExitError || !strings.Contains(text, "whconform: writing the report: ") || !strings.Contains(text, "no space left") {
		t.Errorf("exit code %d: %s", code, text)
	}
	full := &failingWriter{err: errors.New("no space left")}
	var stderr bytes.Buffer
	code = run(context.Background(), []string{"version"}, nil, full, &stderr, noEnvironment)
	if code != report.ExitError || !strings.Contains(stderr.String(), "no space left") {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
}

func TestURLsAreReadOrRefused(t *testing.T) {
	for text, want := range map[string]string{
		"http://127.0.0.1:8080/hooks?a=1": "",
		"https://example.com":             "",
		"HTTP://LOCALHOST/":               "",
		"http://[::1]:80/":                "",
		"127.0.0.1:8080":                  "did you mean http://127.0.0.1:8080?",
		"//localhost/hooks":               "did you mean http://localhost/hooks?",
		"":                                "has no scheme",
		"ws://localhost/a b":              "",
		"gopher://localhost:70/x?y":       "not gopher; did you mean http://localhost:70/x?",
		"http://":                         "it names no host",
		"http://:8080/":                   "it names no host",
		"http://localhost:0/":             "there is no port 0",
		"http://localhost:65536/":         "there is no port 65536",
		"http://local host/":              "reading the URL: invalid character",
		"http://me:hunter2%zz@localhost/": "reading the URL: ",
	} {
		u, err := readURL(text)
		switch {
		case want == "" && strings.HasPrefix(text, "ws"):
			if err == nil {
				t.Errorf("%q is read", text)
			}
		case want == "" && (err != nil || u == nil):
			t.Errorf("%q: %v", text, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: %v, want %q", text, err, want)
		case err != nil && strings.Contains(err.Error(), "hunter2"):
			t.Errorf("the error shows the password: %v", err)
		}
	}
}

func TestOnlyHostsThatWereAllowedAreSentTo(t *testing.T) {
	a := &app{kept: &secrets{}}
	for name, c := range map[string]struct {
		url   string
		allow []string
		ok    bool
	}{
		"this machine by number":         {"http://127.0.0.1:8080/", nil, true},
		"this machine by another number": {"http://127.8.8.8/", nil, true},
		"this machine by name":           {"http://localhost:3000/", nil, true},
		"this machine by IPv6":           {"http://[::1]:3000/", nil, true},
		"another machine":                {"http://192.0.2.1/", nil, false},
		"a name that looks like it":      {"http://localhost.example.com/", nil, false},
		"another machine, allowed":       {"https://example.com/", []string{"example.com"}, true},
		"whatever the case":              {"https://Example.com/", []string{"EXAMPLE.com"}, true},
		"with a port":                    {"https://example.com:8443/", []string{"example.com:8443"}, true},
		"IPv6, allowed":                  {"https://[2001:db8::1]/", []string{"[2001:db8::1]"}, true},
		"one of several":                 {"https://example.com/", []string{"example.org", "example.com"}, true},
		"a part of the name":             {"https://hooks.example.com/", []string{"example.com"}, false},
		"credentials that look like it":  {"http://localhost@192.0.2.1/", nil, false},
	} {
		f := &targetFlags{allowHosts: c.allow}
		if _, err := f.target(a, c.url); (err == nil) != c.ok {
			t.Errorf("%s: %v, want allowed: %t", name, err, c.ok)
		}
	}
}
