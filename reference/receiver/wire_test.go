package receiver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestADeclaredLengthBeyondTheBoundIsRefusedUnread(t *testing.T) {
	g := newRig(t, standard(), nil)
	k := g.dial()
	k.send(head("POST", g.headers("msg_1", event), "Content-Length: 67108864") + "\r\n") // and not a byte of it
	resp, _ := k.answer()
	if resp.StatusCode != 413 || !resp.Close {
		t.Errorf("answered %d, closing %v; want 413 and a close", resp.StatusCode, resp.Close)
	}
	k.ended()
}

func TestAnOversizeBodyWithoutALengthIsRefusedByWhatCame(t *testing.T) {
	body := &countingReader{left: 64 << 20}
	req := httptest.NewRequest("POST", "/", body)
	req.ContentLength = -1
	w := httptest.NewRecorder()
	g := newRig(t, standard(), nil)
	g.receiver.ServeHTTP(w, req)
	if w.Code != 413 {
		t.Errorf("answered %d, want 413", w.Code)
	}
	if body.read > DefaultMaxBody+1 {
		t.Errorf("read %d bytes, want no more than %d", body.read, DefaultMaxBody+1)
	}
	if body.largest > chunk {
		t.Errorf("read %d bytes at once, want no more than %d", body.largest, chunk)
	}
	if used := g.receiver.memory.used.Load(); used != 0 {
		t.Errorf("%d bytes are still reserved", used)
	}
}

// countingReader is a body that counts what is taken of it.
type countingReader struct{ left, read, largest int }

func (r *countingReader) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	n := min(len(p), r.left)
	r.left -= n
	r.read += n
	r.largest = max(r.largest, n)
	return n, nil
}

func TestAnEndlessChunkedBodyIsCutOff(t *testing.T) {
	g := newRig(t, standard(), nil)
	k := g.dial()
	k.send(head("POST", g.headers("msg_1", event), "Transfer-Encoding: chunked") + "\r\n")
	piece := fmt.Sprintf("%x\r\n%s\r\n", 4096, strings.Repeat("a", 4096))
	written := make(chan int64)
	go func() { // until the receiver has had enough
		var n int64
		for {
			m, err := io.WriteString(k, piece)
			n += int64(m)
			if err != nil || n > 64<<20 {
				written <- n
				return
			}
		}
	}()
	resp, _ := k.answer()
	if resp.StatusCode != 413 {
		t.Errorf("answered %d, want 413", resp.StatusCode)
	}
	_ = k.Close()
	// Kernel buffers take some megabytes that the receiver never reads.
	if n := <-written; n > 32<<20 {
		t.Errorf("it took %d bytes", n)
	}
}

func TestAChunkedBodyWithinTheBoundIsReceived(t *testing.T) {
	g := newRig(t, standard(), nil)
	k := g.dial()
	k.send(head("POST", g.headers("msg_1", event), "Transfer-Encoding: chunked") + "\r\n")
	for _, piece := range []string{event[:1], event[1:40], event[40:]} {
		k.send(fmt.Sprintf("%x\r\n%s\r\n", len(piece), piece))
	}
	k.send("0\r\n\r\n")
	if resp, _ := k.answer(); resp.StatusCode != 200 {
		t.Errorf("answered %d, want 200", resp.StatusCode)
	}
	if m, _ := g.store.Get("msg_1"); string(m.Body) != event {
		t.Errorf("stored %q", m.Body)
	}
}

func TestABodyShorterThanItsLengthIsNoDelivery(t *testing.T) {
	g := newRig(t, standard(), nil)
	k := g.dial()
	k.send(head("POST", g.headers("msg_1", event), fmt.Sprintf("Content-Length: %d", len(event)+10)) + "\r\n" + event)
	if err := k.Conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if resp, _ := k.answer(); resp.StatusCode != 400 {
		t.Errorf("answered %d, want 400", resp.StatusCode)
	}
	if g.store.Len() != 0 {
		t.Error("it was stored")
	}
}

