package fakeprovider

import (
	"encoding/base64"
	"io"
	"slices"
	"strconv"

	"github.com/whconform/whconform/reference/wire"
)

// request is a draft ready to be written.
type request struct {
	method   string
	head     []byte
	body     []byte
	stream   func() io.Reader
	size     int64 // of body or stream
	wire     Wire
	recorded wire.Request
}

// assemble writes the head and records the request.
func assemble(a *address, to Target, d Draft) *request {
	r := &request{method: d.Request.Method, body: d.Request.Body, stream: d.Wire.Body, wire: d.Wire}
	r.size = int64(len(r.body))
	if r.stream != nil {
		r.size = d.Request.Size
	}
	target := d.Request.Target
	if target == "" {
		target = a.target
	}
	lines, hidden := headLines(a, to, d, r.size)
	r.head = append(r.head, r.method+" "+target+" HTTP/1.1\r\n"...)
	for _, h := range lines {
		r.head = append(r.head, h.Name+": "+h.Value+"\r\n"...)
	}
	r.head = append(r.head, "\r\n"...)
	for i, h := range lines {
		if hidden[i] || holdsKey(d, h.Value) {
			lines[i].Value = Redacted
		}
	}
	r.recorded = record(d, lines)
	r.recorded.Target = target
	return r
}

// headLines are all header lines in their order, and which of them are hidden
// from the record.
func headLines(a *address, to Target, d Draft, size int64) (lines []wire.Header, hidden []bool) {
	add := func(hide bool, more ...wire.Header) {
		lines = append(lines, more...)
		hidden = append(hidden, slices.Repeat([]bool{hide}, len(more))...)
	}
	if wire.Count(d.Request.Headers, "Host")+wire.Count(to.Headers, "Host") == 0 {
		add(false, wire.Header{Name: "Host", Value: a.header})
	}
	if a.user != nil {
		password, _ := a.user.Password()
		basic := base64.StdEncoding.EncodeToString([]byte(a.user.Username() + ":" + password))
		add(true, wire.Header{Name: "Authorization", Value: "Basic " + basic})
	}
	add(true, to.Headers...)
	add(false, d.Request.Headers...)
	if d.Wire.Chunked && wire.Count(lines, "Transfer-Encoding") == 0 {
		add(false, wire.Header{Name: "Transfer-Encoding", Value: "chunked"})
	}
	if length, ok := contentLength(d, lines, size); ok {
		add(false, wire.Header{Name: "Content-Length", Value: length})
	}
	if d.Wire.Expect && wire.Count(lines, "Expect") == 0 {
		add(false, wire.Header{Name: "Expect", Value: "100-continue"})
	}
	return lines, hidden
}

// contentLength is the value of the line that frames the body, if there is to
// be one.
func contentLength(d Draft, lines []wire.Header, size int64) (string, bool) {
	if d.Wire.Length != nil {
		return *d.Wire.Length, *d.Wire.Length != ""
	}
	if d.Wire.Chunked || wire.Count(lines, "Content-Length") > 0 {
		return "", false
	}
	// RFC 9110 §8.6: a length of 0 is sent where the method expects content.
	expects := d.Request.Method == "POST" || d.Request.Method == "PUT" || d.Request.Method == "PATCH"
	return strconv.FormatInt(size, 10), size > 0 || expects
}

// holdsKey tells whether one of the draft's keys stands in text.
func holdsKey(d Draft, text string) bool {
	for _, key := range d.Keys {
		if _, found := key.In([]byte(text)); found {
			return true
		}
	}
	return false
}

// record is the request as the exchange keeps it; the start of a streamed body
// is added when it has been sent.
func record(d Draft, lines []wire.Header) wire.Request {
	out := wire.Request{Method: d.Request.Method, Target: d.Request.Target, Headers: lines, Size: int64(len(d.Request.Body))}
	if d.Wire.Body != nil {
		out.Size = d.Request.Size
		return out
	}
	out.Body = append([]byte(nil), d.Request.Body[:min(len(d.Request.Body), wire.BodyLimit)]...)
	return out
}
