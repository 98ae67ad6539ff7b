package adapter

import (
	"errors"
	"fmt"
	"strings"
)

// Kind is what a peer did wrong.
type Kind string

// The kinds. What ends the connection stands first: behind it nobody knows which
// answer belongs to what.
const (
	Banner    Kind = "banner"      // it prints something before its first message
	Garbage   Kind = "garbage"     // a line is not JSON, or not JSON-RPC
	WrongID   Kind = "wrong-id"    // an answer to what was never asked
	DoubledID Kind = "doubled-id"  // a second answer to one question
	LongLine  Kind = "long-line"   // a line longer than MaxAnswer, perhaps without an end
	Died      Kind = "early-death" // its output ended before it was asked to end
	CutLine   Kind = "cut-line"    // its output ended inside a line
	Closed    Kind = "closed"      // this side closed the connection
	Unread    Kind = "never-reads" // a request could not be written in time
	Silent    Kind = "silent"      // a request was not answered in time
	BadResult Kind = "bad-result"  // an answer, but not what the protocol says
	BadStatus Kind = "bad-status"  // HTTP: not 200
	NoContact Kind = "unreachable" // HTTP: no connection, or one that broke
	Undone    Kind = "undeclared"  // a method that initialize did not declare
	Version   Kind = "bad-version" // initialize named another version of the protocol
	TooLarge  Kind = "big-request" // this side: the request is longer than MaxRequest
	GaveUp    Kind = "gave-up"     // too many calls were never answered
)

// Fault is what a peer did wrong: a breach of the protocol, or silence. It says
// nothing about the requirements, only that they cannot be judged so.
type Fault struct {
	Kind   Kind
	Peer   string // who: "adapter", or the name it was given
	Method string // of the call that the fault ended; "" if none was open
	Line   int    // of the peer's output, from 1; 0 where no line is at fault
	Quote  string // the line at fault, quoted, cut and without secrets; "" for none
	Detail string // what is wrong with it
	Advice string // what to do
	Last   string // how the peer's process ended, and its last words; "" if that is not known
	Err    error  // the cause below, may be nil
}

func (f *Fault) Error() string {
	var text strings.Builder
	text.WriteString(f.Peer)
	if f.Method != "" {
		text.WriteString(": calling " + f.Method)
	}
	if f.Line > 0 {
		fmt.Fprintf(&text, ": line %d of its output", f.Line)
	}
	fmt.Fprintf(&text, ": %s: %s", f.Kind, f.Detail)
	if f.Quote != "" {
		text.WriteString(": " + f.Quote)
	}
	if f.Advice != "" {
		text.WriteString("; " + f.Advice)
	}
	if f.Last != "" {
		text.WriteString("\n" + f.Last)
	}
	return text.String()
}

// Unwrap returns the cause.
func (f *Fault) Unwrap() error { return f.Err }

// during returns the fault as the end of a call.
func (f *Fault) during(method string) *Fault {
	of := *f
	of.Method = method
	return &of
}

// IsFault tells whether an error is a fault of the kind.
func IsFault(err error, k Kind) bool {
	var f *Fault
	return errors.As(err, &f) && f.Kind == k
}

// badLine explains a line that is no answer.
func badLine(line []byte, n int, first bool, err error) *Fault {
	f := &Fault{Kind: Garbage, Line: n, Detail: err.Error(), Err: err}
	if first && !strings.HasPrefix(strings.TrimSpace(string(line)), "{") {
		f.Kind = Banner
		f.Detail = "it is not a message, and came before the first one"
	}
	f.Advice = adviceFor(line, err)
	return f
}

// adviceFor names the usual causes of a line that is no answer.
func adviceFor(line []byte, err error) string {
	text := strings.TrimSpace(string(line))
	switch {
	case strings.HasPrefix(strings.ToLower(text), "content-length:"):
		return "write one message a line, without the headers that language servers use"
	case strings.HasPrefix(text, "\ufeff"):
		return "write UTF-8 without a byte order mark"
	case strings.HasPrefix(text, "\xff\xfe"), strings.HasPrefix(text, "\xfe\xff"):
		return "write UTF-8, not UTF-16"
	case text == "{" || text == "[":
		return "write each message on one line, not spread over several"
	case errors.Is(err, errAsks):
		return "only the suite asks; an adapter answers, and logs to stderr"
	case strings.HasPrefix(text, "["):
		return "answer each request with a message of its own, not in a batch"
	case errors.Is(err, errNotMessage) && strings.Contains(text, `"jsonrpc"`):
		return `an answer is {"jsonrpc":"2.0","id":N,"result":…} or {"jsonrpc":"2.0","id":N,"error":{"code":…,"message":…}}`
	}
	return "print everything but messages to stderr"
}
