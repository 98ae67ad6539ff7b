package mutant

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"sync"
	"time"
)

// transportMutants break receiver.transport.*: the reference over a TLS that
// providers must not accept.
func transportMutants() []Mutant {
	const https = "receiver.transport.https"
	return []Mutant{
		{
			Name: "speaks-old-tls", Doc: "It speaks TLS 1.0 and 1.1 too.",
			Fails: []string{https}, Needs: []string{HTTPS}, New: reference(),
			TLS: func(c *tls.Config) { c.MinVersion = tls.VersionTLS10 },
		},
		{
			Name: "is-public-without-tls", Doc: "Its public address is http.",
			Fails: []string{https + ".public"}, Needs: []string{PublicName}, New: reference(),
		},
		{
			Name: "has-an-expired-certificate", Doc: "Its certificate has expired.",
			Fails: []string{https}, Needs: []string{HTTPS, Insecure}, New: reference(),
			TLS: func(c *tls.Config) {
				c.Certificates = nil
				c.GetCertificate = expired()
			},
		},
	}
}

// expired makes a certificate for loopback that was valid until an hour ago,
// when it is first asked for.
func expired() func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	certificate := sync.OnceValues(func() (*tls.Certificate, error) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return nil, fmt.Errorf("making a key: %w", err)
		}
		end := time.Now().Add(-time.Hour)
		template := &x509.Certificate{
			SerialNumber: big.NewInt(1),
			Subject:      pkix.Name{CommonName: "whconform mutant"},
			NotBefore:    end.AddDate(0, -3, 0), NotAfter: end,
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
			DNSNames:    []string{"localhost"},
		}
		der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
		if err != nil {
			return nil, fmt.Errorf("making a certificate: %w", err)
		}
		return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
	})
	return func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return certificate() }
}
