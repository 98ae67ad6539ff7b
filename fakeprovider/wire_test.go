package fakeprovider_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/whconform/whconform/fakeprovider"
	"github.com/whconform/whconform/reference/wire"
)

// plain is a small delivery whose bytes on the wire can be read at a glance.
func plain(body string, change func(*fakeprovider.Draft)) fakeprovider.Draft {
	d := fakeprovider.Draft{Request: wire.Request{
		Method:  "POST",
		Headers: []wire.Header{{Name: "x-Second", Value: "2"}, {Name: "X-FIRST", Value: ""}},
		Body:    []byte(body), Size: int64(len(body)),
	}}
	if change != nil {
		change(&d)
	}
	return d
}

func text(s string) *string { return &s }

func TestSendWritesTheBytesThatTheDraftSays(t *testing.T) {
	const head = "POST /hooks?tenant=1 HTTP/1.1\r\nHost: HOST\r\nx-Second: 2\r\nX-FIRST: \r\n"
	cases := []struct {
		name  string
		body  string
		alter func(*fakeprovider.Draft)
		want  string
	}{
		{"plain", "abc", nil, head + "Content-Length: 3\r\n\r\nabc"},
		{"an empty body has a length", "", nil, head + "Content-Length: 0\r\n\r\n"},
		{"GET has none", "", func(d *fakeprovider.Draft) { d.Request.Method = "GET" }, strings.Replace(head, "POST", "GET", 1) + "\r\n"},
		{"another target", "", func(d *fakeprovider.Draft) { d.Request.Target = "*" }, strings.Replace(head, "/hooks?tenant=1", "*", 1) + "Content-Length: 0\r\n\r\n"},
		{"its own host", "", func(d *fakeprovider.Draft) {
			d.Request.Headers = append(d.Request.Headers, wire.Header{Name: "host", Value: "example.com"})
		}, "POST /hooks?tenant=1 HTTP/1.1\r\nx-Second: 2\r\nX-FIRST: \r\nhost: example.com\r\nContent-Length: 0\r\n\r\n"},
		{"its own length", "abc", func(d *fakeprovider.Draft) {
			d.Request.Headers = append(d.Request.Headers, wire.Header{Name: "content-length", Value: "03"})
		}, head + "content-length: 03\r\n\r\nabc"},
		{"a length too short", "abc", func(d *fakeprovider.Draft) { d.Wire.Length = text("2") }, head + "Content-Length: 2\r\n\r\nabc"},
		{"a length of words", "abc", func(d *fakeprovider.Draft) { d.Wire.Length = text("three") }, head + "Content-Length: three\r\n\r\nabc"},
		{"no length", "abc", func(d *fakeprovider.Draft) { d.Wire.Length = text("") }, head + "\r\nabc"},
		{"chunked", "abc", func(d *fakeprovider.Draft) { d.Wire.Chunked = true }, head + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"},
		{"chunked and empty", "", func(d *fakeprovider.Draft) { d.Wire.Chunked = true }, head + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
		{"chunked with a length", "abc", func(d *fakeprovider.Draft) { d.Wire.Chunked, d.Wire.Length = true, text("3") }, head + "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n3\r\nabc\r\n0\r\n\r\n"},
		{"chunked and dripped", "abc", func(d *fakeprovider.Draft) { d.Wire.Chunked, d.Wire.Drip = true, time.Millisecond }, head + "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n1\r\nb\r\n1\r\nc\r\n0\r\n\r\n"},
		{"dripped", "abc", func(d *fakeprovider.Draft) { d.Wire.Drip = time.Millisecond }, head + "Content-Length: 3\r\n\r\nabc"},
		{"paced", "abcdef", func(d *fakeprovider.Draft) {
			d.Wire.Pace = []fakeprovider.Pause{{Offset: 4, Wait: time.Millisecond}, {Offset: 0, Wait: time.Millisecond}}
			d.Wire.Chunked = true
		}, head + "Transfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n2\r\nef\r\n0\r\n\r\n"},
		{"streamed", "", func(d *fakeprovider.Draft) {
			d.Request.Size, d.Wire.Body = 4, func() io.Reader { return strings.NewReader("wxyz") }
		}, head + "Content-Length: 4\r\n\r\nwxyz"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, "standard-webhooks")
			d := plain(c.body, c.alter)
			d.Wire.HalfClose = true // so that the receiver knows the end
			url, got := capture(t, noContent, func([]byte) bool { return false })
			x := f.Send(t.Context(), fakeprovider.Target{URL: url}, d, "")
			host := strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/hooks?tenant=1")
			if want := strings.Replace(c.want, "HOST", host, 1); got(t.Context()) != want {
				t.Errorf("want %q", want)
			}
			if !x.OK() {
				t.Fatalf("got %q: %q", x.Fault, x.FaultDetail)
			}
			if want := max(int64(len(c.body)), d.Request.Size); x.Sent != want || x.Request.Size != want {
				t.Errorf("%d B sent, %d recorded, want %d", x.Sent, x.Request.Size, want)
			}
		})
	}
}

func TestSendRecordsTheHeadersAsTheyWentOut(t *testing.T) {
	f := newFixture(t, "standard-webhooks")
	url, got := capture(t, noContent, func(in []byte) bool { return bytes.HasSuffix(in, f.event) })
	x := f.send(t, url)
	head, _, _ := strings.Cut(got(t.Context()), "\r\n\r\n")
	lines := strings.Split(head, "\r\n")
	if lines[0] != x.Request.Method+" "+x.Request.Target+" HTTP/1.1" || len(lines)-1 != len(x.Request.Headers) {
		t.Fatalf("%q and %+v", lines, x.Request)
	}
	for i, h := range x.Request.Headers {
		if lines[i+1] != h.Name+": "+h.Value {
			t.Errorf("line %d: %q, recorded %q", i, lines[i+1], h)
		}
	}
}

