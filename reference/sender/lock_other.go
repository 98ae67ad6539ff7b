//go:build !unix

package sender

import (
	"errors"
	"os"
)

// lock would tell other processes that this one lives. Here it cannot: no
// process is known to be dead, and its messages are free again when their leases
// end.
type lock struct{ path string }

// errLocked tells that a lock is held by somebody who lives.
var errLocked = errors.New("it is locked")

func acquire(path string, create bool) (*lock, error) {
	if !create {
		if _, err := os.Stat(path); err != nil {
			return nil, err
		}
		return nil, errLocked
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return &lock{path}, f.Close()
}

func (l *lock) release() error {
	_ = os.Remove(l.path) // what is left is only a name
	return nil
}

func (l *lock) abandon() {}
