// Package adapter is the protocol between the suite and a subject's adapter: a
// small program beside the implementation under test that does what a plain
// URL cannot be asked for, such as telling how often an event was processed or
// moving the clock. JSON-RPC 2.0, one message a line on the adapter's standard
// streams, or the same messages by POST to a control URL.
//
// Who runs an adapter starts with [Start] or [NewHTTP], which give a [Peer],
// and [Open], which introduces the suite and tells what the adapter offers. Who
// writes an adapter in Go starts with [Serve] or [Handler], and [Initialize].
// docs/adapter-protocol.md describes the protocol for all languages, and
// [Schema] is its JSON Schema.
//
// An adapter is written once, in an hour, by somebody who would rather do
// something else. So whatever a peer does wrong ends as a [Fault] that quotes
// the line at fault and says what to do, and nothing that it does makes a call
// or a Close hang, or costs more memory than the bounds below.
//
// The methods of version 1, and the meaning of their members, stay as they are.
// Members and methods may be added; both sides pass over members that they do
// not know.
package adapter

import (
	"context"
	"time"
)

// ProtocolVersion is the version that both sides name in initialize.
const ProtocolVersion = 1

// Bounds of the protocol. All of them hold for a peer that is hostile, or merely
// broken in a way nobody thought of.
const (
	// MaxAnswer bounds an adapter's message, in bytes. No answer of the
	// protocol needs a tenth of it, and a line without an end stops here.
	MaxAnswer = 1 << 20
	// MaxRequest bounds the suite's message, in bytes: a payload of 1 MiB is
	// 1.4 MiB in base64 and up to 6 MiB as escaped text.
	MaxRequest = 8 << 20
	// DefaultCallTimeout bounds a call: an adapter asks a database or moves a
	// clock, and one that takes longer than this makes no run of seconds.
	DefaultCallTimeout = 10 * time.Second
	// maxCalls is how many calls may be open at a time; others wait for their
	// turn, inside their own time. With MaxAnswer it bounds the memory.
	maxCalls = 64
	// maxAbandoned is how many calls may have ended without an answer: whoever
	// left so many unanswered will answer none.
	maxAbandoned = 1000
	// maxBlank is how many empty lines in a row are passed over: some languages
	// print one too many, none prints a hundred.
	maxBlank = 100
	// closeTimeout bounds the wait for a connection's ends after it was closed.
	// A pipe and a socket let go at once.
	closeTimeout = 2 * time.Second
)

// Peer is the other side of the protocol, as the suite sees it: [Client],
// [Process] or [HTTP].
type Peer interface {
	// Call asks for a method and decodes its result into result, which may be
	// nil. Params are an object, or nil for none. The error wraps a [Fault] when
	// the peer broke the protocol, an [Error] when it answered with one, and the
	// context's cause when the caller gave up. Safe for concurrent use.
	Call(ctx context.Context, method string, params, result any) error
	// Close ends the connection, and the process if there is one. It always
	// returns within a few seconds.
	Close(context.Context) error
}
