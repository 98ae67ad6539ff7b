//go:build unix

package sender

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lock is an exclusive lock on a file, which the kernel takes back when the
// process ends, however it ends. Unlike a process id it means the same in every
// container that shares the file, and is never given to another process.
type lock struct{ file *os.File }

// errLocked tells that a lock is held by somebody who lives.
var errLocked = errors.New("it is locked")

// acquire locks the file at path, which it makes if asked to.
func acquire(path string, create bool) (*lock, error) {
	flags := os.O_RDWR
	if create {
		flags |= os.O_CREATE | os.O_EXCL
	}
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errLocked
		}
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return &lock{f}, nil
}

// release removes the file and gives the lock up, in this order: whoever finds
// the file finds it locked.
func (l *lock) release() error {
	_ = os.Remove(l.file.Name()) // what is left is only a name
	return l.file.Close()
}

// abandon gives the lock up and leaves the file.
func (l *lock) abandon() { _ = l.file.Close() }
