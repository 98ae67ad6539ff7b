package drive

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/benbjohnson/clock"

	"github.com/whconform/whconform/conformance/drive/adapter"
)

// Hooking is how a receiver's adapter is reached, for [Hooked]. Make one with
// [HooksAt] or [HooksOnStdio].
type Hooking struct {
	HookOptions
	// reach connects to an instance's adapter, and tells the state folder that
	// it works on, "" for an unknown one.
	reach func(r Receiver, instance int) (peer adapter.Peer, state string, err error)
	// shared says that one adapter stands for whatever is started: it is not
	// asked once an instance, and a Variant has none.
	shared bool
}

// HookOptions are what is told to an adapter, and how it is spoken of.
type HookOptions struct {
	Profile string      // the contract that is judged by, by its name
	Clock   clock.Clock // by which the receiver lives; nil: the real one
	// Redact takes secrets out of what errors show. May be nil.
	Redact func(string) string
}

// portSlot is what stands for a receiver's port in the address of what belongs
// to it.
const portSlot = "{port}"

// HooksAt reaches the adapter by POST to a control URL, in which {port} is the
// port that the receiver listens on. Without {port} there is one adapter, and a
// Variant has none.
func HooksAt(template string, o HookOptions) (Hooking, error) {
	clean := func(text string) string {
		if o.Redact == nil {
			return text
		}
		return o.Redact(text)
	}
	name := "the adapter at " + clean(withoutUser(template))
	at := func(port string) (*adapter.HTTP, error) {
		return adapter.NewHTTP(strings.ReplaceAll(template, portSlot, port), nil, adapter.Options{Name: name, Redact: o.Redact})
	}
	if _, err := at("1"); err != nil {
		return Hooking{}, fmt.Errorf("--control %s: %w", clean(withoutUser(template)), err)
	}
	return Hooking{
		HookOptions: o, shared: !strings.Contains(template, portSlot),
		reach: func(r Receiver, instance int) (adapter.Peer, string, error) {
			u, err := url.Parse(r.Target(instance).URL)
			if err != nil {
				return nil, "", errors.New("reading the receiver's port: its target is not a URL")
			}
			peer, err := at(u.Port())
			return peer, "", err
		},
	}, nil
}

// HooksOnStdio reaches the adapter on the standard streams of the command that
// the suite started, with [ExecConfig].Stdio.
func HooksOnStdio(o HookOptions) Hooking {
	return Hooking{HookOptions: o, reach: func(r Receiver, instance int) (adapter.Peer, string, error) {
		m, ok := r.(*managed)
		if !ok || !m.config.Stdio {
			return nil, "", errors.New("the adapter on standard streams: the receiver was not started so")
		}
		return m.running()[instance].stdio.peer, m.config.State, nil
	}}
}
