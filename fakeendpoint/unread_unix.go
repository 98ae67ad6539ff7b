//go:build unix

package fakeendpoint

import (
	"errors"
	"syscall"
)

// peek tells whether a read would not have to wait, and whether it would fail.
func peek(fd uintptr) (some, broken bool) {
	var one [1]byte
	for {
		_, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.EAGAIN):
			return false, false
		}
		return true, err != nil
	}
}
