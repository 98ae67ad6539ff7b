package fakeprovider

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"
)

// address is a target's URL, taken apart.
type address struct {
	https    bool
	host     string // without port, without brackets
	hostPort string // to dial
	header   string // the Host header
	target   string // of the request line
	user     *url.Userinfo
	connect  time.Duration
}

// Check tells what is wrong with a target before anything is sent: a URL that
// does not parse, is not http or https, or has no host.
func (t Target) Check() error {
	_, err := parseTarget(t)
	return err
}

func parseTarget(t Target) (*address, error) {
	u, err := url.Parse(t.URL)
	if err != nil {
		// url.Error repeats the URL, and with it a password that stands in it.
		var parse *url.Error
		if errors.As(err, &parse) {
			err = parse.Err
		}
		return nil, fmt.Errorf("reading the target's URL: %w", err)
	}
	a := &address{https: u.Scheme == "https", host: u.Hostname(), header: u.Host, target: u.RequestURI(), user: u.User, connect: t.Connect}
	if u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("reading the target's URL: its scheme is %q, want http or https", u.Scheme)
	}
	if a.host == "" {
		return nil, errors.New("reading the target's URL: it names no host")
	}
	port := u.Port()
	switch {
	case port != "":
	case a.https:
		port = "443"
	default:
		port = "80"
	}
	a.hostPort = net.JoinHostPort(a.host, port)
	if t.Address != "" {
		if _, _, err := net.SplitHostPort(t.Address); err != nil {
			return nil, fmt.Errorf("reading the address to connect to: %w", err)
		}
		a.hostPort = t.Address
	}
	if a.connect <= 0 {
		a.connect = ConnectTimeout
	}
	return a, nil
}

// errConnectBound is the cause of a connection that was given up at its bound.
var errConnectBound = errors.New("connecting took too long")

// connect dials and, for https, shakes hands.
func connect(ctx context.Context, a *address, to Target) (net.Conn, *fault) {
	ctx, cancel := context.WithTimeoutCause(ctx, a.connect, errConnectBound)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", a.hostPort)
	if err != nil {
		return nil, connectFault(ctx, a, err)
	}
	if !a.https {
		return conn, nil
	}
	config := to.TLS.Clone()
	if config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if config.ServerName == "" {
		config.ServerName = a.host
	}
	if len(config.NextProtos) == 0 {
		config.NextProtos = []string{"http/1.1"}
	}
	secure := tls.Client(conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, handshakeFault(ctx, a, err)
	}
	return secure, nil
}
