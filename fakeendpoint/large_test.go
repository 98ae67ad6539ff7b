package fakeendpoint_test

import (
	"compress/gzip"
	"hash/crc32"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/whconform/whconform/reference/wire"
)

// These tests watch the large answers and the faults of the language from a raw
// socket.

func TestHugeBodiesAreAsLongAsTheySay(t *testing.T) {
	const size = 3<<20 + 17
	r := newRig(t)
	p := r.path("huge", "huge(3145745),huge(3145745,chunked,status=500)")
	conn := dial(t, p)
	for n, status := range []int{200, 500} {
		conn.send(post(p, "{}"))
		answer, body := conn.answer()
		if answer.StatusCode != status || len(body) != size || (answer.ContentLength == -1) != (n == 1) {
			t.Errorf("answer %d: %d, %d bytes, length %d", n, answer.StatusCode, len(body), answer.ContentLength)
		}
	}
	for _, a := range attempts(t, p, 2) {
		if a.Response.Size != size || a.Written < size {
			t.Errorf("%d bytes of the body are recorded, %d in all", a.Response.Size, a.Written)
		}
	}
}

func TestAGzipBombExpands(t *testing.T) {
	const size = 5<<20 + 3
	r := newRig(t)
	p := r.path("bomb", "gzip-bomb(5242883),gzip-bomb(5242883,chunked)")
	conn := dial(t, p)
	for range 2 {
		conn.send(post(p, "{}"))
		answer, err := http.ReadResponse(conn.in, nil)
		if err != nil {
			t.Fatal(err)
		}
		unpacked, err := gzip.NewReader(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		sum := crc32.NewIEEE()
		n, err := io.Copy(sum, unpacked) // which checks length and sum itself
		if err != nil || n != size || answer.Header.Get("Content-Encoding") != "gzip" {
			t.Errorf("%d bytes, %v", n, err)
		}
		_, _ = io.Copy(io.Discard, answer.Body)
	}
	if a := attempts(t, p, 2)[0]; a.Response.Size > size/100 {
		t.Errorf("it sent %d bytes", a.Response.Size)
	}
}

func TestAnEndlessBodyEndsWhenThePeerLeaves(t *testing.T) {
	r := newRig(t)
	p := r.path("endless", "endless(status=500)")
	conn := dial(t, p)
	conn.send(post(p, "{}"))
	if head := conn.head(); !strings.HasPrefix(head, "HTTP/1.1 500 ") || !strings.Contains(head, "Transfer-Encoding: chunked") {
		t.Errorf("the head is %q", head)
	}
	n, err := io.CopyN(io.Discard, conn.in, 20<<20)
	if err != nil {
		t.Fatalf("after %d bytes: %v", n, err)
	}
	r.held(1) // on purpose: whoever reads on will not stop by itself
	_ = conn.Close()
	a := attempts(t, p, 1)[0]
	r.held(0)
	if a.Peer == "" || a.Written < 20<<20 || a.Response.Status != 500 || a.Response.Size < 19<<20 {
		t.Errorf("the record is %+v, %+v", a, a.Response)
	}
}

func TestAPeerThatStopsReadingIsHeldAndCounted(t *testing.T) {
	r := newRig(t)
	p := r.path("huge", "huge(1GiB)")
	conn := dial(t, p)
	conn.send(post(p, "{}"))
	conn.head()
	r.held(1) // it reads no further, so it waits for something else
	if _, err := io.CopyN(io.Discard, conn.in, 4<<20); err != nil {
		t.Fatal(err)
	}
	r.held(1)
	_ = conn.Close()
	a := attempts(t, p, 1)[0]
	r.held(0)
	if a.Peer == "" || a.Written < 4<<20 || a.Written > 24<<20 || a.LastWrite.IsZero() {
		t.Errorf("the record is %+v", a)
	}
}

func TestHeadersAreAsLongAsAsked(t *testing.T) {
	r := newRig(t)
	p := r.path("headers", "headers(1MiB),headers(1MiB,one-line,status=500)")
	conn := dial(t, p)
	for n, lines := range []int{1040, 4} {
		conn.send(post(p, "{}"))
		head := conn.head()
		if got := strings.Count(head, "\r\n"); len(head) < 1<<20 || len(head) > 1<<20+2000 || got < lines-30 || got > lines+30 {
			t.Errorf("answer %d: a head of %d bytes in %d lines", n, len(head), got)
		}
	}
	if a := attempts(t, p, 2)[1]; a.Response.Status != 500 || a.Written < 1<<20 || len(a.Response.Headers) != 2 {
		t.Errorf("the record is %+v", a)
	}
}

func TestFaultsAreWhatTheyAreCalled(t *testing.T) {
	r := newRig(t)
	for _, c := range []struct{ script, got, how, fault string }{
		{"reset", "", "reset", wire.FaultReset},
		{"close", "", "closed", wire.FaultClosed},
		{"103,reset", "HTTP/1.1 103 Early Hints\r\n\r\n", "reset", wire.FaultReset},
		{"garbage", "220 this is not HTTP\r\n\x00\x01\x02\xff\xfe\xfd\r\n\r\n", "closed", wire.FaultNotHTTP},
		{"slow(5s,reset)", "", "reset", wire.FaultReset},
		{"truncate", "512 bytes of 1024", "closed", wire.FaultClosed},
		{"truncate(100,chunked)", "50 bytes of a chunk of 64", "closed", wire.FaultClosed},
	} {
		t.Run(c.script, func(t *testing.T) {
			p := r.path("fault", c.script)
			conn := dial(t, p)
			conn.send(post(p, "{}"))
			if strings.HasPrefix(c.script, "slow") {
				r.held(1)
				r.clock.Add(5 * time.Second)
			}
			got, how := conn.end()
			if head, body, ok := strings.Cut(got, "\r\n\r\n"); ok && strings.HasPrefix(c.script, "truncate") {
				switch {
				case strings.Contains(head, "Content-Length: 1024") && len(body) == 512:
					got = "512 bytes of 1024"
				case strings.Contains(head, "chunked") && strings.HasPrefix(body, "64\r\n") && len(body) == 54:
					got = "50 bytes of a chunk of 64"
				}
			}
			if got != c.got && how != "reset" || how != c.how {
				t.Errorf("it sent %q and the connection was %s", got, how)
			}
			a := attempts(t, p, 1)[0]
			if a.Fault != c.fault || a.Response != nil || a.FaultDetail == "" {
				t.Errorf("the record is %+v", a)
			}
		})
	}
}
