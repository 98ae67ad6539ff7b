package fakeendpoint

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
	"time"
)

// Certificate names what a port shows to those who speak TLS to it.
type Certificate string

// The certificates. All but the self-signed one are signed by [Server.CA].
const (
	PlainHTTP  Certificate = ""            // no TLS
	Good       Certificate = "good"        // for localhost, the loopback addresses and Config.Hosts
	Expired    Certificate = "expired"     // since yesterday
	WrongHost  Certificate = "wrong-host"  // for wrong-host.invalid
	SelfSigned Certificate = "self-signed" // for the right hosts, signed by itself
)

func (c Certificate) known() bool {
	switch c {
	case PlainHTTP, Good, Expired, WrongHost, SelfSigned:
		return true
	}
	return false
}

// certificate is the one that a step about TLS shows.
func (k Kind) certificate() Certificate {
	if k.isTLS() {
		return Certificate(k)
	}
	return Good
}

// authority is a CA with the certificates it signed.
type authority struct {
	root  *x509.Certificate
	certs map[Certificate]*tls.Certificate
}

// validity is how long certificates are good: a run lasts less, also one that
// moves its clock by a schedule of days, and the key is gone when it ends.
const validity = 90 * 24 * time.Hour

// newAuthority makes a CA and its certificates. They are good at now, which may
// be virtual, and at the real time as well: clients check by either.
func newAuthority(now time.Time, hosts []string) (*authority, error) {
	real := time.Now()
	from, until := real, real
	if now.Before(from) {
		from = now
	}
	if now.After(until) {
		until = now
	}
	span := [2]time.Time{from.Add(-time.Hour), until.Add(validity)}
	past := [2]time.Time{from.Add(-validity), from.Add(-24 * time.Hour)}

	root, rootKey, err := makeCertificate(&x509.Certificate{
		Subject: pkix.Name{CommonName: "whconform fake endpoint, for tests only"}, IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign,
	}, [2]time.Time{past[0], until.Add(validity)}, nil, nil)
	if err != nil {
		return nil, err
	}
	a := &authority{root: root, certs: map[Certificate]*tls.Certificate{}}
	right := append([]string{"localhost", "127.0.0.1", "::1"}, hosts...)
	for _, c := range []struct {
		name  Certificate
		span  [2]time.Time
		hosts []string
		by    *x509.Certificate
	}{
		{Good, span, right, root},
		{Expired, past, right, root},
		{WrongHost, span, []string{"wrong-host.invalid"}, root},
		{SelfSigned, span, right, nil},
	} {
		template := &x509.Certificate{
			Subject:  pkix.Name{CommonName: "whconform fake endpoint, " + string(c.name)},
			KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		}
		addHosts(template, c.hosts)
		leaf, key, err := makeCertificate(template, c.span, c.by, rootKey)
		if err != nil {
			return nil, err
		}
		a.certs[c.name] = &tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key, Leaf: leaf}
	}
	return a, nil
}

func addHosts(template *x509.Certificate, hosts []string) {
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
}

// makeCertificate makes a key and a certificate for it, signed by another one
// or, where that is nil, by itself.
func makeCertificate(template *x509.Certificate, span [2]time.Time, by *x509.Certificate, byKey *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("making a key: %w", err)
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return nil, nil, fmt.Errorf("making a serial number: %w", err)
	}
	template.NotBefore, template.NotAfter = span[0], span[1]
	if by == nil {
		by, byKey = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by, key.Public(), byKey)
	if err != nil {
		return nil, nil, fmt.Errorf("signing a certificate: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	return cert, key, err
}

// serverTLS is a port's configuration. choose says what each handshake shows.
// HTTP/2 is not offered, and no session is resumed: each connection sees a
// certificate.
func (a *authority) serverTLS(choose func() Certificate) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, SessionTicketsDisabled: true,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return a.certs[choose()], nil },
	}
}
