package sender

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"github.com/whconform/whconform/conformance/drive"
)

// nameZone is below .test, which no public name server knows (RFC 6761 §6.2).
const nameZone = ".whconform.test"

// Names that the sender is told to allow, see [AllowedNames].
const (
	vanishingName = "vanishes" + nameZone
	reachableName = "reachable" + nameZone
)

// AllowedNames are hosts that a sender has to be told to allow (allowHosts),
// beside the fake endpoint's own, where the run has a name server: they lead to
// the fake endpoint. Everything else below the same zone leads to places that no
// sender may call, so no pattern may stand for them.
func AllowedNames() []string { return []string{vanishingName, reachableName} }

// fakeAddress is the address that the fake endpoint listens on.
func (s *session) fakeAddress() netip.Addr {
	u, err := url.Parse(s.Server.URL())
	if err == nil {
		var addr netip.Addr
		if addr, err = netip.ParseAddr(u.Hostname()); err == nil {
			return addr
		}
	}
	s.fail(fmt.Errorf("finding the fake endpoint's address: %w", err))
	return netip.Addr{}
}

// endpointNamed is endpoint at an address whose host is a name. The error is
// the sender's refusal, as of endpointAt.
func (s *session) endpointNamed(name, script, host string) (*endpoint, error) {
	e := &endpoint{s: s, name: name}
	if s.over() {
		return e, nil
	}
	n := s.ledger.number()
	e.path = s.newPath(fmt.Sprintf("%s/%d", strings.TrimPrefix(s.id, "sender."), n), script)
	if e.path == nil {
		return e, nil
	}
	u, err := url.Parse(e.path.URL())
	if err != nil {
		s.fail(fmt.Errorf("reading the address of %q: %w", name, err))
		return e, nil
	}
	u.Host = host + ":" + u.Port()
	err = e.tryCreate(drive.EndpointSpec{URL: u.String(), EventTypes: []string{s.eventType(n)}})
	if err != nil && !refused(err) {
		s.fail(fmt.Errorf("creating the endpoint %q: %w", name, err))
		return e, nil
	}
	return e, err
}
