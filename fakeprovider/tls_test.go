package fakeprovider_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/whconform/whconform/fakeprovider"
	"github.com/whconform/whconform/reference/wire"
)

// certificate makes a self-signed certificate for 127.0.0.1 or another name.
func certificate(t *testing.T, name string, until time.Time) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "whconform test"},
		NotBefore: until.Add(-48 * time.Hour), NotAfter: until,
		IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if ip := net.ParseIP(name); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{name}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// trust is a client configuration that trusts a certificate.
func trust(c tls.Certificate) *tls.Config {
	pool := x509.NewCertPool()
	pool.AddCert(c.Leaf)
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
}

// https starts a server that answers 204 over TLS.
func https(t *testing.T, config *tls.Config) string {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(204)
	}))
	server.TLS = config
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL
}

func TestSendSpeaksTLS(t *testing.T) {
	cert := certificate(t, "127.0.0.1", time.Now().Add(24*time.Hour))
	url := https(t, &tls.Config{Certificates: []tls.Certificate{cert}})
	f := newFixture(t, "standard-webhooks")
	config := trust(cert)
	for _, alter := range [][]fakeprovider.Alteration{nil, {fakeprovider.Chunked()}, {fakeprovider.Oversize(4 << 20)}, {fakeprovider.Expect100(), fakeprovider.HalfClose()}} {
		x := f.Send(t.Context(), fakeprovider.Target{URL: url, TLS: config}, f.draft(t, alter...), "")
		if !x.OK() {
			t.Errorf("got %q: %q", x.Fault, x.FaultDetail)
		}
	}
	if config.ServerName != "" || config.NextProtos != nil {
		t.Error("the caller's configuration was changed")
	}
}

func TestSendNamesTLSFaults(t *testing.T) {
	tomorrow, yesterday := time.Now().Add(24*time.Hour), time.Now().Add(-24*time.Hour)
	good := certificate(t, "127.0.0.1", tomorrow)
	expired := certificate(t, "127.0.0.1", yesterday)
	other := certificate(t, "example.com", tomorrow)
	plainHTTP := serve(t, func(c *net.TCPConn) {
		_, _ = c.Read(make([]byte, 1))
		_, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n")
		_ = c.CloseWrite()
		await(c)
	})
	cases := []struct {
		name   string
		url    string
		config *tls.Config
		fault  string
		detail string
	}{
		{"a self-signed certificate", https(t, &tls.Config{Certificates: []tls.Certificate{good}}), nil, wire.FaultTLS, "unknown authority"},
		{"an expired certificate", https(t, &tls.Config{Certificates: []tls.Certificate{expired}}), trust(expired), wire.FaultTLS, "expired"},
		{"a certificate for another host", https(t, &tls.Config{Certificates: []tls.Certificate{other}}), trust(other), wire.FaultTLS, "127.0.0.1"},
		{"a version that is too old", https(t, &tls.Config{Certificates: []tls.Certificate{good}, MaxVersion: tls.VersionTLS12}), &tls.Config{MinVersion: tls.VersionTLS13}, wire.FaultTLS, "protocol version"},
		{"a client certificate that is missing", https(t, &tls.Config{Certificates: []tls.Certificate{good}, ClientAuth: tls.RequireAnyClientCert}), trust(good), wire.FaultTLS, "certificate required"},
		{"plain HTTP spoken to https", strings.Replace(plainHTTP, "http:", "https:", 1), nil, wire.FaultTLS, "plain HTTP; is the URL http"},
		{"something else spoken to https", strings.Replace(serve(t, func(c *net.TCPConn) { _, _ = io.WriteString(c, "SSH-2.0-x\r\n"); await(c) }), "http:", "https:", 1), nil, wire.FaultTLS, "does not speak TLS"},
		{"a connection closed in the handshake", strings.Replace(serve(t, func(c *net.TCPConn) { _, _ = c.Read(make([]byte, 4096)) }), "http:", "https:", 1), nil, wire.FaultTLS, "TLS handshake"},
		{"a handshake that never ends", strings.Replace(serve(t, func(c *net.TCPConn) { await(c) }), "http:", "https:", 1), nil, wire.FaultTimeout, "not finished within 300ms"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, "standard-webhooks")
			to := fakeprovider.Target{URL: c.url, TLS: c.config}
			if c.fault == wire.FaultTimeout {
				to.Connect = 300 * time.Millisecond
			}
			x := f.Send(t.Context(), to, f.draft(t), "")
			if x.Fault != c.fault || !strings.Contains(x.FaultDetail, c.detail) {
				t.Errorf("got %q: %q; want %q with %q", x.Fault, x.FaultDetail, c.fault, c.detail)
			}
		})
	}
}

func TestSendSeesAnEarlyAnswerOverTLSWithoutWaitingToSayGoodbye(t *testing.T) {
	cert := certificate(t, "127.0.0.1", time.Now().Add(24*time.Hour))
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	hold := make(chan struct{})
	defer close(hold)
	go func() {
		c, err := listener.Accept()
		if err != nil {
			return
		}
		readHead(c)
		_, _ = io.WriteString(c, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n")
		<-hold // open, and reading nothing
		_ = c.Close()
	}()
	f := newFixture(t, "standard-webhooks")
	draft := f.draft(t, fakeprovider.Oversize(64<<20))
	began := time.Now()
	x := f.Send(t.Context(), fakeprovider.Target{URL: "https://" + listener.Addr().String(), TLS: trust(cert)}, draft, "")
	if x.Response == nil || x.Response.Status != 413 || x.Sent == 64<<20 {
		t.Errorf("got %+v, %q: %q, %d B sent", x.Response, x.Fault, x.FaultDetail, x.Sent)
	}
	// crypto/tls gives its goodbye 5 s.
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("took %v", took)
	}
}
