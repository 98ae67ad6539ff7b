package fakeendpoint_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/whconform/whconform/fakeendpoint"
)

// A day at a request a second, 86,400 of them, each another message: what is
// remembered has its bounds, so the day leaves the memory where its first hours
// have brought it.
func TestADaysLoadLeavesMemoryWhereItWas(t *testing.T) {
	const day = 24 * 60 * 60
	warm, rest := 36_000, day-36_000
	if raceDetector || testing.Short() {
		warm, rest = 24_000, 12_000
	}
	s, err := fakeendpoint.Start(fakeendpoint.Config{Clock: clock.New()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	p := s.Path("day", script(t, "500,200"), mustKey(t))
	sent := 0
	run := func(n int) {
		c, err := net.Dial("tcp", hostPort(p.URL()))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(2 * time.Minute))
		in := bufio.NewReader(c)
		const together = 50 // requests on their way
		for ; n > 0; n -= together {
			var out strings.Builder
			for range together {
				sent++
				fmt.Fprintf(&out, "POST /day HTTP/1.1\r\nHost: x\r\nwebhook-id: msg_%d\r\nwebhook-timestamp: %d\r\nwebhook-signature: v1,bm8=\r\nContent-Length: %d\r\n\r\n%s", sent, time.Now().Unix(), len(body), body)
			}
			if _, err := c.Write([]byte(out.String())); err != nil {
				t.Fatal(err)
			}
			for answers := 0; answers < together; {
				line, err := in.ReadString('\n')
				if err != nil {
					t.Fatal(err)
				}
				if line == "\r\n" { // the end of a head, and there is no body
					answers++
				}
			}
		}
	}
	run(warm)
	before := memory()
	goroutines := runtime.NumGoroutine()
	run(rest)
	after := memory()
	t.Logf("%d requests: %.1f MiB after the first %d, %.1f MiB at the end", sent, float64(before)/(1<<20), warm, float64(after)/(1<<20))
	if grown := after - before; grown > 4<<20 {
		t.Errorf("memory has grown by %d bytes", grown)
	}
	if got := runtime.NumGoroutine(); got > goroutines+1 {
		t.Errorf("%d goroutines, before there were %d", got, goroutines)
	}
	stats := s.Stats()
	if stats.Forgotten == 0 {
		t.Errorf("nothing was forgotten: the bound was not reached, %+v", stats)
	}
	attemptsAtMost(t, p, sent)
	if got := len(p.Attempts()) + p.Forgotten(); got != sent {
		t.Errorf("%d of %d are remembered or counted", got, sent)
	}
}

// attemptsAtMost waits for n attempts of which some may be forgotten.
func attemptsAtMost(t *testing.T, p *fakeendpoint.Path, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := p.Wait(ctx, n)
	var forgotten *fakeendpoint.ForgottenError
	if err != nil && !errors.As(err, &forgotten) {
		t.Fatal(err)
	}
}
