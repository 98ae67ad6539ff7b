package sender

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
)

// maxURL is the length of the longest endpoint URL, 2,048 bytes: what browsers
// and proxies agree on.
const maxURL = 2048

// RefusedError tells that an endpoint's URL, or the address that it leads to, is
// one to which nothing is sent.
type RefusedError struct {
	What string // the URL's host, or the address; never the whole URL, which may hold a token
	Why  string
}

// Error says what is refused and why.
func (e *RefusedError) Error() string {
	if e.What == "" {
		return "the URL " + e.Why
	}
	return fmt.Sprintf("%s is refused: %s", e.What, e.Why)
}

// Guard decides which addresses endpoints may have. A customer's URL must not be
// a way into the sender's own network, so it is asked twice: [Guard.CheckURL]
// when an endpoint is created, for an error that its owner reads at once, and
// [Guard.Control] when a connection is made, about the very address that is
// connected to. Only the second is proof: who owns a name can let it point
// elsewhere between the two.
//
// A Guard is safe for use by several goroutines at a time.
//
// source: 07 endpoints and SSRF.
type Guard struct {
	rules   addressRules
	allowed map[string]bool // host, or host:port, as hostKey writes them
}

// NewGuard makes a guard. allowHosts are hosts that may be called without TLS
// and at a loopback address, for tests: names or loopback addresses, each with a
// port or for all ports: "127.0.0.1", "[::1]:8080", "hooks.test:9000". What such
// a name may resolve to beyond the public internet is loopback alone.
func NewGuard(allowHosts ...string) (*Guard, error) {
	g := &Guard{rules: newAddressRules(), allowed: map[string]bool{}}
	for _, text := range allowHosts {
		host, port, err := splitAllowed(text)
		if err != nil {
			return nil, fmt.Errorf("allowing the host %q: %w", text, err)
		}
		if addr, err := netip.ParseAddr(host); err == nil {
			if !addr.IsLoopback() || addr.Is4In6() || addr.Zone() != "" {
				return nil, fmt.Errorf("allowing the host %q: only loopback addresses can be allowed", text)
			}
			host = addr.String()
		} else if why := refuseName(host); why != "" && !plainLabel(host) {
			return nil, fmt.Errorf("allowing the host %q: it %s", text, why)
		}
		g.allowed[hostKey(host, port)] = true
	}
	return g, nil
}

// splitAllowed reads "host", "host:port", "[v6]:port", "[v6]" and "v6".
func splitAllowed(text string) (host, port string, err error) {
	text = strings.ToLower(text)
	if _, err := netip.ParseAddr(text); err == nil {
		return text, "", nil
	}
	if inner, ok := strings.CutPrefix(text, "["); ok && strings.HasSuffix(inner, "]") {
		return strings.TrimSuffix(inner, "]"), "", nil
	}
	if !strings.Contains(text, ":") {
		return text, "", nil
	}
	if host, port, err = net.SplitHostPort(text); err != nil {
		return "", "", errors.New("it is not HOST or HOST:PORT")
	}
	if !goodPort(port) {
		return "", "", errors.New("its port is not one from 1 to 65535")
	}
	return host, port, nil
}

func hostKey(host, port string) string {
	if port == "" {
		return host
	}
	return net.JoinHostPort(host, port)
}

// allows tells whether a host was allowed by NewGuard.
func (g *Guard) allows(host, port string) bool {
	return g.allowed[host] || g.allowed[hostKey(host, port)]
}

// CheckURL tells whether an endpoint may have this URL. The error is a
// *[RefusedError] with the first thing that is wrong. Names are not resolved:
// what they resolve to now says nothing about the next attempt.
func (g *Guard) CheckURL(raw string) error {
	u, err := parseURL(raw)
	if err != nil {
		return err
	}
	host, port := strings.ToLower(u.Hostname()), portOf(u)
	if g.allows(host, port) {
		return nil
	}
	if u.Scheme != "https" {
		return &RefusedError{host, "events are sent by https only"}
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		if why := g.rules.refuse(addr); why != "" {
			return &RefusedError{host, "it is " + why}
		}
		return nil
	}
	if why := refuseName(host); why != "" {
		return &RefusedError{host, "it " + why}
	}
	return nil
}

