//go:build unix

package fakeendpoint

import (
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"
)

const (
	// shortQueue and longQueue are backlogs: the first lets one connection wait,
	// the second is what the kernel cuts to its own maximum.
	shortQueue, longQueue = 0, 4096

	// fillWait is how long a connection on loopback may take before the queue
	// counts as full; they take some microseconds.
	fillWait = 150 * time.Millisecond

	// fillMost bounds the connections that fill a queue of length zero.
	fillMost = 64
)

// fillQueue has connecting to l never complete: it makes the accept queue short
// and fills it. Nobody may be accepting.
func fillQueue(l *net.TCPListener) ([]net.Conn, error) {
	if err := setBacklog(l, shortQueue); err != nil {
		return nil, err
	}
	var fillers []net.Conn
	for range fillMost {
		c, err := net.DialTimeout("tcp", l.Addr().String(), fillWait)
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			return fillers, nil
		}
		if err != nil {
			return fillers, fmt.Errorf("connecting to fill it: %w", err)
		}
		fillers = append(fillers, c)
	}
	return fillers, fmt.Errorf("%d connections do not fill it", fillMost)
}

// emptyQueue has l accept connections again. Those that filled the queue come
// first, closed.
func emptyQueue(l *net.TCPListener, fillers []net.Conn) error {
	for _, f := range fillers {
		_ = f.Close()
	}
	if err := setBacklog(l, longQueue); err != nil {
		return err
	}
	return l.SetDeadline(time.Time{})
}

func setBacklog(l *net.TCPListener, n int) error {
	raw, err := l.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = syscall.Listen(int(fd), n) }); err != nil {
		return err
	}
	return failed
}
