package sender

import (
	"fmt"
	"net"
	"sync"
)

// tripwire listens where no sender may connect to, and counts who does. It
// closes each connection at once: that it was made is the fault, whatever would
// be sent over it.
type tripwire struct {
	listener net.Listener
	done     sync.WaitGroup

	mu sync.Mutex
	n  int
}

// newTripwire listens on a free port of an address of this machine.
func newTripwire(address string) (*tripwire, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		return nil, fmt.Errorf("listening where no sender may connect to: %w", err)
	}
	w := &tripwire{listener: l}
	w.done.Go(w.accept)
	return w, nil
}

func (w *tripwire) accept() {
	for {
		c, err := w.listener.Accept()
		if err != nil {
			return
		}
		w.mu.Lock()
		w.n++
		w.mu.Unlock()
		_ = c.Close()
	}
}

// port is where it listens.
func (w *tripwire) port() int { return w.listener.Addr().(*net.TCPAddr).Port }

// count is how many connections were made.
func (w *tripwire) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.n
}

// close ends it and waits.
func (w *tripwire) close() {
	_ = w.listener.Close()
	w.done.Wait()
}
