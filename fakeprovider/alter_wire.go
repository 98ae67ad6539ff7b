package fakeprovider

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The alterations of this file change how the body goes over the wire.

// Chunked sends the body in chunks, without a Content-Length.
func Chunked() Alteration {
	return Alteration{"chunked", OnWire, func(d *Draft) { d.Wire.Chunked = true }}
}

// Expect100 sends Expect: 100-continue and waits for leave before the body, at
// most [ExpectWait].
func Expect100() Alteration {
	return Alteration{"expect-continue", OnWire, func(d *Draft) { d.Wire.Expect = true }}
}

// DeclaredLength declares a Content-Length of n, whatever the body's size.
func DeclaredLength(n int64) Alteration {
	return DeclaredLengthText(strconv.FormatInt(n, 10))
}

// DeclaredLengthText declares text as the Content-Length; "" declares none.
func DeclaredLengthText(text string) Alteration {
	return Alteration{"length-" + label(text), OnWire, func(d *Draft) { d.Wire.Length = &text }}
}

// Drip sends the body byte by byte, with that wait between them.
func Drip(wait time.Duration) Alteration {
	return Alteration{"drip-" + wait.String(), OnWire, func(d *Draft) { d.Wire.Drip = wait }}
}

// StallAfter sends the first n bytes of the body and then nothing more, with
// the connection open, until the receiver answers or ends it. With n = 0 it
// stalls after the head.
func StallAfter(n int64) Alteration {
	return Alteration{"stall-" + strconv.FormatInt(n, 10), OnWire, func(d *Draft) {
		if d.Wire.StallAt = n; n == 0 {
			d.Wire.StallAt = -1
		}
	}}
}

// PauseAt waits once before the body byte at offset.
func PauseAt(offset int64, wait time.Duration) Alteration {
	return Alteration{"pause-" + strconv.FormatInt(offset, 10), OnWire, func(d *Draft) {
		d.Wire.Pace = append(slices.Clone(d.Wire.Pace), Pause{offset, wait})
	}}
}

// HalfClose shuts down the writing side after the body, as a client does that
// wants no more than the answer.
func HalfClose() Alteration {
	return Alteration{"half-close", OnWire, func(d *Draft) { d.Wire.HalfClose = true }}
}

// oversizeHead and oversizeTail make one string in one object of whatever
// stands between them.
const (
	oversizeHead = `{"whconform":"`
	oversizeTail = `"}`
)

// Oversize streams a well-formed JSON object of exactly size bytes from
// constant memory, under the signature of the event. size must be 16 at least.
func Oversize(size int64) Alteration {
	return Alteration{"oversize-" + strconv.FormatInt(size, 10), AfterSigning, func(d *Draft) {
		fill := size - int64(len(oversizeHead)+len(oversizeTail))
		if fill < 0 {
			d.Fail(fmt.Errorf("an oversize body of %d B: it needs 16 B at least", size))
			return
		}
		d.Request.Body, d.Request.Size = nil, size
		d.Wire.Body = func() io.Reader {
			return io.MultiReader(strings.NewReader(oversizeHead), io.LimitReader(filler{}, fill), strings.NewReader(oversizeTail))
		}
	}}
}

// filler reads as the letter x for ever.
type filler struct{}

func (filler) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// GzipSignedPacked packs the body and signs the packed bytes: what HTTP calls
// the content as sent.
func GzipSignedPacked() Alteration {
	return Alteration{"gzip-signed-packed", BeforeSigning, func(d *Draft) {
		d.Input.Body = pack(d.Input.Body)
		d.setHeader("Content-Encoding", "gzip")
	}}
}

// GzipSignedPlain signs the plain body and packs it afterwards.
func GzipSignedPlain() Alteration {
	return Alteration{"gzip-signed-plain", AfterSigning, func(d *Draft) {
		d.Request.Body = pack(d.Request.Body)
		d.setHeader("Content-Encoding", "gzip")
	}}
}

// pack compresses by gzip, without a time in the header: equal bodies pack to
// equal bytes.
func pack(body []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	// A bytes.Buffer takes everything.
	_, _ = z.Write(body)
	_ = z.Close()
	return out.Bytes()
}
