package drive

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/whconform/whconform/conformance/drive/adapter"
)

// stdoutGrace is how long a process's last output is waited for once it has
// ended: it is there at once, unless a child of its own holds the pipe.
const stdoutGrace = time.Second

// obituaryWait is how long a process whose output has ended is given to end
// itself, so that it can be told how.
const obituaryWait = time.Second

// stdio joins a managed process's standard streams to the adapter protocol. The
// process is a receiver first: whatever its adapter breaks, its input stays open
// and its output is read until it ends, so that it is never the protocol that
// ends it.
type stdio struct {
	peer *adapter.Client

	stdin, stdout *os.File       // this side of the process's pipes
	requests      *io.PipeReader // what the peer writes
	copying       sync.WaitGroup
}

// startOnStdio starts a command whose standard streams are the protocol's. What
// it prints after it broke the protocol is its log. Ended is closed when the
// process has been waited for.
func startOnStdio(cmd *exec.Cmd, output *tail, ended <-chan struct{}) (*stdio, error) {
	input, stdin, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe to its stdin: %w", err)
	}
	stdout, printed, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("making a pipe from its stdout: %w", err), input.Close(), stdin.Close())
	}
	cmd.Stdin, cmd.Stdout = input, printed
	err = cmd.Start()
	_, _ = input.Close(), printed.Close() // the process has its own
	if err != nil {
		return nil, errors.Join(err, stdin.Close(), stdout.Close())
	}
	requests, toRequests := io.Pipe()
	answers, toAnswers := io.Pipe()
	s := &stdio{stdin: stdin, stdout: stdout, requests: requests}
	s.copying.Go(func() {
		_, err := io.Copy(stdin, requests)
		_ = requests.CloseWithError(err) // the peer is told when it writes the next time
	})
	s.copying.Go(func() {
		copyAnswers(toAnswers, output, stdout)
		_ = toAnswers.Close()
	})
	s.peer = adapter.NewClient(adapter.Streams(answers, toRequests), adapter.Options{
		Name:   stdioName,
		Redact: func(text string) string { return Redact(text, output.secrets) },
		Obituary: func() string {
			bound := time.NewTimer(obituaryWait)
			defer bound.Stop()
			select {
			case <-ended:
				return fmt.Sprintf("  it ended with %s; its last words on stderr:\n%s", cmd.ProcessState, output)
			case <-bound.C:
				return fmt.Sprintf("  it still runs; its last words on stderr:\n%s", output)
			}
		},
	})
	s.copying.Go(func() {
		<-s.peer.Done()
		_ = answers.Close() // nobody reads them any more
	})
	return s, nil
}

// copyAnswers hands what a process prints to the peer, and to its log from where
// the peer reads no more.
func copyAnswers(peer, log io.Writer, stdout io.Reader) {
	to, piece := peer, make([]byte, 32<<10)
	for {
		n, err := stdout.Read(piece)
		rest := piece[:n]
		if took, failed := to.Write(rest); failed != nil {
			to = log
			_, _ = log.Write(rest[took:]) // a tail takes all
		}
		if err != nil {
			return
		}
	}
}

// stdioName is what errors call an adapter on a command's standard streams.
const stdioName = "the adapter on the command's standard streams"

// endInput ends the process's input, after which it is to end by itself. Nil has
// none.
func (s *stdio) endInput() {
	if s != nil {
		_ = s.stdin.Close() // may be closed already
	}
}

// end lets go of the pipes of a process that has ended. Nil has none.
func (s *stdio) end() {
	if s == nil {
		return
	}
	_ = s.stdout.SetReadDeadline(time.Now().Add(stdoutGrace))
	s.endInput()
	_ = s.requests.CloseWithError(os.ErrClosed)
	s.copying.Wait()
	_ = s.stdout.Close()
}
