package mutant

import (
	"net/url"
	"strings"

	"github.com/whconform/whconform/reference/sender"
)

// ssrfSenders break sender.ssrf.*.
func ssrfSenders() []SenderMutant {
	const internal, resolves = "sender.ssrf.refuses-internal", "sender.ssrf.resolves-at-send"
	return []SenderMutant{
		{
			Name: "takes-http", Doc: "The exception for http in test environments holds everywhere.",
			Fails: []string{"sender.ssrf.https-only"},
			Change: func(o *sender.Options) {
				guard := o.Guard
				o.Faults.URL = func(text string, refusal error) error {
					if plain, ok := strings.CutPrefix(strings.ToLower(text), "http://"); ok && refusal != nil {
						return guard.CheckURL("https://" + plain)
					}
					return refusal
				}
			},
		},
		{
			Name: "compares-hosts-as-text", Doc: "Internal hosts are found by comparing text, and connections are not looked at.",
			Fails: []string{internal, resolves},
			Change: together(connectingAnywhere, func(o *sender.Options) {
				o.Faults.URL = func(text string, refusal error) error {
					if refusal == nil || looksInternal(text) {
						return refusal
					}
					return nil
				}
			}),
		},
		{
			Name: "literal-addresses-only", Doc: "Addresses in a URL are checked in every spelling, and those that a name resolves to are not.",
			Fails: []string{resolves}, Needs: []string{Names},
			Change: connectingAnywhere,
		},
	}
}

// connectingAnywhere leaves out the check of the address that is connected to.
func connectingAnywhere(o *sender.Options) {
	network(func(t *sender.TransportOptions) { t.Faults.Address = func(error) error { return nil } })(o)
}

// looksInternal finds the usual spellings of internal addresses.
func looksInternal(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" {
		return true
	}
	for _, prefix := range []string{"127.0.0.1", "10.", "172.16.", "192.168.", "169.254.", "0.0.0.0", "localhost", "::1", "fd", "fe80:"} {
		if strings.HasPrefix(u.Hostname(), prefix) {
			return true
		}
	}
	return false
}
