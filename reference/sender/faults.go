package sender

import (
	"time"

	"github.com/whconform/whconform/reference/signature"
)

// AttemptInfo is what an attempt is about.
type AttemptInfo struct {
	MessageID, EndpointID, URL, Type string

	Number int // of the attempts that the schedule makes, counted from 1; for one by hand, that of the last one made
	Manual bool
	Began  time.Time
}

// Outcome is what an attempt means for its message and its endpoint.
type Outcome struct {
	Delivered   bool
	Gone        bool   // the endpoint wants no more: it is disabled
	Credentials bool   // the endpoint does not accept who is calling
	Unanswered  bool   // no answer in time: the endpoint gets fewer slots
	RetryAfter  string // what the endpoint wishes
	Error       string // what went wrong, for people
}

// Faults replaces single steps of the sender by wrong ones. It is for the
// self-test, which shows that each fault is found, and for nothing else. The zero
// value leaves each step as it is; a function gets what its step would use and
// returns what it is to use instead.
type Faults struct {
	Open    func(s *Sender) error                                                                            // after opening, before anything is sent
	Bounds  func(timeout, connect time.Duration) (newTimeout, newConnect time.Duration)                      // of an attempt
	URL     func(url string, refusal error) error                                                            // whether an endpoint may have this URL
	Publish func(e Event, endpoint Endpoint, subscribed bool) bool                                           // whether an endpoint gets an event
	Secret  func(endpoint, secret string) string                                                             // a new one of an endpoint
	Secrets func(a AttemptInfo, newestFirst []string) []string                                               // by which an attempt is signed
	ID      func(a AttemptInfo, id string) string                                                            // the message id that is sent
	Body    func(a AttemptInfo, stored []byte) []byte                                                        // the bytes that are sent and signed
	Signing func(a AttemptInfo, in signature.Input, keys []signature.Key) (signature.Input, []signature.Key) // what is signed, and with which keys
	Request func(a AttemptInfo, r Request) Request                                                           // as it goes to the transport, headers and signature included
	Outcome func(a AttemptInfo, r Result, o Outcome) Outcome                                                 // what the answer means
	Delay   func(a AttemptInfo, o Outcome, usual time.Duration) time.Duration                                // until the next attempt
	Update  func(a AttemptInfo, o Outcome, u Update) Update                                                  // what becomes of message and endpoint
	Expiry  func(now, usual time.Time) time.Time                                                             // until when a secret that was replaced still signs
	Resend  func(m Message, now, due, manual time.Time) (newDue, newManual time.Time)                        // the schedule's next attempt, zero for none, and the one by hand
	Log     func(line Attempt) (Attempt, bool)                                                               // a line of the delivery log; false: none
	Notify  func(n Notification) (Notification, bool)                                                        // what an owner is told; false: nothing

	IgnoreStatus bool          // attempts go on for endpoints that are not enabled
	Lease        time.Duration // of a claim, however short; 0: Policy.Lease
}

// Update is what becomes of a message and its endpoint after an attempt.
type Update struct {
	Status  string    // of the message
	Count   bool      // the attempt uses up one of the schedule's
	Next    time.Time // the schedule's next attempt; zero: none
	Disable string    // why the endpoint is disabled; "": it is not
}