// parseURL reads what is a URL in one way only. Where two programs could read
// it in two ways, one of them would check another host than the other calls.
func parseURL(raw string) (*url.URL, error) {
	bad := func(why string) error { return &RefusedError{Why: why} }
	if len(raw) > maxURL {
		return nil, bad(fmt.Sprintf("has %d bytes, at most %d can be", len(raw), maxURL))
	}
	for _, r := range raw {
		if r <= ' ' || r > '~' {
			return nil, bad("holds a blank, a control character or one that is not ASCII; write those percent-encoded, and a name in its xn-- form")
		}
	}
	if strings.Contains(raw, `\`) {
		return nil, bad("holds a backslash, which some programs take for a slash")
	}
	u, err := url.Parse(raw)
	if err != nil {
		// url.Error holds the URL, its token included.
		return nil, bad("is not well formed")
	}
	switch {
	case u.Scheme == "":
		return nil, bad("is not absolute: it begins with no https://")
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, bad(fmt.Sprintf("has the scheme %q, only https can be", u.Scheme))
	case u.Opaque != "" || u.Host == "" || u.Hostname() == "":
		return nil, bad("names no host")
	case u.User != nil:
		return nil, bad("holds a user name or an @ before the host; what some programs take for the host is that")
	case u.Fragment != "" || strings.Contains(raw, "#"):
		return nil, bad("holds a fragment (#), which is never sent")
	case strings.HasSuffix(u.Host, ":") || u.Port() != "" && !goodPort(u.Port()):
		return nil, bad("has a port that is not one from 1 to 65535")
	case strings.ContainsAny(u.Hostname(), "%"):
		return nil, bad("has a host with a zone or a percent sign")
	}
	return u, nil
}

// portOf is the port that a URL leads to.
func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "http":
		return "80"
	}
	return "443"
}

func goodPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0 && text[0] != '0'
}

// refuseName says why a host that is no address is refused, "" if it is not.
func refuseName(host string) string {
	labels := strings.Split(host, ".")
	last := labels[len(labels)-1]
	switch {
	case strings.Contains(host, ":"):
		return "is not an IPv6 address in its usual form"
	case len(host) > 253:
		return "is longer than a name can be"
	case last == "":
		return "ends in a full stop; write it without"
	case looksNumeric(last):
		// 2130706433, 0x7f.1, 0177.0.0.1 and 127.1 are 127.0.0.1 to whatever
		// parses addresses as inet_aton does.
		return "is an IPv4 address in an unusual spelling, or none"
	}
	for _, label := range labels {
		if !goodLabel(label) {
			return "is not well formed as a name"
		}
	}
	switch {
	case last == "localhost" || host == "localhost.localdomain" || strings.HasPrefix(host, "ip6-") && len(labels) == 1:
		return "is a name of this machine"
	case len(labels) == 1:
		return "has no full stop: only an internal name server would know it"
	case last == "local" || last == "internal" || last == "intranet" || last == "lan" || last == "localdomain" || strings.HasSuffix(host, ".home.arpa"):
		return "is a name of an internal network"
	case last == "arpa" || last == "onion":
		return "is no name of a web server on the public internet"
	}
	return ""
}

// looksNumeric tells whether a label is a number, in decimal, octal or hex.
//
// source: the WHATWG URL standard, "ends in a number".
func looksNumeric(label string) bool {
	if strings.Trim(label, "0123456789") == "" {
		return true
	}
	hex, ok := strings.CutPrefix(label, "0x")
	return ok && strings.Trim(hex, "0123456789abcdef") == ""
}

func goodLabel(label string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789-_"
	return label != "" && len(label) <= 63 && strings.Trim(label, letters) == "" &&
		label[0] != '-' && label[len(label)-1] != '-'
}

// plainLabel tells whether host is localhost or another name that only a test
// environment knows: such a name is refused unless it is allowed.
func plainLabel(host string) bool {
	for label := range strings.SplitSeq(host, ".") {
		if !goodLabel(label) || looksNumeric(label) {
			return false
		}
	}
	return true
}

// Control is for net.Dialer.Control: it refuses to connect to an address that
// no endpoint may have, whatever led to it. hostPort is what the URL names, to
// know whether it was allowed. A dialer goes on to the next address of a name
// after a refusal, so one internal address among several is never connected to.
func (g *Guard) Control(hostPort string) func(network, address string, _ syscall.RawConn) error {
	host, port, err := net.SplitHostPort(hostPort)
	allowed := err == nil && g.allows(strings.ToLower(strings.TrimSuffix(host, ".")), port)
	return func(network, address string, _ syscall.RawConn) error {
		return g.checkAddress(allowed, network, address)
	}
}

func (g *Guard) checkAddress(allowed bool, network, address string) error {
	if network != "tcp4" && network != "tcp6" {
		return &RefusedError{network + " " + address, "endpoints are reached by TCP only"}
	}
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return &RefusedError{address, "it is no address with a port"}
	}
	if allowed && to.Addr().IsLoopback() {
		return nil
	}
	if why := g.rules.refuse(to.Addr()); why != "" {
		return &RefusedError{to.Addr().String(), "it is " + why}
	}
	return nil
}
