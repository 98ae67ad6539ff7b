package drive

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// shell is an observer that is a script; the id is its $1.
func shell(t *testing.T, script string, o ObserveOptions) Observer {
	t.Helper()
	made, err := ObserveExec(ObserveExecConfig{Command: []string{"sh", "-c", script, "observer"}, ObserveOptions: o})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestACommandIsAnObserver(t *testing.T) {
	for _, tt := range []struct {
		name    string
		command []string
		want    Count
	}{
		{"the id is the last argument", []string{"sh", "-c", `[ "$1" = evt_1 ] && echo 3`, "observer"}, Count{N: 3}},
		{"the id stands in an argument", []string{"sh", "-c", `[ {id} = evt_1 ] && echo 3`}, Count{N: 3}},
		{"it prints JSON", []string{"sh", "-c", `echo '{"processed": 0, "failed": true}'`}, Count{Failed: true}},
		{"what it says on stderr is no answer", []string{"sh", "-c", `echo connecting >&2; echo 3`}, Count{N: 3}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			noLeaks(t)
			o, err := ObserveExec(ObserveExecConfig{Command: tt.command})
			if err != nil {
				t.Fatal(err)
			}
			if got, err := o.Processed(t.Context(), "evt_1"); err != nil || got != tt.want {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestACommandThatDoesNotTellIsNamed(t *testing.T) {
	for _, tt := range []struct {
		name, script string
		timeout      time.Duration
		fault        ObserverFault
		want         string
	}{
		{"nothing", "true", 0, ObserverNonsense, `it printed "": no count: it is neither JSON nor a number`},
		{"words", "echo it was processed; echo hello >&2", 0, ObserverNonsense, `it printed "it was processed": no count: it is neither JSON nor a number; on stderr it said "hello"`},
		{"two numbers", "echo 1; echo 2", 0, ObserverNonsense, `it printed "1\n2": no count: there is more than one value`},
		{"an exit code", "echo 1; echo database is locked >&2; exit 3", 0, ObserverRefuses, `it ended with exit status 3; on stderr it said "database is locked"`},
		{"a crash", "kill -SEGV $$", 0, ObserverRefuses, `it ended with signal: segmentation fault`},
		{"no end", "sleep 1000", 200 * time.Millisecond, ObserverHangs, `it did not end within 200ms`},
		{"a flood", "yes", 0, ObserverNonsense, `it printed more than 65536 bytes`},
		{"a process left behind", "sleep 1000 & echo 1", 0, ObserverUnfit, `it left a process behind that holds its output`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			noLeaks(t)
			_, err := shell(t, tt.script, ObserveOptions{Timeout: tt.timeout}).Processed(t.Context(), "evt_1")
			isFault(t, err, tt.fault, "the observer --observe-exec sh -c "+tt.script+" observer {id}, asked for evt_1: "+tt.want+"; expected exit code 0 and "+expectedCount)
		})
	}
}

func TestACommandThatIsNotThereIsNamed(t *testing.T) {
	o, err := ObserveExec(ObserveExecConfig{Command: []string{"./no-such-observer"}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = o.Processed(t.Context(), "evt_1")
	isFault(t, err, ObserverUnfit, "the observer --observe-exec ./no-such-observer {id}, asked for evt_1: fork/exec ./no-such-observer: no such file or directory; expected exit code 0 and "+expectedCount)
	for _, none := range [][]string{nil, {""}} {
		if _, err := ObserveExec(ObserveExecConfig{Command: none}); err == nil || err.Error() != "--observe-exec: no command" {
			t.Errorf("got %v", err)
		}
	}
}

// A command that is given up is killed with all that it started.
func TestACommandThatHangsLeavesNothingBehind(t *testing.T) {
	noLeaks(t)
	note := t.TempDir() + "/pid"
	o := shell(t, "sleep 1000 & echo $! > "+note+"; wait", ObserveOptions{Timeout: 500 * time.Millisecond})
	_, err := o.Processed(t.Context(), "evt_1")
	var of *ObserverError
	if !errors.As(err, &of) || of.Fault != ObserverHangs {
		t.Fatalf("got %v", err)
	}
	text, err := os.ReadFile(note)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	awaitGone(t, pid)
}

func TestACommandEndsWithTheRun(t *testing.T) {
	noLeaks(t)
	over := errors.New("the run is over")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(100*time.Millisecond, func() { cancel(over) })
	var of *ObserverError
	if _, err := shell(t, "sleep 1000", ObserveOptions{}).Processed(ctx, "evt_1"); !errors.Is(err, over) || errors.As(err, &of) {
		t.Errorf("got %v", err)
	}
}
