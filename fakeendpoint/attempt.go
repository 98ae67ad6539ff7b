package fakeendpoint

import (
	"encoding/json"
	"time"

	"github.com/whconform/whconform/reference/wire"
)

// Attempt is one request with what was made of it: the exchange as the
// endpoint saw it, and the facts that only this side knows.
//
// In the exchange, Began is the arrival of the request's first byte and Ended
// the end of the answer or of the attempt; Sent counts the bytes of the body
// that had arrived when the answer began. Response is what was sent, with the
// beginning of the body where a script gave it one. A fault that the script
// made, or the peer, stands in Fault as the sender must have seen it.
type Attempt struct {
	wire.Exchange

	Path   string // the path's name
	Number int    // of the attempts of the path, from 1
	Step   string // of the script, as it stands there

	// ID is the message that the request claims to be, whether it verifies or
	// not; empty where it claims none. OfMessage counts the message's attempts on
	// this path, from 1, and Since is the time from the end of the one before to
	// the beginning of this one: the delay that a retry schedule speaks of.
	ID        string
	OfMessage int
	Since     time.Duration

	Remote     string // the peer's address
	Connection int64  // counts the server's connections
	Nth        int    // counts the requests of that connection, from 1

	Head     string        // the request's head as it came, with its line ends
	Trailers []wire.Header // of a chunked body

	BodyEnd  time.Time // the request had arrived; zero: it never had, or was not read
	Answered time.Time // the first byte of the answer was written
	Closed   time.Time // of the connection, if this was its last request; zero: it is open, or served another

	BodyRead int64  // bytes of the body that were read
	Digest   string // SHA-256 of a body that is longer than what was kept of it, in hex
	Uncaught bool   // the body was not kept, since Limits.InFlight was reached

	// Written counts the bytes of the answer that the kernel took: the peer may
	// have read less, by what buffers hold.
	Written int64
	// LastWrite is when it last took some: a peer that reads on after the attempt
	// was settled is seen by it.
	LastWrite time.Time

	// Peer is how the peer ended the attempt before the script did: "closed",
	// "reset", "stalled" (it took no byte for Limits.Stall), or empty.
	Peer string

	Verification Verification

	// Remarks are what is odd about the request or its handling, a sentence each;
	// handlers add theirs.
	Remarks []string
}

// Verification is what the signature check found.
type Verification struct {
	Checked bool // there was a key and a request to check

	// By are the labels of the keys that sign the request, each checked alone, in
	// the path's order: during a rotation both do.
	By []string

	// Rule and Detail are those of the [signature.Refusal] where no key does. They
	// hold nothing of a key.
	Rule, Detail string

	// Leaks are the labels of the keys whose secret stands in the request.
	Leaks []string
}

// OK tells whether the request was signed by one of the keys.
func (v Verification) OK() bool { return len(v.By) > 0 }

// attemptJSON is the JSON form of an attempt: one line of
// "whconform endpoint --format json", one element of the HTTP API's lists.
type attemptJSON struct {
	Label        string            `json:"label"`
	Path         string            `json:"path"`
	Number       int               `json:"number"`
	Step         string            `json:"step"`
	ID           string            `json:"id,omitempty"`
	OfMessage    int               `json:"ofMessage,omitempty"`
	SinceMillis  int64             `json:"sinceMillis,omitempty"`
	Remote       string            `json:"remote"`
	Connection   int64             `json:"connection"`
	Nth          int               `json:"nth"`
	Request      wire.Request      `json:"request"`
	Trailers     []wire.Header     `json:"trailers,omitempty"`
	Response     *wire.Response    `json:"response,omitempty"`
	Fault        string            `json:"fault,omitempty"`
	FaultDetail  string            `json:"faultDetail,omitempty"`
	Began        time.Time         `json:"began"`
	BodyEnd      *time.Time        `json:"bodyEnd,omitempty"`
	Answered     *time.Time        `json:"answered,omitempty"`
	Ended        time.Time         `json:"ended"`
	Closed       *time.Time        `json:"closed,omitempty"`
	TookMicros   int64             `json:"tookMicros"`
	Sent         int64             `json:"sent"`
	BodyRead     int64             `json:"bodyRead"`
	Digest       string            `json:"digest,omitempty"`
	Uncaught     bool              `json:"uncaught,omitempty"`
	Written      int64             `json:"written"`
	LastWrite    *time.Time        `json:"lastWrite,omitempty"`
	Peer         string            `json:"peer,omitempty"`
	Verification *verificationJSON `json:"verification,omitempty"`
	Remarks      []string          `json:"remarks,omitempty"`
}

type verificationJSON struct {
	OK     bool     `json:"ok"`
	By     []string `json:"by,omitempty"`
	Rule   string   `json:"rule,omitempty"`
	Detail string   `json:"detail,omitempty"`
	Leaks  []string `json:"leaks,omitempty"`
}

// MarshalJSON writes the attempt with times that it does not have left out. The
// head's bytes are left out too: the request's headers say the same.
func (a Attempt) MarshalJSON() ([]byte, error) {
	set := func(t time.Time) *time.Time {
		if t.IsZero() {
			return nil
		}
		return &t
	}
	j := attemptJSON{
		Label: a.Label, Path: a.Path, Number: a.Number, Step: a.Step,
		ID: a.ID, OfMessage: a.OfMessage, SinceMillis: a.Since.Milliseconds(),
		Remote: a.Remote, Connection: a.Connection, Nth: a.Nth,
		Request: a.Request, Trailers: a.Trailers, Response: a.Response, Fault: a.Fault, FaultDetail: a.FaultDetail,
		Began: a.Began, BodyEnd: set(a.BodyEnd), Answered: set(a.Answered), Ended: a.Ended, Closed: set(a.Closed),
		TookMicros: a.Took.Microseconds(), Sent: a.Sent, BodyRead: a.BodyRead, Digest: a.Digest, Uncaught: a.Uncaught,
		Written: a.Written, LastWrite: set(a.LastWrite), Peer: a.Peer, Remarks: a.Remarks,
	}
	if v := a.Verification; v.Checked || len(v.Leaks) > 0 {
		j.Verification = &verificationJSON{v.OK(), v.By, v.Rule, v.Detail, v.Leaks}
	}
	return json.Marshal(j)
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (a *Attempt) UnmarshalJSON(b []byte) error {
	var j attemptJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	get := func(t *time.Time) time.Time {
		if t == nil {
			return time.Time{}
		}
		return *t
	}
	*a = Attempt{
		Exchange: wire.Exchange{
			Label: j.Label, Request: j.Request, Response: j.Response, Fault: j.Fault, FaultDetail: j.FaultDetail,
			Began: j.Began, Ended: j.Ended, Took: time.Duration(j.TookMicros) * time.Microsecond, Sent: j.Sent,
		},
		Path: j.Path, Number: j.Number, Step: j.Step, ID: j.ID, OfMessage: j.OfMessage, Since: time.Duration(j.SinceMillis) * time.Millisecond,
		Remote: j.Remote, Connection: j.Connection, Nth: j.Nth, Trailers: j.Trailers,
		BodyEnd: get(j.BodyEnd), Answered: get(j.Answered), Closed: get(j.Closed),
		BodyRead: j.BodyRead, Digest: j.Digest, Uncaught: j.Uncaught, Written: j.Written, LastWrite: get(j.LastWrite), Peer: j.Peer, Remarks: j.Remarks,
	}
	if v := j.Verification; v != nil {
		a.Verification = Verification{Checked: v.OK || v.Rule != "", By: v.By, Rule: v.Rule, Detail: v.Detail, Leaks: v.Leaks}
	}
	return nil
}
