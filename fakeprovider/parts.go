package fakeprovider

import (
	"github.com/whconform/whconform/reference/signature"
)

// Parts are the names of the headers that carry a scheme's parts. A name is
// empty when no header carries the part: it stands in the body, or the scheme
// has none.
type Parts struct {
	ID        string
	Timestamp string // equal to Signature where the timestamp stands inside that header
	Signature string
}

// Parts are the names of the headers of the provider's scheme.
func (p *Provider) Parts() Parts { return partsOf(p.scheme.Spec()) }

func (d *Draft) parts() Parts { return partsOf(d.scheme.Spec()) }

func partsOf(spec signature.Spec) Parts {
	var out Parts
	if spec.Signature.In == "header" {
		out.Signature = spec.Signature.Name
	}
	if spec.ID.In == "header" {
		out.ID = spec.ID.Name
	}
	switch spec.Timestamp.In {
	case "header":
		out.Timestamp = spec.Timestamp.Name
	case "signature":
		out.Timestamp = out.Signature
	}
	return out
}

// SignatureHeaders are the names of all headers that the scheme writes, in
// their order.
func (p *Provider) SignatureHeaders() []string { return schemeHeaders(p.scheme) }

// schemeHeaders asks the scheme what it writes, so that no name is assumed.
func schemeHeaders(scheme signature.Scheme) []string {
	var out []string
	for _, h := range scheme.Headers(signature.Input{ID: "id", Timestamp: "1"}, signature.Token{Version: "v1", Text: "x"}) {
		out = append(out, h.Name)
	}
	return out
}
