package sender

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"syscall"

	"github.com/whconform/whconform/reference/wire"
)

// handshakeError tells that TLS did not come about.
type handshakeError struct{ err error }

func (e *handshakeError) Error() string { return "TLS handshake: " + e.err.Error() }
func (e *handshakeError) Unwrap() error { return e.err }

// fault says why an attempt got no answer. The words are for the delivery log,
// where the owner of an endpoint reads them, so they say what the sender met and
// hold neither the URL nor a header.
func fault(ctx context.Context, r Request, err error) Result {
	failed := func(kind, format string, args ...any) Result {
		return Result{Fault: kind, Err: fmt.Errorf(format, args...)}
	}
	var (
		refused *RefusedError
		dns     *net.DNSError
		shake   *handshakeError
	)
	switch cause := context.Cause(ctx); {
	case errors.As(err, &refused):
		return failed(FaultForbidden, "not connected: %w", refused)
	case errors.Is(cause, errConnectTimeout):
		return failed(wire.FaultTimeout, "no connection within %v", r.ConnectTimeout)
	case errors.Is(cause, errTimeout):
		return failed(wire.FaultTimeout, "no answer within %v", r.Timeout)
	case cause != nil:
		return failed(wire.FaultTimeout, "the attempt was cut short: %w", cause)
	case errors.As(err, &dns):
		return failed(wire.FaultDNS, "the host's name does not resolve: %s", dns.Err)
	case errors.As(err, &shake):
		return failed(wire.FaultTLS, "TLS handshake: %s", handshakeDetail(shake.err))
	case isErrno(err, syscall.ECONNREFUSED, windowsRefused):
		return failed(wire.FaultRefused, "the connection was refused")
	case isDial(err):
		return failed(wire.FaultRefused, "no connection: %w", innermost(err))
	case isErrno(err, syscall.ECONNRESET, windowsReset), isErrno(err, syscall.EPIPE, windowsReset):
		return failed(wire.FaultReset, "the connection was reset")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		strings.Contains(err.Error(), "server closed"):
		return failed(wire.FaultClosed, "the connection was closed without a whole answer")
	}
	return failed(wire.FaultNotHTTP, "no HTTP answer: %s", printable(innermost(err).Error()))
}

// The error numbers of Windows' sockets, which package syscall does not map to
// its portable names.
const (
	windowsReset   = syscall.Errno(10054)
	windowsRefused = syscall.Errno(10061)
)

func isErrno(err error, portable, windows syscall.Errno) bool {
	return errors.Is(err, portable) || runtime.GOOS == "windows" && errors.Is(err, windows)
}

func isDial(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

func handshakeDetail(err error) string {
	var (
		record  tls.RecordHeaderError
		verify  *tls.CertificateVerificationError
		unknown x509.UnknownAuthorityError
	)
	switch {
	case errors.As(err, &record):
		return "the server does not speak TLS"
	case errors.As(err, &unknown):
		return "the certificate is signed by an unknown authority"
	case errors.As(err, &verify):
		return "the certificate does not verify: " + printable(verify.Err.Error())
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the server closed the connection"
	case isErrno(err, syscall.ECONNRESET, windowsReset):
		return "the server reset the connection"
	}
	return printable(err.Error())
}

// innermost is the error without the addresses that the outer ones repeat.
func innermost(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

// printable is an error's text, in which a stranger's bytes may stand, in one
// line of bounded length.
func printable(text string) string {
	const most = 200
	if len(text) > most {
		text = text[:most] + "…"
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "�"))
}
