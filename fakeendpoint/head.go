package fakeendpoint

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/whconform/whconform/reference/wire"
)

// head is what of a request's head decides how it is read and answered.
type head struct {
	minor   int   // of HTTP/1.x
	length  int64 // Content-Length; -1: none
	chunked bool
	close   bool // the peer wants no further request on the connection
	expect  bool // 100-continue
}

// badRequest is a request that is not taken: its answer's status and why.
//
// The rules are stricter than RFC 9112 lets a server be. Where two readings of
// a request are possible, a proxy in front may take the other one: such a
// request is refused, and a sender that sends it learns so.
type badRequest struct {
	status int
	reason string
}

func (b *badRequest) Error() string { return b.reason }

func bad(status int, format string, args ...any) *badRequest {
	return &badRequest{status, fmt.Sprintf(format, args...)}
}

// scanner finds the end of a head in bytes that come bit by bit, and refuses
// early what will never be one.
type scanner struct {
	at    int // scanned so far
	line  int // where the current line begins
	lines int // that have ended, the request line among them
}

// scan looks at what is new in b, which begins with the head. end is the head's
// length, 0 while its end has not come.
func (s *scanner) scan(b []byte, l *Limits) (end int, err *badRequest) {
	for {
		i := bytes.IndexByte(b[s.at:], '\n')
		if i < 0 {
			s.at = len(b)
			if len(b) >= l.Head {
				return 0, bad(431, "the head is longer than %d bytes", l.Head)
			}
			return 0, nil
		}
		i += s.at
		s.at = i + 1
		if i == s.line || b[i-1] != '\r' {
			return 0, bad(400, "line %d of the head ends with a line feed alone", s.lines+1)
		}
		empty := i == s.line+1
		s.line = s.at
		switch {
		case empty && s.lines > 0:
			if s.at > l.Head {
				return 0, bad(431, "the head is longer than %d bytes", l.Head)
			}
			return s.at, nil
		case empty:
			return 0, bad(400, "the request line is empty")
		}
		if s.lines++; s.lines > l.HeaderLines {
			return 0, bad(431, "the head has more than %d lines", l.HeaderLines)
		}
	}
}

// parseHead reads a whole head of so many lines into r and h.
func parseHead(text string, lines int, r *wire.Request, h *head) *badRequest {
	*h = head{length: -1}
	line, rest, _ := strings.Cut(text, "\r\n")
	if err := parseRequestLine(line, r, h); err != nil {
		return err
	}
	r.Headers = make([]wire.Header, 0, lines-1)
	var f framing
	for rest != "\r\n" {
		line, rest, _ = strings.Cut(rest, "\r\n")
		header, err := parseHeaderLine(line)
		if err != nil {
			return err
		}
		r.Headers = append(r.Headers, header)
		if err := f.see(&header, h); err != nil {
			return err
		}
	}
	return f.decide(h)
}

// methodMax bounds methods; the longest registered one has 17 letters.
const methodMax = 32

func parseRequestLine(line string, r *wire.Request, h *head) *badRequest {
	method, rest, ok := strings.Cut(line, " ")
	target, version, ok2 := strings.Cut(rest, " ")
	switch {
	case !ok || !ok2:
		return bad(400, "the request line is not METHOD TARGET VERSION: %s", quoteCut(line))
	case len(method) > methodMax || !isToken(method):
		return bad(400, "the method is no token: %s", quoteCut(method))
	}
	switch version {
	case "HTTP/1.1":
		h.minor = 1
	case "HTTP/1.0":
		h.close = true
	default:
		if strings.HasPrefix(version, "HTTP/") && !strings.Contains(version, " ") {
			return bad(505, "the version is %s; HTTP/1.1 and HTTP/1.0 are spoken here", quoteCut(version))
		}
		return bad(400, "the request line does not end with a version: %s", quoteCut(line))
	}
	if target == "" {
		return bad(400, "the request line has no target")
	}
	for i := range len(target) {
		if target[i] <= ' ' || target[i] == 0x7f {
			return bad(400, "the target holds a control character: %s", quoteCut(target))
		}
	}
	r.Method, r.Target = method, target
	return nil
}

