package fakeendpoint

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/whconform/whconform/reference/wire"
)

// Kind says what a step does; its value is the step's word in a script, but for
// [KindStatus], whose word is the status itself.
type Kind string

// The kinds of steps. docs/fake-endpoint.md describes each with its arguments.
const (
	KindStatus   Kind = "status"    // an answer: 200, 503(retry-after=600)
	KindSlow     Kind = "slow"      // another step, after a wait: slow(20s,500)
	KindHang     Kind = "hang"      // no answer, for as long as the peer stays
	KindDrip     Kind = "drip"      // an answer in small pieces: drip(1B,1s)
	KindHuge     Kind = "huge"      // a large body: huge(1GiB,chunked)
	KindBomb     Kind = "gzip-bomb" // a small body that expands: gzip-bomb(1GiB)
	KindEndless  Kind = "endless"   // a body without end
	KindHeaders  Kind = "headers"   // a large head: headers(16MiB)
	KindReset    Kind = "reset"     // the connection is reset in place of an answer
	KindClose    Kind = "close"     // the connection is closed in place of an answer
	KindTruncate Kind = "truncate"  // the connection is closed within the body
	KindGarbage  Kind = "garbage"   // the answer is not HTTP
	KindEarly    Kind = "early"     // an answer before the request's body is read: early(413)

	// The rest is about connections, so the path needs a port of its own: see
	// [Script.OwnPort].
	KindExpired    Kind = "expired"     // the certificate has expired
	KindWrongHost  Kind = "wrong-host"  // the certificate is another host's
	KindSelfSigned Kind = "self-signed" // the certificate is signed by nobody
	KindRefuse     Kind = "refuse"      // nobody listens: refuse(30s)
	KindFullQueue  Kind = "full-queue"  // connecting never completes: full-queue(30s)
)

// The bounds of a script. They keep a script, which may come in a URL from
// anybody who reaches the port, from costing more than what it asks for.
const (
	// MaxScript is the length of the longest script, in bytes: URLs end there.
	MaxScript = 8 << 10
	// MaxSteps is the number of steps in a script. A schedule has about ten.
	MaxSteps = 256
	// MaxRepeat is the highest n of *n.
	MaxRepeat = 1_000_000
	// MaxInterim is how many 1xx answers a step may begin with.
	MaxInterim = 100
	// MaxSize is the largest size: more than anything reads.
	MaxSize = 1 << 40
	// MaxWait is the longest duration, 30 days: no schedule is longer.
	MaxWait = 30 * 24 * time.Hour
)

// Script is what an endpoint does, attempt by attempt; the last step repeats.
// It never changes once made. The zero Script answers 200.
//
// Attempts are counted by path: one path is one scenario.
type Script struct{ steps []Step }

// Step is what an endpoint does on one attempt, or on several. Fields that its
// Kind does not use are zero. [NewScript] checks it.
type Step struct {
	Interim []Interim // 1xx answers before the answer
	Kind    Kind

	// Status is that of the answer: of [KindStatus], required, and of the kinds
	// with an answer of their own (drip, huge, gzip-bomb, endless, headers,
	// truncate), where 0 is 200.
	Status     int
	RetryAfter RetryAfter    // status only
	Location   string        // status only; a redirect without one leads to the path's trap
	Headers    []wire.Header // status only: further header lines
	Body       string        // status only
	Close      bool          // status only: the connection ends after the answer

	Size    int64 // of the body, or the head, in bytes; 0: the kind's default
	Chunked bool  // huge, gzip-bomb, truncate: without Content-Length
	Head    bool  // drip: the head is dripped too, and not only the body
	OneLine bool  // headers: one endless line in place of many

	Piece int64         // drip: bytes in a piece
	Wait  time.Duration // slow: before Then; drip: between pieces; refuse, full-queue: how long, 0 is until the script changes

	Then *Step // slow: any step with an answer or a fault; early: a status

	Repeat Repeat
}

// Interim is a 1xx answer that precedes the answer.
type Interim struct {
	Status  int
	Headers []wire.Header
	Times   int // 0 is once
}

