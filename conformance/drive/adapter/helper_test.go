package adapter

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// tally counts what is written to it.
type tally struct{ n int }

func (t *tally) Write(b []byte) (int, error) {
	t.n += len(b)
	return len(b), nil
}

// lines is a writer whose lines can be waited for.
type lines struct{ come chan string }

func newLines() *lines { return &lines{make(chan string, 1000)} }

func (l *lines) Write(b []byte) (int, error) {
	for line := range strings.Lines(string(b)) {
		select {
		case l.come <- strings.TrimSpace(line):
		default:
			return 0, errors.New("more lines than the test has room for")
		}
	}
	return len(b), nil
}

func (l *lines) await(t *testing.T, want string) {
	t.Helper()
	bound := time.After(20 * time.Second)
	for {
		select {
		case line := <-l.come:
			if line == want {
				return
			}
		case <-bound:
			t.Fatalf("no line is %q", want)
		}
	}
}

// awaitGone waits until a process has ended: the kernel tells nobody but its
// parent, so it has to be asked.
func awaitGone(t *testing.T, pid int) {
	t.Helper()
	bound := time.After(10 * time.Second)
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for !gone(pid) {
		select {
		case <-bound:
			t.Fatalf("process %d is still there", pid)
		case <-again.C:
		}
	}
}

// newEnds is a connection on which nothing ever comes, and which takes what is
// written.
func newEnds(t *testing.T) io.ReadWriteCloser {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return Streams(r, discard{})
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) Close() error                { return nil }
