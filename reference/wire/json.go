package wire

import (
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"
)

// The JSON form of an exchange is what reports hold. Header lines are pairs in
// wire order; a body is text where it is valid UTF-8 and base64 where it is
// not, so that nothing is lost and most bodies can be read.

// MarshalJSON writes a header line as the pair [name, value].
func (h Header) MarshalJSON() ([]byte, error) { return json.Marshal([2]string{h.Name, h.Value}) }

// UnmarshalJSON reads the pair [name, value].
func (h *Header) UnmarshalJSON(b []byte) error {
	var pair []string
	if err := json.Unmarshal(b, &pair); err != nil {
		return fmt.Errorf("reading a header line: %w", err)
	}
	if len(pair) != 2 {
		return fmt.Errorf("reading a header line: %d elements, want [name, value]", len(pair))
	}
	h.Name, h.Value = pair[0], pair[1]
	return nil
}

type requestJSON struct {
	Method  string   `json:"method"`
	Target  string   `json:"target"`
	Headers []Header `json:"headers"`
	Body    string   `json:"body,omitempty"`
	Base64  []byte   `json:"bodyBase64,omitempty"`
	Size    int64    `json:"size"`
}

type responseJSON struct {
	Status  int      `json:"status"`
	Reason  string   `json:"reason,omitempty"`
	Headers []Header `json:"headers"`
	Body    string   `json:"body,omitempty"`
	Base64  []byte   `json:"bodyBase64,omitempty"`
	Size    int64    `json:"size"`
}

type exchangeJSON struct {
	Label       string    `json:"label"`
	Request     Request   `json:"request"`
	Response    *Response `json:"response,omitempty"`
	Fault       string    `json:"fault,omitempty"`
	FaultDetail string    `json:"faultDetail,omitempty"`
	Began       time.Time `json:"began"`
	Ended       time.Time `json:"ended"`
	TookMicros  int64     `json:"tookMicros"`
	Sent        int64     `json:"sent"`
}

// MarshalJSON writes the request with its body as text or base64.
func (r Request) MarshalJSON() ([]byte, error) {
	text, raw := splitBody(r.Body)
	return json.Marshal(requestJSON{text2utf8(r.Method), text2utf8(r.Target), utf8Headers(r.Headers), text, raw, r.Size})
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (r *Request) UnmarshalJSON(b []byte) error {
	var j requestJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return fmt.Errorf("reading a request: %w", err)
	}
	*r = Request{j.Method, j.Target, j.Headers, joinBody(j.Body, j.Base64), j.Size}
	return nil
}

// MarshalJSON writes the response with its body as text or base64.
func (r Response) MarshalJSON() ([]byte, error) {
	text, raw := splitBody(r.Body)
	return json.Marshal(responseJSON{r.Status, text2utf8(r.Reason), utf8Headers(r.Headers), text, raw, r.Size})
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (r *Response) UnmarshalJSON(b []byte) error {
	var j responseJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return fmt.Errorf("reading a response: %w", err)
	}
	*r = Response{j.Status, j.Headers, joinBody(j.Body, j.Base64), j.Size, j.Reason}
	return nil
}

// MarshalJSON writes durations in whole microseconds.
func (x Exchange) MarshalJSON() ([]byte, error) {
	return json.Marshal(exchangeJSON{x.Label, x.Request, x.Response, x.Fault, x.FaultDetail, x.Began, x.Ended, x.Took.Microseconds(), x.Sent})
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (x *Exchange) UnmarshalJSON(b []byte) error {
	var j exchangeJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return fmt.Errorf("reading an exchange: %w", err)
	}
	*x = Exchange{j.Label, j.Request, j.Response, j.Fault, j.FaultDetail, j.Began, j.Ended, time.Duration(j.TookMicros) * time.Microsecond, j.Sent}
	return nil
}

func splitBody(b []byte) (string, []byte) {
	if utf8.Valid(b) {
		return string(b), nil
	}
	return "", b
}

func joinBody(text string, raw []byte) []byte {
	if len(raw) > 0 {
		return raw
	}
	if text == "" {
		return nil
	}
	return []byte(text)
}

// Header values may hold any byte; JSON holds UTF-8 only. A byte that is not
// UTF-8 is kept as the code point of the same number (ISO 8859-1), as HTTP
// reads it, so that the value stays readable and does not collapse to U+FFFD.
func text2utf8(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	runes := make([]rune, len(s))
	for i := range len(s) {
		runes[i] = rune(s[i])
	}
	return string(runes)
}

func utf8Headers(in []Header) []Header {
	out := make([]Header, len(in))
	for i, h := range in {
		out[i] = Header{text2utf8(h.Name), text2utf8(h.Value)}
	}
	return out
}
