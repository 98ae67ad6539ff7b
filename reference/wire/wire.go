// Package wire holds what the fakes record: one HTTP exchange as its bytes went
// over the wire, header lines in their order and case.
//
// It stands on the lowest floor: everything else imports it, it imports only
// the standard library. Start with [Exchange].
package wire

import (
	"strings"
	"time"
)

// BodyLimit is how many bytes of a body an exchange keeps, 64 KiB: more than
// the largest body that a check looks into (20 KiB events), and small enough
// that a run's few hundred exchanges stay within some tens of megabytes.
// Size always counts the whole body.
const BodyLimit = 64 << 10

// Header is one header line. Name keeps the case in which it was sent.
type Header struct{ Name, Value string }

// Request is one HTTP request as sent or received.
type Request struct {
	Method  string
	Target  string   // as in the request line, e.g. "/hooks?tenant=1"
	Headers []Header // in wire order
	Body    []byte   // the first BodyLimit bytes, or all of it before sending
	Size    int64    // of the whole body, in bytes
}

// Response is one HTTP response. Interim (1xx) answers are not kept.
type Response struct {
	Status  int
	Headers []Header
	Body    []byte // the first BodyLimit bytes
	Size    int64  // bytes of the body that were read
	Reason  string // the phrase behind the status, as it was sent
}

// The faults an exchange can end with instead of a response. They are evidence,
// never Go errors.
const (
	FaultRefused = "refused"  // nobody listens
	FaultReset   = "reset"    // the peer reset the connection
	FaultClosed  = "closed"   // the peer closed it without a whole answer
	FaultTimeout = "timeout"  // no answer within the bound
	FaultTLS     = "tls"      // the handshake failed or the certificate does not verify
	FaultDNS     = "dns"      // the host name does not resolve
	FaultNotHTTP = "not-http" // what came back is not an HTTP/1.x response
)

// Exchange is a request with what came back: a Response, or a Fault.
type Exchange struct {
	Label       string // unique in its transcript: "tampered/append-byte"
	Request     Request
	Response    *Response     // nil when Fault is set
	Fault       string        // one of the Fault constants, or ""
	FaultDetail string        // what was being done and what came, for people
	Began       time.Time     // the run's clock
	Ended       time.Time     // the run's clock
	Took        time.Duration // real time from the first byte sent to the end of the response head, or to the fault
	Sent        int64         // bytes of the request body handed to the connection before the answer began
}

// Get returns the first value of the header called name, whatever its case.
func Get(headers []Header, name string) (string, bool) {
	for i := range headers {
		if strings.EqualFold(headers[i].Name, name) {
			return headers[i].Value, true
		}
	}
	return "", false
}

// Count tells how many header lines are called name, whatever their case.
func Count(headers []Header, name string) int {
	n := 0
	for i := range headers {
		if strings.EqualFold(headers[i].Name, name) {
			n++
		}
	}
	return n
}

// Set replaces the first header called name, keeping its place and the case of
// its name, or appends one. It returns the changed slice; the argument's
// elements are not modified.
func Set(headers []Header, name, value string) []Header {
	out := append([]Header(nil), headers...)
	for i := range out {
		if strings.EqualFold(out[i].Name, name) {
			out[i].Value = value
			return out
		}
	}
	return append(out, Header{name, value})
}

// Drop returns headers without any line called name.
func Drop(headers []Header, name string) []Header {
	out := make([]Header, 0, len(headers))
	for _, h := range headers {
		if !strings.EqualFold(h.Name, name) {
			out = append(out, h)
		}
	}
	return out
}

// OK tells whether the exchange was answered with a 2xx.
func (x *Exchange) OK() bool {
	return x.Response != nil && x.Response.Status >= 200 && x.Response.Status < 300
}
