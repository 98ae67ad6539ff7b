package fakeendpoint

import (
	"time"

	"github.com/whconform/whconform/reference/wire"
)

// Limits bounds what peers can cost. A zero field is the default, which its
// comment gives with the reason. What a bound cuts or refuses is never silent:
// it stands in the attempt, in [Server.Strays] or in [Server.Stats].
//
// The times are real ones, whatever the clock of the server: they guard against
// peers, not against scripts.
type Limits struct {
	// Conns is how many connections are open at a time, 16,384: 10,000 held ones
	// and room for those that come and go. A connection more is reset.
	Conns int

	// Head is the size of the largest request head, and of the largest trailer,
	// in bytes: 64 KiB. Senders stay below 8 KiB; most servers take 8 to 64.
	Head int

	// HeaderLines is how many lines a request head has at most: 1,000.
	HeaderLines int

	// Body is how many bytes of each request body are kept:
	// [wire.BodyLimit], and no more than that.
	Body int64

	// Verify is the size of the largest body whose signature is checked: 2 MiB.
	// The largest that the sender checks publish is 1 MiB.
	Verify int64

	// InFlight bounds the bodies of all requests that are not answered yet, in
	// bytes: 64 MiB. Beyond it bodies are counted and not kept.
	InFlight int64

	// Record bounds the attempts that are remembered, in bytes: 16 MiB, some
	// 12,000 ordinary ones. The oldest are forgotten first, of whatever path.
	Record int64

	// Paths is how many paths there are, 10,000, those with the script in the URL
	// among them. Requests that would make one more are answered 503.
	Paths int

	Handshake time.Duration // of TLS: 10 s
	HeadTime  time.Duration // from the first byte to the end of the head: 30 s, the longest attempt timeout that Standard Webhooks allows
	BodyTime  time.Duration // from there to the end of the body: 10 min, for a gigabyte on a slow line
	Idle      time.Duration // between requests: 2 min, longer than clients keep connections
	Stall     time.Duration // no byte of an answer taken: 10 min, longer than any attempt
}

// defaults fills in what is zero.
func (l *Limits) defaults() {
	number := func(n *int, by int) {
		if *n <= 0 {
			*n = by
		}
	}
	bytes := func(n *int64, by int64) {
		if *n <= 0 {
			*n = by
		}
	}
	wait := func(d *time.Duration, by time.Duration) {
		if *d <= 0 {
			*d = by
		}
	}
	number(&l.Conns, 16<<10)
	number(&l.Head, 64<<10)
	l.Head = max(l.Head, bufferSize)
	number(&l.HeaderLines, 1000)
	bytes(&l.Body, wire.BodyLimit)
	l.Body = min(l.Body, wire.BodyLimit)
	bytes(&l.Verify, 2<<20)
	l.Verify = max(l.Verify, l.Body)
	bytes(&l.InFlight, 64<<20)
	bytes(&l.Record, 16<<20)
	number(&l.Paths, 10_000)
	wait(&l.Handshake, 10*time.Second)
	wait(&l.HeadTime, 30*time.Second)
	wait(&l.BodyTime, 10*time.Minute)
	wait(&l.Idle, 2*time.Minute)
	wait(&l.Stall, 10*time.Minute)
}

// Bounds that nobody needs to choose.
const (
	// bufferSize is what is read at a time: a webhook with its head fits mostly.
	bufferSize = 8 << 10

	// pieceSize is what is written at a time of a large answer. Small, so that
	// what is counted as written is near to what the peer has read.
	pieceSize = 16 << 10

	// sendBuffer is the kernel's buffer for large answers, for the same reason.
	sendBuffer = 32 << 10

	// stallNotice is the time without progress after which a writer counts as
	// held: well above a scheduling pause, far below a timeout.
	stallNotice = 100 * time.Millisecond

	// endlessFree is how much of an endless body is written before the request
	// counts as held: whoever has read so much will not stop by itself.
	endlessFree = 8 << 20

	// earlyPause is how long nothing is read after an early answer, so that the
	// sender meets a receiver that does not read.
	earlyPause = 500 * time.Millisecond

	// lingerTime and lingerBytes bound the reading after an answer that came
	// before the request's end: closing at once would reset the connection, and
	// the peer would lose the answer (RFC 9112 §9.6).
	lingerTime  = 2 * time.Second
	lingerBytes = 64 << 20

	// chunkLine bounds the line before a chunk, extensions included, and
	// chunkExtensions those of a whole body: they mean nothing, and feed attacks.
	chunkLine       = 1 << 10
	chunkExtensions = 16 << 10

	// strayCount and straySample are how many strays are remembered, and how much
	// of what each sent.
	strayCount  = 64
	straySample = 512

	// tellWait bounds the wait for the attempt before to be told of first, when
	// both end at nearly the same time.
	tellWait = 100 * time.Millisecond

	// knownKeys is how many keys are remembered to keep their secrets out of
	// strays, which belong to no path.
	knownKeys = 64

	// messageCount is how many message ids are remembered: the generation in use
	// and the one before it hold as many each.
	messageCount = 8 << 10
)
