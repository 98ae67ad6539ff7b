//go:build unix

package fakeendpoint

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// tryRead reads into a buffer that it takes only when there is something to
// read: an idle connection holds none. It is called by the runtime whenever the
// connection may be readable, and reports whether it is done.
func (c *conn) tryRead(fd uintptr) bool {
	c.acquire()
	for {
		n, err := syscall.Read(int(fd), c.buf)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.EAGAIN):
			c.release()
			return false
		case err != nil:
			c.rawErr = os.NewSyscallError("read", err)
		case n == 0:
			c.rawErr = io.EOF
		default:
			c.w = n
		}
		return true
	}
}

// rawReads tells whether tryRead works on this system.
const rawReads = true