// Repeat says how long a step stays in force. The zero Repeat is for one
// attempt. The last step of a script stays for ever, whatever it says.
type Repeat struct {
	Times int           // that many attempts
	For   time.Duration // for that long from its first attempt on
	Until bool          // until the step's Retry-After has passed
}

// RetryAfter is a Retry-After header.
type RetryAfter struct {
	Text  string        // as it stands, well formed or not: "600", "soon"
	Delay time.Duration // or so much time, in whole seconds
	Date  bool          // or the date that lies Delay ahead, as HTTP-date
}

// IsZero tells whether there is none.
func (r RetryAfter) IsZero() bool { return r == RetryAfter{} }

// NewScript checks steps and makes a script of them.
func NewScript(steps ...Step) (Script, error) {
	if len(steps) == 0 {
		return Script{}, errors.New("making a script: it has no step")
	}
	if len(steps) > MaxSteps {
		return Script{}, fmt.Errorf("making a script: %d steps, at most %d", len(steps), MaxSteps)
	}
	for i := range steps {
		if err := steps[i].check(i == len(steps)-1); err != nil {
			return Script{}, fmt.Errorf("making a script: step %d: %w", i+1, err)
		}
	}
	return Script{cloneSteps(steps)}, nil
}

// Always is the script of one step that repeats: a status.
func Always(status int) (Script, error) { return NewScript(Step{Kind: KindStatus, Status: status}) }

// Steps is a copy of the script's steps.
func (s Script) Steps() []Step { return cloneSteps(s.list()) }

// list is the steps, at least one.
func (s Script) list() []Step {
	if len(s.steps) == 0 {
		return okSteps()
	}
	return s.steps
}

func okSteps() []Step { return []Step{{Kind: KindStatus, Status: http.StatusOK}} }

func cloneSteps(steps []Step) []Step {
	out := slices.Clone(steps)
	for i := range out {
		out[i].Headers = slices.Clone(out[i].Headers)
		out[i].Interim = slices.Clone(out[i].Interim)
		for j := range out[i].Interim {
			out[i].Interim[j].Headers = slices.Clone(out[i].Interim[j].Headers)
		}
		if then := out[i].Then; then != nil {
			out[i].Then = &cloneSteps([]Step{*then})[0]
		}
	}
	return out
}

// OwnPort tells whether the script has steps about connections rather than
// requests. Which path a connection is for is known too late for them, so such
// a path gets a port of its own, where each connection takes one request.
func (s Script) OwnPort() bool {
	return slices.ContainsFunc(s.steps, func(step Step) bool { return step.Kind.OnConnection() })
}

// usesTLS tells whether a step is about certificates.
func (s Script) usesTLS() bool {
	return slices.ContainsFunc(s.steps, func(step Step) bool { return step.Kind.isTLS() })
}

// OnConnection tells whether the kind is about connections rather than requests.
func (k Kind) OnConnection() bool { return k.isTLS() || k.isOutage() }

func (k Kind) isTLS() bool    { return k == KindExpired || k == KindWrongHost || k == KindSelfSigned }
func (k Kind) isOutage() bool { return k == KindRefuse || k == KindFullQueue }

// answers tells whether the kind has an answer whose status may be chosen.
func (k Kind) answers() bool {
	switch k {
	case KindDrip, KindHuge, KindBomb, KindEndless, KindHeaders, KindTruncate:
		return true
	}
	return false
}

// Path is the beginning of a URL's path that carries the script itself: what
// follows it is free, and tells scenarios apart.
func (s Script) Path() string { return scriptPrefix + escapeSegment(s.String()) }

// escapeSegment percent-encodes what may not stand in a segment of a path as it
// is. It leaves the comma and the asterisk, so that scripts stay readable.
func escapeSegment(text string) string {
	const plain = "-_.~!$&'()*+,;=:@"
	var out strings.Builder
	for i := range len(text) {
		c := text[i]
		if isAlnum(c) || strings.IndexByte(plain, c) >= 0 {
			out.WriteByte(c)
			continue
		}
		fmt.Fprintf(&out, "%%%02X", c)
	}
	return out.String()
}

func isAlnum(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
