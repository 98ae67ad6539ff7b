package sender

import (
	"fmt"
	"strings"
)

// internalProbe is an address that no endpoint may have, in one spelling.
type internalProbe struct {
	label string
	// listen is the address of this machine at which a connection shows; "" where
	// there is none, and nothing can be seen of it.
	listen string
	url    string // PORT stands for the port
}

// at is the probe's URL.
func (p internalProbe) at(port int) string {
	return strings.ReplaceAll(p.url, "PORT", fmt.Sprint(port))
}

// The loopback addresses at which connections show. 127.0.0.1 is where the fake
// endpoint may be, which senders are told to allow: another address of the same
// range is no less internal, and nobody allowed it.
const (
	trapIPv4 = "127.0.0.2"
	trapIPv6 = "::1"
)

// seenProbes lead to this machine. Of localhost only IPv6 counts: it may lead to
// 127.0.0.1 as well, which a sender may take for allowed. The wildcard address
// leads to 127.0.0.1, and was not allowed.
func seenProbes() []internalProbe {
	v4 := func(label, host string) internalProbe {
		return internalProbe{label, trapIPv4, "https://" + host + ":PORT/hook"}
	}
	v6 := func(label, host string) internalProbe {
		return internalProbe{label, trapIPv6, "https://" + host + ":PORT/hook"}
	}
	return []internalProbe{
		v4("loopback", "127.0.0.2"), v4("loopback, in short", "127.2"), v4("loopback, in decimal", "2130706434"),
		v4("loopback, in hex", "0x7f000002"), v4("loopback, with a part in hex", "0x7f.0.0.2"), v4("loopback, with a part in octal", "0177.0.0.2"),
		v4("loopback, with a full stop behind it", "127.0.0.2."), v4("loopback, mapped to IPv6", "[::ffff:127.0.0.2]"), v4("loopback, mapped to IPv6, in hex", "[::ffff:7f00:2]"),
		v4("loopback, behind a user name", "hooks.invalid@127.0.0.2"), v4("loopback, behind a backslash and a user name", `hooks.invalid\@127.0.0.2`),
		v6("IPv6 loopback", "[::1]"), v6("IPv6 loopback, at length", "[0:0:0:0:0:0:0:1]"), v6("IPv6 loopback, with a zone", "[::1%25lo]"),
		v6("localhost", "localhost"), v6("localhost, in capitals", "LOCALHOST"), v6("localhost, with a full stop behind it", "localhost."), v6("a name below localhost", "hooks.localhost"),
		v6("the IPv6 wildcard", "[::]"),
		{"the wildcard", "127.0.0.1", "https://0.0.0.0:PORT/hook"}, {"the wildcard, in short", "127.0.0.1", "https://0:PORT/hook"},
	}
}

// unseenProbes lead elsewhere, mostly nowhere, or are no addresses of a web
// server at all.
func unseenProbes() []internalProbe {
	hosts := []struct{ label, host string }{
		{"private, 10/8", "10.0.0.1"}, {"private, 172.16/12", "172.31.255.254"}, {"private, 192.168/16", "192.168.0.1"},
		{"link-local", "169.254.0.1"}, {"a cloud's metadata", "169.254.169.254"}, {"a cloud's metadata, in decimal", "2852039166"},
		{"a cloud's metadata, in hex", "0xa9fea9fe"}, {"a cloud's metadata, in octal", "0251.0376.0251.0376"},
		{"a cloud's metadata, by name", "metadata.google.internal"}, {"shared by carriers, 100.64/10", "100.64.0.1"},
		{"this network, 0/8", "0.1.2.3"}, {"for protocols, 192.0.0/24", "192.0.0.192"}, {"for benchmarks, 198.18/15", "198.18.0.1"},
		{"for documentation, 192.0.2/24", "192.0.2.1"}, {"multicast", "224.0.0.1"}, {"reserved, 240/4", "240.0.0.1"}, {"broadcast", "255.255.255.255"},
		{"IPv6, unique local", "[fd00::1]"}, {"IPv6, a cloud's metadata", "[fd00:ec2::254]"}, {"IPv6, link-local", "[fe80::1]"}, {"IPv6, link-local, with a zone", "[fe80::1%25lo]"},
		{"IPv6, site-local", "[fec0::1]"}, {"IPv6, multicast", "[ff02::1]"}, {"IPv6, for documentation", "[2001:db8::1]"},
		{"private, mapped to IPv6", "[::ffff:10.0.0.1]"}, {"a cloud's metadata, mapped to IPv6", "[::ffff:a9fe:a9fe]"}, {"private, in the old IPv6 form", "[::10.0.0.1]"},
		{"private, by NAT64", "[64:ff9b::a00:1]"}, {"private, by local NAT64", "[64:ff9b:1::a00:1]"}, {"private, by 6to4", "[2002:a00:1::1]"}, {"loopback, by 6to4", "[2002:7f00:1::1]"},
	}
	var out []internalProbe
	for _, h := range hosts {
		out = append(out, internalProbe{label: h.label, url: "https://" + h.host + "/hook"})
	}
	for _, scheme := range []string{"file:///etc/hostname", "ftp://127.0.0.2/hook", "gopher://127.0.0.2:70/hook", "unix:///run/hook.sock", "data:text/plain,hook"} {
		name, _, _ := strings.Cut(scheme, ":")
		out = append(out, internalProbe{label: "the scheme " + name, url: scheme})
	}
	return out
}
