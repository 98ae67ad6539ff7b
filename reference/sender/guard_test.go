package sender

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

func newGuard(t testing.TB, allow ...string) *Guard {
	t.Helper()
	g, err := NewGuard(allow...)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestAnEndpointMayBeAnywhereOnThePublicInternet(t *testing.T) {
	g := newGuard(t)
	for _, text := range []string{
		"https://example.com/hooks", "https://example.com", "https://EXAMPLE.com:8443/a?b=c%20d",
		"https://hooks.shop-1.example.co.uk/x/%E2%82%AC", "https://xn--bcher-kva.example/", "https://a_b.example.com/",
		"https://8.8.8.8/hooks", "https://[2606:4700:4700::1111]:443/", "https://1.example.com/",
	} {
		if err := g.CheckURL(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestAnEndpointMustNotLeadInside(t *testing.T) {
	g := newGuard(t)
	for _, c := range []struct{ url, why string }{
		{"http://example.com/", "https only"},
		{"ftp://example.com/", `scheme "ftp"`},
		{"file:///etc/passwd", `scheme "file"`},
		{"gopher://example.com:25/", `scheme "gopher"`},
		{"javascript:alert(1)", `scheme "javascript"`},
		{"//example.com/", "not absolute"},
		{"example.com/hooks", "not absolute"},
		{"", "not absolute"},
		{"https:///hooks", "no host"},
		{"https:example.com", "no host"},
		{"https://:443/", "no host"},

		{"https://127.0.0.1/", "loopback"},
		{"https://127.1.2.3:8443/", "loopback"},
		{"https://0.0.0.0/", "this network"},
		{"https://10.0.0.1/", "private"},
		{"https://172.16.0.1/", "private"},
		{"https://172.31.255.255/", "private"},
		{"https://192.168.1.1/", "private"},
		{"https://100.64.0.1/", "carrier"},
		{"https://169.254.1.1/", "link-local"},
		{"https://169.254.169.254/latest/meta-data/", "metadata"},
		{"https://168.63.129.16/", "metadata"},
		{"https://100.100.100.200/", "metadata"},
		{"https://192.0.0.192/", "metadata"},
		{"https://192.0.2.1/", "documentation"},
		{"https://198.18.0.1/", "benchmarks"},
		{"https://224.0.0.1/", "multicast"},
		{"https://239.255.255.250/", "multicast"},
		{"https://240.0.0.1/", "reserved"},
		{"https://255.255.255.255/", "broadcast"},

		{"https://[::1]/", "loopback"},
		{"https://[::]/", "unspecified"},
		{"https://[0:0:0:0:0:0:0:1]/", "loopback"},
		{"https://[fe80::1]/", "link-local"},
		{"https://[fd00::1]/", "private"},
		{"https://[fd00:ec2::254]/", "metadata"},
		{"https://[fec0::1]/", "site-local"},
		{"https://[ff02::1]/", "multicast"},
		{"https://[2001:db8::1]/", "documentation"},
		{"https://[100::1]/", "black hole"},
		{"https://[4000::1]/", "public internet"},
		{"https://[::ffff:127.0.0.1]/", "127.0.0.1 (loopback)"},
		{"https://[::ffff:a9fe:a9fe]/", "169.254.169.254 (the metadata"},
		{"https://[::ffff:8.8.8.8]/", "to be written as it is"},
		{"https://[::127.0.0.1]/", "127.0.0.1 (loopback)"},
		{"https://[64:ff9b::10.0.0.1]/", "NAT64 form of 10.0.0.1 (private)"},
		{"https://[64:ff9b:1::10.0.0.1]/", "NAT64 form of 10.0.0.1 (private)"},
		{"https://[2002:7f00:1::]/", "6to4 form of 127.0.0.1 (loopback)"},
		{"https://[2001:0:1::1]/", "public internet"},
		{"https://[2606:4700::5efe:10.0.0.1]/", "ISATAP"},
		{"https://[2606:4700::200:5efe:10.0.0.1]/", "ISATAP"},
		{"https://[fe80::1%25eth0]/", "zone"},
		{"https://[::1%25lo]/", "zone"},

		{"https://2130706433/", "unusual spelling"},
		{"https://0x7f000001/", "unusual spelling"},
		{"https://0x7F.1/", "unusual spelling"},
		{"https://017700000001/", "unusual spelling"},
		{"https://0177.0.0.1/", "unusual spelling"},
		{"https://127.1/", "unusual spelling"},
		{"https://127.0.1/", "unusual spelling"},
		{"https://127.0.0.01/", "unusual spelling"},
		{"https://1.2.3.4.5/", "unusual spelling"},
		{"https://example.0x/", "unusual spelling"},
		{"https://127.0.0.1./", "ends in a full stop"},
		{"https://127.0.0.1:80.example.com/", "well formed"},
		{"https://１２７.0.0.1/", "not ASCII"},
		{"https://127。0。0。1/", "not ASCII"},
		{"https://%31%32%37.0.0.1/", "well formed"},
		{"https://[127.0.0.1]/", "well formed"},

		{"https://localhost/", "this machine"},
		{"https://LOCALHOST/", "this machine"},
		{"https://a.localhost/", "this machine"},
		{"https://localhost./", "ends in a full stop"},
		{"https://localhost.localdomain/", "this machine"},
		{"https://ip6-localhost/", "this machine"},
		{"https://intranet/", "no full stop"},
		{"https://metadata.google.internal/", "internal network"},
		{"https://printer.local/", "internal network"},
		{"https://nas.home.arpa/", "internal network"},
		{"https://1.0.0.127.in-addr.arpa/", "no name of a web server"},
		{"https://example.com./", "ends in a full stop"},

		{"https://example.com@127.0.0.1/", "user name"},
		{"https://user:pass@example.com/", "user name"},
		{"https://127.0.0.1#@example.com/", "fragment"},
		{"https://127.0.0.1#", "fragment"},
		{`https://127.0.0.1\@example.com/`, "backslash"},
		{"https://example.com:0/", "port"},
		{"https://example.com:/", "port"},
		{"https://example.com:65536/", "port"},
		{"https://example.com:0443/", "port"},
		{"https://example.com:http/", "well formed"},
		{"https://exa mple.com/", "blank"},
		{"https://example.com/\r\nHost: x", "blank"},
		{"https://example.com/é", "not ASCII"},
		{"https://-a.example.com/", "well formed"},
		{"https://a..example.com/", "well formed"},
		{"https://" + strings.Repeat("a", 64) + ".com/", "well formed"},
		{"https://" + strings.Repeat("a.", 130) + "com/", "longer"},
		{"https://example.com/" + strings.Repeat("a", maxURL), "bytes"},
	} {
		err := g.CheckURL(c.url)
		if _, ok := errors.AsType[*RefusedError](err); !ok {
			t.Errorf("%.100s: %v, want a refusal", c.url, err)
		} else if !strings.Contains(err.Error(), c.why) {
			t.Errorf("%.100s: %q, want it to say %q", c.url, err, c.why)
		}
	}
}

func TestARefusalHoldsNoTokenOfTheURL(t *testing.T) {
	g := newGuard(t)
	for _, text := range []string{"http://example.com/tok3n", "https://u:tok3n@example.com/", "https://exa%mple.com/tok3n", "https://10.0.0.1/?k=tok3n"} {
		if err := g.CheckURL(text); err == nil || strings.Contains(err.Error(), "tok3n") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestOnlyLoopbackCanBeAllowed(t *testing.T) {
	for _, text := range []string{"10.0.0.1", "169.254.169.254:80", "::ffff:127.0.0.1", "fe80::1%lo", "127.1", "2130706433", "", "a b", "127.0.0.1:x", "127.0.0.1:0", "http://127.0.0.1", "[::1"} {
		if _, err := NewGuard(text); err == nil {
			t.Errorf("allowing %q is no error", text)
		}
	}
}

func TestAnAllowedHostIsThatHostAlone(t *testing.T) {
	g := newGuard(t, "127.0.0.1:8080", "[::1]", "localhost", "Hooks.Test:9000")
	for text, want := range map[string]bool{
		"http://127.0.0.1:8080/a":       true,
		"https://127.0.0.1:8080/a":      true,
		"http://127.0.0.1:8081/":        false,
		"http://127.0.0.1/":             false,
		"http://127.0.0.2:8080/":        false,
		"http://127.1:8080/":            false,
		"http://[::1]:1/":               true,
		"http://[0::1]/":                false, // another spelling
		"http://localhost:1/":           true,
		"http://localhost.:1/":          false,
		"http://hooks.test:9000/":       true,
		"http://hooks.test/":            false,
		"https://hooks.test/":           true, // a public name as far as anybody knows
		"http://u@127.0.0.1:8080/":      false,
		"ftp://127.0.0.1:8080/":         false,
		"http://127.0.0.1:8080@a.com/":  false,
		"http://127.0.0.1:8080#@a.com/": false,
	} {
		if err := g.CheckURL(text); (err == nil) != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestAConnectionIsCheckedByTheAddressItGoesTo(t *testing.T) {
	g := newGuard(t, "127.0.0.1:8080", "hooks.test")
	for _, c := range []struct {
		named, network, address string
		want                    bool
	}{
		{"example.com:443", "tcp4", "93.184.216.34:443", true},
		{"example.com:443", "tcp6", "[2606:4700::1]:443", true},
		{"example.com:443", "tcp4", "127.0.0.1:443", false},
		{"example.com:8080", "tcp4", "127.0.0.1:8080", false}, // the address was allowed, the name was not
		{"example.com:443", "tcp4", "10.0.0.1:443", false},
		{"example.com:443", "tcp6", "[::1]:443", false},
		{"example.com:443", "tcp6", "[::ffff:10.0.0.1]:443", false},
		{"example.com:443", "tcp6", "[fe80::1%eth0]:443", false},
		{"example.com:443", "udp4", "93.184.216.34:443", false},
		{"example.com:443", "tcp4", "nonsense", false},
		{"127.0.0.1:8080", "tcp4", "127.0.0.1:8080", true},
		{"127.0.0.1:8081", "tcp4", "127.0.0.1:8081", false},
		{"hooks.test:1", "tcp4", "127.0.0.1:1", true},
		{"hooks.test.:1", "tcp6", "[::1]:1", true},
		{"hooks.test:1", "tcp4", "10.0.0.1:1", false}, // loopback alone was allowed
		{"nonsense", "tcp4", "127.0.0.1:1", false},
	} {
		if err := g.Control(c.named)(c.network, c.address, nil); (err == nil) != c.want {
			t.Errorf("%s at %s %s: %v", c.named, c.network, c.address, err)
		}
	}
}

func TestTheNamesOfRangesAreThoseOfRefusedAddresses(t *testing.T) {
	rules := newAddressRules()
	for _, r := range ranges() {
		if rules.refuse(r.prefix.Addr()) == "" {
			t.Errorf("%s is called %q and not refused", r.prefix, r.what)
		}
	}
}

// FuzzAnAcceptedURLHasOneReading holds for whatever is accepted: net/http calls
// the host that was checked, and that host is public.
func FuzzAnAcceptedURLHasOneReading(f *testing.F) {
	for _, seed := range []string{
		"https://example.com/a?b=c", "https://127.0.0.1/", "https://[::1]:80/", "https://a@b/", "https://0x7f.1/",
		`https://a\@b`, "https://a:80:80/", "https://%6c/", "HTTPS://a.b", "https://[::1%25lo]/", "https://a.b;c/", "https://a.b?@c",
	} {
		f.Add(seed)
	}
	g, err := NewGuard()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if g.CheckURL(text) != nil {
			return
		}
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "https" || u.User != nil {
			t.Fatalf("%q is accepted: %v, %v", text, u, err)
		}
		// The authority is what stands between // and the next of /?#, for every
		// parser there is.
		rest := text[strings.Index(text, "//")+2:]
		if i := strings.IndexAny(rest, `/?#\`); i >= 0 {
			rest = rest[:i]
		}
		if rest != u.Host {
			t.Fatalf("%q: the authority is %q, net/url says %q", text, rest, u.Host)
		}
		host := strings.ToLower(u.Hostname())
		if addr, err := netip.ParseAddr(host); err == nil {
			if !addr.IsGlobalUnicast() || addr.IsPrivate() || addr.IsLoopback() {
				t.Fatalf("%q is accepted", text)
			}
		} else if ip := net.ParseIP(host); ip != nil || !strings.Contains(host, ".") {
			t.Fatalf("%q is accepted: %v", text, ip)
		}
	})
}