func TestAPeerThatHasNothingMoreToSayIsServed(t *testing.T) {
	g := newRig(t, standard(), func(c *Config) {
		inner := c.Store
		c.Store = storeFunc(func(ctx context.Context, m Message) (bool, error) {
			if ctx.Done() == nil {
				return false, errors.New("storing has no bound on its time")
			}
			return inner.Add(ctx, m)
		})
	})
	for i := range 50 { // whether the server sees the end first is chance
		id := fmt.Sprintf("msg_%d", i)
		k := g.dial()
		k.send(whole("POST", g.headers(id, event), event))
		if err := k.Conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if resp, _ := k.answer(); resp.StatusCode != 200 {
			t.Fatalf("delivery %d was answered %d, want 200", i, resp.StatusCode)
		}
	}
}

func TestABodyLongerThanItsLengthIsCutThere(t *testing.T) {
	g := newRig(t, standard(), nil)
	k := g.dial()
	k.send(head("POST", g.headers("msg_1", event), fmt.Sprintf("Content-Length: %d", len(event)-10)) + "\r\n" + event)
	if resp, _ := k.answer(); resp.StatusCode != 401 {
		t.Errorf("answered %d, want 401", resp.StatusCode)
	}
}

func TestExpectContinue(t *testing.T) {
	t.Run("a body within the bound is asked for", func(t *testing.T) {
		g := newRig(t, standard(), nil)
		k := g.dial()
		k.send(head("POST", g.headers("msg_1", event), fmt.Sprintf("Content-Length: %d", len(event)), "Expect: 100-continue") + "\r\n")
		if resp, _ := k.answer(); resp.StatusCode != 100 {
			t.Fatalf("answered %d, want 100", resp.StatusCode)
		}
		k.send(event)
		if resp, _ := k.answer(); resp.StatusCode != 200 {
			t.Errorf("answered %d, want 200", resp.StatusCode)
		}
	})
	t.Run("a body beyond it is not", func(t *testing.T) {
		g := newRig(t, standard(), nil)
		k := g.dial()
		k.send(head("POST", g.headers("msg_1", event), "Content-Length: 67108864", "Expect: 100-continue") + "\r\n")
		if resp, _ := k.answer(); resp.StatusCode != 413 {
			t.Errorf("answered %d, want 413 at once", resp.StatusCode)
		}
	})
}

func TestABodyThatDoesNotComeEndsWithinItsTime(t *testing.T) {
	const bound = 150 * time.Millisecond
	for _, c := range []struct {
		name string
		drip bool
	}{{"a stalled body", false}, {"a body of a byte now and then", true}} {
		t.Run(c.name, func(t *testing.T) {
			g := newRig(t, standard(), func(c *Config) { c.BodyTimeout = bound })
			k := g.dial()
			k.send(head("POST", g.headers("msg_1", event), "Content-Length: 50000") + "\r\n{")
			if c.drip {
				stop := drip(k, bound/10)
				defer stop()
			}
			if status := g.post(g.headers("msg_2", event), event); status != 200 {
				t.Errorf("another delivery was answered %d meanwhile", status)
			}
			resp, _ := k.answer()
			if resp.StatusCode != 408 {
				t.Errorf("answered %d, want 408", resp.StatusCode)
			}
			k.ended()
		})
	}
}

// drip writes a byte in every interval until writing fails or stop is called.
func drip(w io.Writer, every time.Duration) (stop func()) {
	tick := time.NewTicker(every)
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-tick.C:
				if _, err := w.Write([]byte{' '}); err != nil {
					return
				}
			case <-quit:
				return
			}
		}
	}()
	return func() {
		tick.Stop()
		close(quit)
		<-done
	}
}

func TestSlowBodiesTakeNoSlot(t *testing.T) {
	g := newRig(t, standard(), func(c *Config) { c.MaxConcurrent = 1 })
	for range 8 {
		g.dial().send(head("POST", g.headers("msg_1", event), "Content-Length: 50000") + "\r\n{")
	}
	if status := g.post(g.headers("msg_2", event), event); status != 200 {
		t.Errorf("answered %d, want 200", status)
	}
}

func TestBodiesShareOneBoundOnMemory(t *testing.T) {
	g := newRig(t, standard(), func(c *Config) { c.MaxMemory = 2 * chunk })
	body := strings.Repeat("a", 3*chunk)
	k := g.dial()
	k.send(whole("POST", g.headers("msg_1", body), body))
	resp, _ := k.answer()
	if resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" || !resp.Close {
		t.Errorf("answered %d %v, want 503 with Retry-After and a close", resp.StatusCode, resp.Header)
	}
	if status := g.post(g.headers("msg_2", event), event); status != 200 {
		t.Errorf("a small one was answered %d afterwards, want 200", status)
	}
}

