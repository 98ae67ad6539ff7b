package receiver

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/whconform/whconform/reference/profile"
	"github.com/whconform/whconform/reference/signature"
	"github.com/whconform/whconform/reference/wire"
)

// identity names an authentic message: its key in the store, and its type where
// a header tells.
type identity struct {
	scheme     signature.Scheme
	typeHeader string // name of the header that holds the event type, "" if none does
}

func newIdentity(p *profile.Profile, s signature.Scheme) identity {
	id := identity{scheme: s}
	for name, value := range p.Headers {
		if value == "{type}" {
			id.typeHeader = name
		}
	}
	return id
}

// id is the provider's id of r. Where the provider sends none, or the body that
// should hold it cannot be read, it is made of the bytes: such a message is
// authentic, so it is stored and acknowledged like any other, and whoever
// processes it deals with what it says. A refusal would only bring it back
// until the provider gives up on the endpoint.
func (i identity) id(r *wire.Request) string {
	if id, err := i.scheme.ID(r); err == nil {
		return id
	}
	sum := sha256.Sum256(r.Body)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func (i identity) eventType(r *wire.Request) string {
	if i.typeHeader == "" {
		return ""
	}
	t, _ := wire.Get(r.Headers, i.typeHeader)
	return t
}
