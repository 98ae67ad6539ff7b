package main

import (
	"bufio"
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/whconform/whconform/conformance/report"
)

// These tests run the program as a process of its own: what a signal does
// cannot be seen otherwise. TestMain has put it into PATH.

// patience bounds a wait for a process.
const patience = 30 * time.Second

func command(t *testing.T, env []string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	c := exec.CommandContext(ctx, "whconform", args...)
	c.Env = append(os.Environ(), env...)
	return c
}

// execute runs the program to its end and returns its exit code and stderr.
func execute(t *testing.T, args ...string) (code int, text string) {
	t.Helper()
	c := command(t, nil, args...)
	var stderr strings.Builder
	c.Stderr = &stderr
	if err := c.Run(); c.ProcessState == nil {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), stderr.String()
}

func TestTheReferenceReceiverRunsUntilItIsInterrupted(t *testing.T) {
	for _, signal := range []os.Signal{syscall.SIGINT, syscall.SIGTERM} {
		secret := newSecret()
		c := command(t, []string{"WEBHOOK_SECRET=" + secret, "PORT=0"}, "reference", "receiver")
		stderr, err := c.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(stderr)
		address := await(t, lines, `msg=listening url=(http://127\.0\.0\.1:\d+/) profile=standard-webhooks`)

		code, out, text := call(t, map[string]string{"S": secret}, "provider", address, "--secret-env", "S", "--id", "msg_1", "--copies", "2")
		if code != 0 || strings.Count(out, "<-- 200 OK") != 2 {
			t.Errorf("sending: exit code %d, %s%s", code, out, text)
		}
		await(t, lines, `msg=accepted id=(msg_1) `)
		await(t, lines, `msg="accepted again, not stored twice" id=(msg_1) `)
		if code, _, _ := call(t, nil, "provider", address, "--unsigned"); code != 0 {
			t.Errorf("sending without a signature: exit code %d", code)
		}
		await(t, lines, `(refused|missing)`)

		if err := c.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		await(t, lines, `msg=(stopping)`)
		for lines.Scan() {
			t.Log(lines.Text()) // to the end, as Wait closes the pipe
		}
		if err := c.Wait(); err != nil {
			t.Errorf("after %v: %v, want exit code 0", signal, err)
		}
	}
}

// await reads lines until one matches, and returns its first group.
func await(t *testing.T, lines *bufio.Scanner, pattern string) string {
	t.Helper()
	want := regexp.MustCompile(pattern)
	var seen []string
	for lines.Scan() {
		seen = append(seen, lines.Text())
		if match := want.FindStringSubmatch(lines.Text()); match != nil {
			return match[1]
		}
	}
	t.Fatalf("no line matches %s:\n%s", pattern, strings.Join(seen, "\n"))
	return ""
}

func TestTheReportOfARealRunObeysItsSchema(t *testing.T) {
	c := command(t, nil, "receiver", "--reference", "--format", "json")
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	text, err := jsonschema.UnmarshalJSON(bytes.NewReader(report.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	if err := compiler.AddResource("schema.json", text); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(out))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(doc); err != nil {
		t.Error(err)
	}
	r, err := report.ReadJSON(bytes.NewReader(out))
	if err != nil || r.Verdict != report.Conformant {
		t.Errorf("%v, %v", r, err)
	}
}

func TestAnInterruptedRunStillGivesItsReport(t *testing.T) {
	// A receiver that takes its time once the run is on its way.
	reached := make(chan struct{}, 1000)
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(reached) < 5 {
			reached <- struct{}{}
			return
		}
		reached <- struct{}{}
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer s.Close()
	defer close(release)

	file := filepath.Join(t.TempDir(), "report.json")
	c := command(t, nil, "receiver", s.URL, "--secret", newSecret(), "--run", "signature", "--report", "json="+file)
	var out, text strings.Builder
	c.Stdout, c.Stderr = &out, &text
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	for range 8 { // three deliveries hang
		select {
		case <-reached:
		case <-time.After(patience):
			t.Fatal("the run never began")
		}
	}
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	if code := c.ProcessState.ExitCode(); code != report.ExitInterrupted {
		t.Errorf("exit code %d, want %d\n%s%s", code, report.ExitInterrupted, out.String(), text.String())
	}
	if !strings.Contains(out.String(), "the run was interrupted") || !strings.Contains(text.String(), "interrupted; the report holds what was seen until then") {
		t.Errorf("stdout:\n%s\nstderr:\n%s", out.String(), text.String())
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := report.ReadJSON(f)
	if err != nil || !r.Interrupted || r.End.Complete {
		t.Errorf("the report: %v, %v", r, err)
	}
}

func TestNoProcessIsLeftWhenARunWithACommandIsInterrupted(t *testing.T) {
	// The command tells its process id and never listens.
	dir := t.TempDir()
	pidFile := filepath.Join(dir, "pid")
	script := filepath.Join(dir, "receiver.sh")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho $$ >"+pidFile+".new\nmv "+pidFile+".new "+pidFile+"\nexec sleep 1000\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	c := command(t, nil, "receiver", "--exec", script)
	var text strings.Builder
	c.Stderr = &text
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	pid := fileContent(t, pidFile)
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	if code := c.ProcessState.ExitCode(); code != report.ExitInterrupted {
		t.Errorf("exit code %d, want %d: %s", code, report.ExitInterrupted, text.String())
	}
	if out, err := exec.Command("kill", "-0", pid).CombinedOutput(); err == nil {
		t.Errorf("process %s is still there: %s", pid, out)
	}
}

// fileContent waits for a file that another process moves into place.
func fileContent(t *testing.T, name string) string {
	t.Helper()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	bound := time.After(patience)
	for {
		if b, err := os.ReadFile(name); err == nil {
			return strings.TrimSpace(string(b))
		}
		select {
		case <-again.C:
		case <-bound:
			t.Fatalf("%s never came", name)
		}
	}
}
