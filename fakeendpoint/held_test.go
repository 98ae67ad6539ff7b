//go:build unix

package fakeendpoint_test

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/whconform/whconform/fakeendpoint"
)

// manyHeld is how many connections must be held at a time, and heldLimit what
// each of them may cost this process, in bytes.
const (
	manyHeld  = 10_000
	heldLimit = 8 << 10
)

// descriptors is how many connections a process may have open.
func descriptors(t testing.TB) int {
	t.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	return int(min(limit.Cur, 1<<20)) - 100
}

func TestTenThousandConnectionsAreHeldCheaply(t *testing.T) {
	n := manyHeld
	if raceDetector {
		n /= 10 // memory is not judged, and a race needs no crowd
	}
	if limit := descriptors(t); limit < n {
		t.Logf("WARNING: a process may open %d files here (ulimit -n), so %d connections are held and not %d", limit, limit, n)
		n = limit
	}
	for _, text := range []string{"hang", "slow(1h)", "drip(1B,1h)"} {
		t.Run(text, func(t *testing.T) {
			s, err := fakeendpoint.Start(fakeendpoint.Config{Clock: clock.New()})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			p := s.Path("held", script(t, text))
			clients := start(t, "clients")
			before := memory()
			fmt.Fprintln(clients.in, p.URL(), n)
			if got := clients.line(t); got != "open" {
				t.Fatalf("the clients say %q", got)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			for changed := s.HeldChanged(); ; changed = s.HeldChanged() {
				if got, _ := s.Held(); got == n {
					break
				}
				select {
				case <-changed:
				case <-ctx.Done():
					got, _ := s.Held()
					t.Fatalf("%d connections are held, not %d: %+v", got, n, s.Stats())
				}
			}
			each := (memory() - before) / int64(n)
			t.Logf("%d connections held by %s, %d bytes each", n, text, each)
			if each > heldLimit && !raceDetector {
				t.Errorf("each costs %d bytes, more than %d", each, heldLimit)
			}
		})
	}
}
