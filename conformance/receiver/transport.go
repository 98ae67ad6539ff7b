package receiver

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/conformance/evidence"
)

// receiver.transport: what lies below HTTP.
func transportRules() []rule {
	return []rule{
		{id: httpsID, record: recordTLS, judge: judgeTLS},
		{
			id: httpsID + ".public", use: httpsID,
			judge: func(t *evidence.Transcript) []evidence.Finding {
				if t.Facts["scheme"] == "https" {
					return nil
				}
				return []evidence.Finding{{
					Sent: "the endpoint's URL", Expected: "https", Got: t.Facts["scheme"],
					Cause: "TLS ends nowhere, or at a proxy whose address was not registered.",
				}}
			},
		},
	}
}

const (
	httpsID = "receiver.transport.https"
	// handshakeTimeout bounds one TLS handshake: a far host on a slow line
	// needs three round trips.
	handshakeTimeout = 5 * time.Second
)

// recordTLS shakes hands twice: as a provider does, and with the versions that
// RFC 8996 forbids.
func recordTLS(s *session) {
	to := s.Subject.Target(0)
	u, err := url.Parse(to.URL)
	if err != nil {
		s.fail(fmt.Errorf("reading the target: %w", err))
		return
	}
	s.rec.Fact("scheme", u.Scheme)
	if u.Scheme != "https" {
		s.skip(httpsID, evidence.NotApplicable, "the endpoint is not https")
		if drive.Loopback(u.Hostname()) {
			s.skip(httpsID+".public", evidence.NotApplicable, "the endpoint is on loopback")
		}
		return
	}
	config := &tls.Config{}
	if to.TLS != nil {
		config = to.TLS.Clone()
	}
	config.InsecureSkipVerify = false
	config.MinVersion = tls.VersionTLS12
	if err := s.shake(u, to.Address, config); err != nil {
		s.rec.Fact("tls", err.Error())
	}
	old := config.Clone()
	old.InsecureSkipVerify = true // only the version is asked here
	old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	if err := s.shake(u, to.Address, old); err == nil {
		s.rec.Fact("tls old", "yes")
	}
}

// shake makes one handshake and closes the connection.
func (s *session) shake(u *url.URL, address string, config *tls.Config) error {
	if config.ServerName == "" {
		config.ServerName = u.Hostname()
	}
	if address == "" {
		port := u.Port()
		if port == "" {
			port = "443"
		}
		address = net.JoinHostPort(u.Hostname(), port)
	}
	ctx, cancel := context.WithTimeout(s.ctx, handshakeTimeout)
	defer cancel()
	dialer := tls.Dialer{Config: config}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}

func judgeTLS(t *evidence.Transcript) []evidence.Finding {
	var findings []evidence.Finding
	if wrong := t.Facts["tls"]; wrong != "" {
		findings = append(findings, evidence.Finding{
			Sent: "a handshake with TLS 1.2 or newer that verifies the certificate", Expected: "success", Got: wrong,
			Cause: "The certificate has expired, bears another name, lacks its intermediate, or is signed by an authority that providers do not know; or the server speaks old versions only.",
		})
	}
	if t.Facts["tls old"] != "" {
		findings = append(findings, evidence.Finding{
			Sent: "a handshake with TLS 1.0 and 1.1 only", Expected: "a refusal (RFC 8996)", Got: "it was accepted",
			Cause: "The lowest version of the server or load balancer was never raised.",
		})
	}
	return findings
}
