package fakeprovider

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/whconform/whconform/reference/signature"
	"github.com/whconform/whconform/reference/wire"
)

// Draft builds a delivery and applies the alterations stage by stage, within a
// stage in the order given. An error means that the delivery cannot be built:
// a key that the scheme cannot sign with, an alteration that does not apply.
//
// Header lines come in this order: User-Agent, Content-Type, the profile's
// extra headers by name, the scheme's headers. Host goes before them and the
// body's framing after them when the draft is sent.
func (p *Provider) Draft(d Delivery, a ...Alteration) (Draft, error) {
	for _, x := range a {
		if x.Apply == nil || x.Stage < 0 || x.Stage >= stageEnd {
			return Draft{}, fmt.Errorf("drafting a delivery: alteration %q has no function or no known stage", x.Name)
		}
	}
	draft := p.begin(d)
	for stage := range stageEnd {
		for _, x := range a {
			if x.Stage != stage {
				continue
			}
			x.Apply(&draft)
			if draft.err != nil {
				return Draft{}, fmt.Errorf("drafting a delivery: alteration %q: %w", x.Name, draft.err)
			}
		}
		if err := p.finishStage(&draft, stage); err != nil {
			return Draft{}, fmt.Errorf("drafting a delivery: %w", err)
		}
	}
	return draft, nil
}

// begin is the delivery before any alteration.
func (p *Provider) begin(d Delivery) Draft {
	at := d.At
	if at.IsZero() {
		at = p.clock.Now()
	}
	draft := Draft{
		Input:  signature.Input{ID: d.ID, Method: "POST", URL: d.URL, Time: at, Body: bytes.Clone(d.Body)},
		Keys:   slices.Clone(d.Keys),
		Type:   d.Type,
		scheme: p.scheme,
	}
	if p.profile.UserAgent != "" {
		draft.Request.Headers = append(draft.Request.Headers, wire.Header{Name: "User-Agent", Value: p.profile.UserAgent})
	}
	if p.profile.ContentType != "" {
		draft.Request.Headers = append(draft.Request.Headers, wire.Header{Name: "Content-Type", Value: p.profile.ContentType})
	}
	return draft
}

// finishStage makes what the next stage stands on.
func (p *Provider) finishStage(d *Draft, s Stage) error {
	switch s {
	case BeforeSigning:
		d.Request.Method = d.Input.Method
		d.Request.Headers = append(d.Request.Headers, p.extras(d)...)
		d.Request.Body = bytes.Clone(d.Input.Body)
		d.Request.Size = int64(len(d.Request.Body))
		return d.sign()
	case OnTokens:
		d.Request.Headers = append(d.Request.Headers, d.headers(d.Input, d.emptyTime)...)
	case AfterSigning:
		if d.Wire.Body == nil {
			d.Request.Size = int64(len(d.Request.Body))
		}
	}
	return nil
}

// extras are the profile's fixed and templated header lines.
func (p *Provider) extras(d *Draft) []wire.Header {
	var out []wire.Header
	fill := strings.NewReplacer("{id}", d.Input.ID, "{type}", d.Type)
	for _, name := range slices.Sorted(maps.Keys(p.profile.Headers)) {
		out = append(out, wire.Header{Name: name, Value: fill.Replace(p.profile.Headers[name])})
	}
	return out
}

// signer is the scheme that makes tokens.
func (d *Draft) signer() signature.Scheme {
	if d.signingScheme != nil {
		return d.signingScheme
	}
	return d.scheme
}

// sign makes a token for each key.
func (d *Draft) sign() error {
	d.Tokens = make([]signature.Token, 0, len(d.Keys))
	for _, key := range d.Keys {
		token, err := d.signer().Token(d.Input, key)
		if err != nil {
			return fmt.Errorf("signing with key %q: %w", key.Label, err)
		}
		d.Tokens = append(d.Tokens, token)
	}
	return nil
}

// timeMark stands for an empty timestamp while headers are written: an empty
// Input.Timestamp would mean Input.Time.
const timeMark = "whconform-empty-timestamp"

// headers are the scheme's header lines for in and the draft's tokens.
func (d *Draft) headers(in signature.Input, emptyTime bool) []wire.Header {
	if !emptyTime {
		return d.scheme.Headers(in, d.Tokens...)
	}
	in.Timestamp = timeMark
	out := d.scheme.Headers(in, d.Tokens...)
	for i := range out {
		out[i].Value = strings.ReplaceAll(out[i].Value, timeMark, "")
	}
	return out
}