func TestSendHidesWhatBelongsToTheTarget(t *testing.T) {
	f := newFixture(t, "gitlab-token")
	url, got := capture(t, noContent, func(in []byte) bool { return bytes.HasSuffix(in, f.event) })
	to := fakeprovider.Target{
		URL:     strings.Replace(url, "http://", "http://user:hunter2@", 1),
		Headers: []wire.Header{{Name: "X-Gateway-Key", Value: "s3cret-value"}},
	}
	x := f.Send(t.Context(), to, f.draft(t), "")
	sent := got(t.Context())
	for _, want := range []string{"Authorization: Basic dXNlcjpodW50ZXIy", "X-Gateway-Key: s3cret-value", "X-Gitlab-Token: public test secret"} {
		if !strings.Contains(sent, want) {
			t.Errorf("%q was not sent: %q", want, sent)
		}
	}
	for _, secret := range []string{"dXNlcjpodW50ZXIy", "hunter2", "s3cret-value", "public test secret"} {
		if strings.Contains(fmt.Sprintf("%+v", x), secret) {
			t.Errorf("the exchange holds %q: %+v", secret, x)
		}
	}
	if value, ok := wire.Get(x.Request.Headers, "x-gateway-key"); !ok || value != fakeprovider.Redacted {
		t.Errorf("recorded as %q", value)
	}
}

func TestSendWaitsForLeaveToSendTheBody(t *testing.T) {
	t.Run("the body follows a 100", func(t *testing.T) {
		leave := make(chan []byte, 1)
		url := serve(t, func(c *net.TCPConn) {
			readHead(c)
			_, _ = io.WriteString(c, "HTTP/1.1 100 Continue\r\n\r\n")
			body := make([]byte, 3)
			_, _ = io.ReadFull(c, body)
			leave <- body
			_, _ = io.WriteString(c, noContent)
		})
		f := newFixture(t, "standard-webhooks")
		x := f.Send(t.Context(), fakeprovider.Target{URL: url}, plain("abc", func(d *fakeprovider.Draft) { d.Wire.Expect = true }), "")
		if !x.OK() || string(<-leave) != "abc" || x.Sent != 3 {
			t.Errorf("got %q: %q, %d B sent", x.Fault, x.FaultDetail, x.Sent)
		}
		if value, _ := wire.Get(x.Request.Headers, "Expect"); value != "100-continue" {
			t.Errorf("Expect: %q", value)
		}
		if x.Took >= fakeprovider.ExpectWait {
			t.Errorf("took %v", x.Took)
		}
	})
	t.Run("a final answer keeps the body back", func(t *testing.T) {
		f := newFixture(t, "standard-webhooks")
		x := f.Send(t.Context(), fakeprovider.Target{URL: serve(t, say("HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n"))}, plain("abc", func(d *fakeprovider.Draft) { d.Wire.Expect = true }), "")
		if x.Response == nil || x.Response.Status != 417 || x.Sent != 0 {
			t.Errorf("got %+v, %d B sent", x.Response, x.Sent)
		}
	})
	t.Run("silence does not keep it back for ever", func(t *testing.T) {
		f := newFixture(t, "standard-webhooks")
		url, got := capture(t, noContent, func(in []byte) bool { return bytes.HasSuffix(in, []byte("\r\n\r\nabc")) })
		x := f.Send(t.Context(), fakeprovider.Target{URL: url}, plain("abc", func(d *fakeprovider.Draft) { d.Wire.Expect = true }), "")
		if !x.OK() || x.Took < fakeprovider.ExpectWait || !strings.HasSuffix(got(t.Context()), "abc") {
			t.Errorf("got %q: %q, took %v", x.Fault, x.FaultDetail, x.Took)
		}
	})
}

func TestSendStallsUntilTheReceiverEndsIt(t *testing.T) {
	for _, n := range []int64{0, 2} {
		url := serve(t, func(c *net.TCPConn) {
			readHead(c)
			_, _ = io.CopyN(io.Discard, c, n)
			// One byte more would be too many.
			_ = c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
			if k, _ := c.Read(make([]byte, 1)); k != 0 {
				_, _ = io.WriteString(c, "HTTP/1.1 500 More Came\r\n\r\n")
			}
			_, _ = io.WriteString(c, "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")
		})
		x := newFixture(t, "standard-webhooks").send(t, url, fakeprovider.StallAfter(n))
		if x.Response == nil || x.Response.Status != 408 || x.Sent != n {
			t.Errorf("stall after %d: %+v, %q, %d B sent", n, x.Response, x.FaultDetail, x.Sent)
		}
	}
}

func TestSendTakesItsTimeBetweenDrips(t *testing.T) {
	f := newFixture(t, "standard-webhooks")
	url, got := capture(t, noContent, func(in []byte) bool { return bytes.HasSuffix(in, []byte("\r\n\r\nabcd")) })
	x := f.Send(t.Context(), fakeprovider.Target{URL: url}, plain("abcd", func(d *fakeprovider.Draft) { d.Wire.Drip = 20 * time.Millisecond }), "")
	got(t.Context())
	if x.Took < 60*time.Millisecond {
		t.Errorf("four bytes took %v", x.Took)
	}
}