func TestDeliveriesBeyondTheSlotsAreToldToComeAgain(t *testing.T) {
	working, finish := make(chan struct{}), make(chan struct{})
	var calls atomic.Int32
	g := newRig(t, standard(), func(c *Config) {
		c.MaxConcurrent = 1
		c.Store = storeFunc(func(context.Context, Message) (bool, error) {
			if calls.Add(1) == 1 {
				close(working)
				<-finish
			}
			return true, nil
		})
	})
	g.receiver.slotWait = 20 * time.Millisecond

	first := g.dial()
	first.send(whole("POST", g.headers("msg_1", event), event))
	<-working
	second := g.dial()
	second.send(whole("POST", g.headers("msg_2", event), event))
	if resp, _ := second.answer(); resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" {
		t.Errorf("answered %d %v, want 503 with Retry-After", resp.StatusCode, resp.Header)
	}
	close(finish)
	if resp, _ := first.answer(); resp.StatusCode != 200 {
		t.Errorf("the first was answered %d, want 200", resp.StatusCode)
	}
	if status := g.post(g.headers("msg_3", event), event); status != 200 {
		t.Errorf("one after it was answered %d, want 200", status)
	}
}

func TestForgeriesAreThrottledAndAuthenticDeliveriesAreNot(t *testing.T) {
	g := newRig(t, standard(), func(c *Config) { c.ForgedLimit = Limit{PerSecond: 1, Burst: 3} })
	forged, authentic := g.headers("msg_1", event+" "), g.headers("msg_2", event)
	for i, want := range []int{401, 401, 401, 429, 429} {
		if status := g.post(forged, event); status != want {
			t.Errorf("forgery %d was answered %d, want %d", i+1, status, want)
		}
		if status := g.post(authentic, event); status != 200 {
			t.Errorf("an authentic delivery was answered %d after %d forgeries", status, i+1)
		}
	}
	if n := strings.Count(g.logs.String(), "refused"); n != 3 {
		t.Errorf("%d lines of refusals in the log, want 3: what is throttled leaves none", n)
	}
	g.clock.Add(time.Second)
	if status := g.post(forged, event); status != 401 {
		t.Errorf("a second later a forgery was answered %d, want 401", status)
	}
}

func TestTheServerBoundsHeaders(t *testing.T) {
	g := newRig(t, standard(), nil)
	for _, c := range []struct {
		name   string
		size   int
		status int
	}{{"a thousand signatures fit", 48_000, 200}, {"more is refused", 1 << 20, 431}} {
		k := g.dial()
		request := head("POST", g.headers("msg_1", event), "X-Padding: "+strings.Repeat("a", c.size), fmt.Sprintf("Content-Length: %d", len(event))) + "\r\n" + event
		// The refusal may come before all is written, and end the connection.
		go func() { _, _ = io.WriteString(k, request) }()
		if resp, _ := k.answer(); resp.StatusCode != c.status {
			t.Errorf("%s: answered %d, want %d", c.name, resp.StatusCode, c.status)
		}
	}
}

func TestReadBodyReturnsWhatTheConnectionSays(t *testing.T) {
	broken := errors.New("reset")
	b := &budget{limit: DefaultMemory}
	_, release, err := readBody(io.MultiReader(strings.NewReader("abc"), errReader{broken}), 10, DefaultMaxBody, b)
	release()
	if !errors.Is(err, broken) || b.used.Load() != 0 {
		t.Errorf("error %v with %d bytes reserved, want %v with none", err, b.used.Load(), broken)
	}
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

func TestAnInProcessRecorderNeedsNoConnection(t *testing.T) {
	g := newRig(t, standard(), nil)
	req := httptest.NewRequest(http.MethodPost, "/any/path?tenant=1", strings.NewReader(event))
	for _, h := range g.headers("msg_1", event) {
		req.Header.Set(h.Name, h.Value)
	}
	w := httptest.NewRecorder()
	g.receiver.ServeHTTP(w, req)
	if w.Code != 200 {
		t.Errorf("answered %d, want 200", w.Code)
	}
}
