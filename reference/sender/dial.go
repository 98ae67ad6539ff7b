package sender

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"syscall"
)

// dialer connects to endpoints.
type dialer struct {
	guard       *Guard
	resolver    *net.Resolver
	authorities *x509.CertPool // nil: the system's
	faults      TransportFaults
}

// resolver asks one name server, or the system's.
func resolver(server string) *net.Resolver {
	if server == "" {
		return net.DefaultResolver
	}
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, server)
	}}
}

type attemptKey struct{}

// withAttempt lets dialling end with the attempt that it is for: net/http goes
// on with it in the background, for whom it may concern, and would connect to an
// endpoint that nobody calls any more.
func withAttempt(ctx, attempt context.Context) context.Context {
	return context.WithValue(ctx, attemptKey{}, attempt)
}

// bounded is ctx, ended with its attempt.
func bounded(ctx context.Context) (context.Context, func()) {
	attempt, ok := ctx.Value(attemptKey{}).(context.Context)
	if !ok {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(attempt, func() { cancel(context.Cause(attempt)) })
	return ctx, func() { stop(); cancel(nil) }
}

func (d dialer) dial(ctx context.Context, network, hostPort string) (net.Conn, error) {
	ctx, done := bounded(ctx)
	defer done()
	return d.connect(ctx, network, hostPort)
}

// connect resolves the name and connects to an address of it, each of which the
// guard sees first. There is no second look-up between check and connection.
func (d dialer) connect(ctx context.Context, network, hostPort string) (net.Conn, error) {
	to := net.Dialer{Resolver: d.resolver, Control: d.guard.Control(hostPort)}
	if right := to.Control; d.faults.Address != nil {
		to.Control = func(network, address string, c syscall.RawConn) error {
			return d.faults.Address(right(network, address, c))
		}
	}
	return to.DialContext(ctx, network, absolute(hostPort))
}

func (d dialer) dialTLS(ctx context.Context, network, hostPort string) (net.Conn, error) {
	ctx, done := bounded(ctx)
	defer done()
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		return nil, fmt.Errorf("reading the address %q: %w", hostPort, err)
	}
	conn, err := d.connect(ctx, network, hostPort)
	if err != nil {
		return nil, err
	}
	secure := tls.Client(conn, &tls.Config{ServerName: host, RootCAs: d.authorities, MinVersion: tls.VersionTLS12, InsecureSkipVerify: d.faults.AnyCertificate})
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, &handshakeError{err}
	}
	return secure, nil
}

// absolute ends a name with a full stop, so that a resolver does not try it
// with the domains of this machine behind it.
func absolute(hostPort string) string {
	host, port, err := net.SplitHostPort(hostPort)
	if err != nil || refuseName(host) != "" {
		return hostPort // an address, or a name of this machine
	}
	return net.JoinHostPort(host+".", port)
}
