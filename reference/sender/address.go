package sender

import (
	"fmt"
	"net/netip"

	"code.dny.dev/ssrf"
)

// rule is a range of addresses that no endpoint may have, and what it is.
type rule struct {
	prefix netip.Prefix
	what   string
}

// ranges names what is refused, so that an error says more than "denied". The
// first that holds an address names it. The list does not decide: what the
// registries of special addresses keep apart is refused without a name, too.
//
// source: IANA IPv4 and IPv6 Special-Purpose Address Registries; the metadata
// addresses are those that clouds document.
func ranges() []rule {
	at := func(prefix, what string) rule { return rule{netip.MustParsePrefix(prefix), what} }
	return []rule{
		at("169.254.169.254/32", "the metadata service of a cloud"),
		at("169.254.170.2/32", "the credentials of a container"),
		at("168.63.129.16/32", "the metadata service of a cloud"),
		at("100.100.100.200/32", "the metadata service of a cloud"),
		at("192.0.0.192/32", "the metadata service of a cloud"),
		at("fd00:ec2::254/128", "the metadata service of a cloud"),
		at("0.0.0.0/8", "this network"),
		at("10.0.0.0/8", "private"),
		at("172.16.0.0/12", "private"),
		at("192.168.0.0/16", "private"),
		at("100.64.0.0/10", "shared by a carrier's NAT"),
		at("127.0.0.0/8", "loopback"),
		at("169.254.0.0/16", "link-local"),
		at("192.0.2.0/24", "for documentation"),
		at("198.51.100.0/24", "for documentation"),
		at("203.0.113.0/24", "for documentation"),
		at("198.18.0.0/15", "for benchmarks"),
		at("192.88.99.0/24", "a 6to4 relay"),
		at("224.0.0.0/4", "multicast"),
		at("255.255.255.255/32", "broadcast"),
		at("240.0.0.0/4", "reserved"),
		at("::/128", "unspecified"),
		at("::1/128", "loopback"),
		at("fe80::/10", "link-local"),
		at("fec0::/10", "site-local"),
		at("fc00::/7", "private"),
		at("ff00::/8", "multicast"),
		at("2001:db8::/32", "for documentation"),
		at("3fff::/20", "for documentation"),
		at("100::/64", "a black hole"),
	}
}

// wrapped are the ranges in which an IPv6 address stands for one of IPv4, which
// a gateway or the kernel then connects to. from is the first of its four bytes.
//
// source: RFC 4291 §2.5.5 (mapped, compatible), RFC 6052 and RFC 8215 (NAT64),
// RFC 3056 (6to4).
func wrapped() []struct {
	rule
	from int
} {
	at := func(prefix, what string, from int) struct {
		rule
		from int
	} {
		return struct {
			rule
			from int
		}{rule{netip.MustParsePrefix(prefix), what}, from}
	}
	return []struct {
		rule
		from int
	}{
		at("::ffff:0:0/96", "the IPv6 form of", 12),
		at("64:ff9b::/96", "the NAT64 form of", 12),
		at("64:ff9b:1::/48", "a NAT64 form of", 12),
		at("2002::/16", "the 6to4 form of", 2),
		at("::/96", "the old IPv6 form of", 12),
	}
}

// addressRules decides about addresses, whatever name led to them.
type addressRules struct{ guardian *ssrf.Guardian }

// newAddressRules takes the registries' ranges from a library that follows them,
// and adds what they do not know: an address that is public by its number and
// answers with a cloud's secrets.
func newAddressRules() addressRules {
	return addressRules{ssrf.New(
		ssrf.WithAnyPort(),
		ssrf.WithDeniedV4Prefixes(netip.MustParsePrefix("168.63.129.16/32")),
	)}
}

// refuse says what an address is that no endpoint may have, "" for any other.
func (r addressRules) refuse(addr netip.Addr) string {
	if addr.Zone() != "" {
		return "bound to a network interface by its zone"
	}
	if isatap(addr) {
		return "an ISATAP tunnel to an IPv4 address"
	}
	if r.guardian.SafeAddr(addr) == nil {
		return ""
	}
	for _, known := range ranges() {
		if known.prefix.Contains(addr) {
			return known.what
		}
	}
	for _, w := range wrapped() {
		if w.prefix.Contains(addr) {
			b := addr.As16()
			inner := netip.AddrFrom4([4]byte(b[w.from : w.from+4]))
			if what := r.refuse(inner); what != "" {
				return fmt.Sprintf("%s %s (%s)", w.what, inner, what)
			}
			return fmt.Sprintf("%s %s, which is to be written as it is", w.what, inner)
		}
	}
	return "not an address of the public internet"
}

// isatap tells whether addr is one of a tunnel inside a site: its last eight
// bytes are 00-00-5E-FE or 02-00-5E-FE and an IPv4 address, behind any prefix.
//
// source: RFC 5214 §6.1.
func isatap(addr netip.Addr) bool {
	if !addr.Is6() {
		return false
	}
	b := addr.As16()
	return b[8]&^2 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe
}
