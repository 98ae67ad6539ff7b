package conformance

import (
	"bytes"
	"maps"
	"slices"

	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/reference/signature"
	"github.com/whconform/whconform/reference/wire"
)

// redact takes the subject's secrets out of what was recorded. A receiver that
// tells them to whoever asks is found out while they are at hand; the report
// must not tell them to more people. It comes before the judging, so that no
// finding can quote one.
func (p *Plan) redact() {
	keys := p.part.keys()
	clean := func(b []byte) []byte {
		for _, k := range keys {
			b = k.Redact(b)
		}
		return b
	}
	text := func(s string) string { return string(clean([]byte(s))) }
	for i := range p.transcripts {
		// Almost none holds one. A look at all of it at once costs a tenth of a
		// look at each header line.
		all := content(&p.transcripts[i])
		if slices.ContainsFunc(keys, func(k signature.Key) bool { _, found := k.In(all); return found }) {
			redactTranscript(&p.transcripts[i], clean, text)
		}
	}
	if p.preflight.diagnosis != nil {
		d := *p.preflight.diagnosis
		d.Sent, d.Got, d.Cause = text(d.Sent), text(d.Got), text(d.Cause)
		p.preflight.diagnosis = &d
	}
}

// content is everything in a transcript that a receiver may have filled in, or
// that was filled in from what it did.
func content(t *evidence.Transcript) []byte {
	var b bytes.Buffer
	add := func(texts ...string) {
		for _, s := range texts {
			b.WriteString(s)
			b.WriteByte('\n')
		}
	}
	add(t.Error)
	for _, value := range t.Facts {
		add(value)
	}
	if t.Received {
		return b.Bytes() // the fake endpoint has taken secrets out of what came to it
	}
	for i := range t.Exchanges {
		x := &t.Exchanges[i]
		add(x.FaultDetail, x.Request.Target)
		for _, h := range x.Request.Headers {
			add(h.Name, h.Value)
		}
		b.Write(x.Request.Body)
		if x.Response == nil {
			continue
		}
		add(x.Response.Reason)
		for _, h := range x.Response.Headers {
			add(h.Name, h.Value)
		}
		b.Write(x.Response.Body)
	}
	return b.Bytes()
}

func redactTranscript(t *evidence.Transcript, clean func([]byte) []byte, text func(string) string) {
	t.Error = text(t.Error)
	t.Facts = maps.Clone(t.Facts)
	for name, value := range t.Facts {
		t.Facts[name] = text(value)
	}
	t.Exchanges = slices.Clone(t.Exchanges)
	for i := range t.Exchanges {
		x := &t.Exchanges[i]
		x.Request.Target, x.Request.Body = text(x.Request.Target), clean(x.Request.Body)
		x.Request.Headers = redactHeaders(x.Request.Headers, text)
		x.FaultDetail = text(x.FaultDetail)
		if x.Response != nil {
			response := *x.Response
			response.Reason = text(response.Reason)
			response.Body, response.Headers = clean(response.Body), redactHeaders(response.Headers, text)
			x.Response = &response
		}
	}
}

func redactHeaders(headers []wire.Header, text func(string) string) []wire.Header {
	out := slices.Clone(headers)
	for i := range out {
		out[i] = wire.Header{Name: text(out[i].Name), Value: text(out[i].Value)}
	}
	return out
}
