package receiver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"testing"
	"time"
)

// openFile opens an inbox in a file and closes it when the test ends.
func openFile(t testing.TB, path string, o Options) *Inbox {
	t.Helper()
	inbox, err := OpenSQLite(context.Background(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := inbox.Close(); err != nil {
			t.Error(err)
		}
	})
	return inbox
}

// run processes the inbox until stop is called or the test ends.
func run(t testing.TB, inbox *Inbox) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- inbox.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return stop
}

// randomID is an id that differs for each n and sorts anywhere.
func randomID(n int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d", n))
	return "msg_" + hex.EncodeToString(sum[:16])
}

// await waits until ready says yes.
func await(t testing.TB, what string, ready func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); ; <-tick.C {
		if ready() {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("waiting until %s: it takes too long", what)
		}
	}
}
