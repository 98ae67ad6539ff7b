package fakeendpoint

import (
	"slices"
	"strings"
	"time"

	"github.com/whconform/whconform/reference/signature"
	"github.com/whconform/whconform/reference/wire"
)

// verifier checks signatures by one scheme.
type verifier struct {
	scheme signature.Scheme
	keys   []signature.Key
	labels [][]string // one label each, so that the usual case allocates nothing
	id     string     // the header that carries the message id, if one does
}

func newVerifier(scheme signature.Scheme, keys []signature.Key) verifier {
	v := verifier{scheme: scheme, keys: slices.Clone(keys)}
	for _, k := range keys {
		v.labels = append(v.labels, []string{k.Label})
	}
	if spec := scheme.Spec(); spec.ID.In == "header" {
		v.id = spec.ID.Name
	}
	return v
}

// message is the id that the request claims.
func (v *verifier) message(r *wire.Request) string {
	if v.id != "" {
		id, _ := wire.Get(r.Headers, v.id)
		return cut(id, signature.MaxID)
	}
	id, err := v.scheme.ID(r)
	if err != nil {
		return ""
	}
	return id
}

// verify checks r, whose body is whole unless its size says otherwise.
func (v *verifier) verify(r *wire.Request, now time.Time, out *Verification) {
	if len(v.keys) == 0 {
		return
	}
	out.Checked = true
	for i := range v.keys {
		_, err := v.scheme.Verify(r, now, v.keys[i:i+1]...)
		switch refusal, is := err.(*signature.Refusal); {
		case err == nil && out.By == nil:
			out.By = v.labels[i]
		case err == nil:
			out.By = append(slices.Clone(out.By), v.keys[i].Label)
		case is && better(out.Rule, refusal.Rule):
			out.Rule, out.Detail = refusal.Rule, refusal.Detail
		}
	}
	if out.OK() {
		out.Rule, out.Detail = "", ""
	}
}

// better tells whether the refusal by another key says more: that a token has
// an unknown version may be so for one kind of key only.
func better(had, rule string) bool {
	return had == "" || had == signature.RuleUnknownVersion && rule == signature.RuleNoMatch
}

// leaked finds the keys whose secret stands in a body that is kept in part
// only: what is kept is searched when somebody looks.
func (v *verifier) leaked(body []byte, out *Verification) {
	for _, k := range v.keys {
		if _, found := k.In(body); found {
			out.Leaks = append(out.Leaks, k.Label)
		}
	}
}

// scrub looks for the secrets in what a shows, names their keys in Leaks and
// puts their labels in their places: what is shown is written into reports.
// This is done when somebody looks and not for each request, since it costs as
// much as all the rest.
func (v *verifier) scrub(a *Attempt) {
	for _, k := range v.keys {
		_, inHead := k.In([]byte(a.Head))
		_, inBody := k.In(a.Request.Body)
		_, inTrailers := k.In([]byte(headerText(a.Trailers)))
		if inHead || inBody || inTrailers {
			v.redact(a, k)
		}
	}
}

func (v *verifier) redact(a *Attempt, k signature.Key) {
	if !slices.Contains(a.Verification.Leaks, k.Label) {
		a.Verification.Leaks = append(slices.Clone(a.Verification.Leaks), k.Label)
	}
	text := func(s string) string { return string(k.Redact([]byte(s))) }
	lines := func(in []wire.Header) []wire.Header {
		out := slices.Clone(in)
		for i := range out {
			out[i] = wire.Header{Name: text(out[i].Name), Value: text(out[i].Value)}
		}
		return out
	}
	a.Head, a.ID, a.Verification.Detail = text(a.Head), text(a.ID), text(a.Verification.Detail)
	a.Request.Target, a.Request.Method = text(a.Request.Target), text(a.Request.Method)
	a.Request.Headers, a.Trailers = lines(a.Request.Headers), lines(a.Trailers)
	a.Request.Body = k.Redact(a.Request.Body)
	a.FaultDetail = text(a.FaultDetail)
	a.Remarks = slices.Clone(a.Remarks)
	for i := range a.Remarks {
		a.Remarks[i] = text(a.Remarks[i])
	}
	a.Remarks = append(a.Remarks, "the secret "+k.Label+" stands in the request; it is not shown, so the bytes shown are not those received")
}

func headerText(headers []wire.Header) string {
	var out strings.Builder
	for _, h := range headers {
		out.WriteString(h.Name + ": " + h.Value + "\r\n")
	}
	return out.String()
}