func parseHeaderLine(line string) (wire.Header, *badRequest) {
	colon := strings.IndexByte(line, ':')
	switch {
	case line[0] == ' ' || line[0] == '\t':
		return wire.Header{}, bad(400, "a header line is folded: %s", quoteCut(line))
	case colon < 0:
		return wire.Header{}, bad(400, "a header line has no colon: %s", quoteCut(line))
	case !isToken(line[:colon]):
		return wire.Header{}, bad(400, "a header's name is no token: %s", quoteCut(line[:colon]))
	}
	value := strings.Trim(line[colon+1:], " \t")
	if !headerSafe(value) {
		return wire.Header{}, bad(400, "the value of the header %s holds a control character", line[:colon])
	}
	return wire.Header{Name: line[:colon], Value: value}, nil
}

// framing collects what the headers say of the body's length.
type framing struct {
	lengths, encodings, hosts int
}

func (f *framing) see(header *wire.Header, h *head) *badRequest {
	switch len(header.Name) { // rules out nearly all other headers
	case len("Host"):
		if strings.EqualFold(header.Name, "Host") {
			f.hosts++
		}
	case len("Expect"):
		if strings.EqualFold(header.Name, "Expect") {
			if !strings.EqualFold(header.Value, "100-continue") {
				return bad(417, "Expect asks for %s", quoteCut(header.Value))
			}
			h.expect = h.minor == 1
		}
	case len("Connection"):
		if strings.EqualFold(header.Name, "Connection") {
			h.seeConnection(header.Value)
		}
	case len("Content-Length"):
		if strings.EqualFold(header.Name, "Content-Length") {
			n, err := parseLength(header.Value)
			if err != nil {
				return err
			}
			f.lengths++
			h.length = n
		}
	case len("Transfer-Encoding"):
		if strings.EqualFold(header.Name, "Transfer-Encoding") {
			if !strings.EqualFold(header.Value, "chunked") {
				return bad(501, "the transfer encoding is %s; chunked alone is known", quoteCut(header.Value))
			}
			f.encodings++
			h.chunked = true
		}
	}
	return nil
}

// seeConnection looks for close. What HTTP/1.0 says of keeping a connection is
// left aside: one of its requests is answered on one connection.
func (h *head) seeConnection(value string) {
	for option := range strings.SplitSeq(value, ",") {
		if strings.EqualFold(strings.Trim(option, " \t"), "close") {
			h.close = true
		}
	}
}

// parseLength reads a Content-Length: digits, nothing else. A sign, a list of
// equal numbers, blanks within: each is read in different ways by different
// programs.
func parseLength(value string) (int64, *badRequest) {
	if !isDigits(value) || len(value) > 1 && value[0] == '0' {
		return 0, bad(400, "the Content-Length is no plain number: %s", quoteCut(value))
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n > math.MaxInt64/2 {
		return 0, bad(413, "the Content-Length is too large: %s", quoteCut(value))
	}
	return n, nil
}

func (f *framing) decide(h *head) *badRequest {
	switch {
	case f.lengths > 1:
		return bad(400, "there are %d Content-Length lines", f.lengths)
	case f.encodings > 1:
		return bad(400, "there are %d Transfer-Encoding lines", f.encodings)
	case f.lengths > 0 && f.encodings > 0:
		return bad(400, "there are both a Content-Length and a Transfer-Encoding")
	case f.encodings > 0 && h.minor == 0:
		return bad(400, "a request of HTTP/1.0 has a Transfer-Encoding")
	case f.hosts > 1:
		return bad(400, "there are %d Host lines", f.hosts)
	case f.hosts == 0 && h.minor == 1:
		return bad(400, "there is no Host")
	}
	return nil
}

// quoteCut quotes the beginning of what a peer sent.
func quoteCut(s string) string {
	const most = 60
	if len(s) > most {
		return strconv.QuoteToASCII(s[:most]) + "…"
	}
	return strconv.QuoteToASCII(s)
}
