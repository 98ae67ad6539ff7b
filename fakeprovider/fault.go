package fakeprovider

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"syscall"

	"github.com/whconform/whconform/reference/wire"
)

// fault is one of the wire.Fault constants and a sentence about it.
type fault struct{ kind, detail string }

func faultf(kind, format string, args ...any) *fault {
	return &fault{kind, fmt.Sprintf(format, args...)}
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

func isReset(err error) bool   { return isErrno(err, syscall.ECONNRESET, windowsReset) }
func isRefused(err error) bool { return isErrno(err, syscall.ECONNREFUSED, windowsRefused) }

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}

// isAlert tells whether the peer ended TLS by an alert, as it does after the
// handshake when it misses a client certificate.
func isAlert(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && (op.Op == "remote error" || op.Op == "local error")
}

// connectFault says why there is no connection to addr.
func connectFault(ctx context.Context, addr *address, err error) *fault {
	var dns *net.DNSError
	switch what := "connecting to " + addr.hostPort; {
	case errors.Is(context.Cause(ctx), errConnectBound):
		return faultf(wire.FaultTimeout, "%s: no connection within %v", what, addr.connect)
	case ctx.Err() != nil:
		return faultf(wire.FaultTimeout, "%s: cancelled", what)
	case errors.As(err, &dns):
		return faultf(wire.FaultDNS, "resolving %q: %s", addr.host, dns.Err)
	case isRefused(err):
		return faultf(wire.FaultRefused, "%s: connection refused", what)
	case isReset(err):
		return faultf(wire.FaultReset, "%s: connection reset", what)
	case isTimeout(err):
		return faultf(wire.FaultTimeout, "%s: no connection", what)
	default:
		// No route, no permission: nobody listens there, as far as this
		// machine can tell.
		return faultf(wire.FaultRefused, "%s: %v", what, rootCause(err))
	}
}

// handshakeFault says why TLS did not come about.
func handshakeFault(ctx context.Context, addr *address, err error) *fault {
	var record tls.RecordHeaderError
	var verify *tls.CertificateVerificationError
	switch what := "TLS handshake with " + addr.hostPort; {
	case errors.Is(context.Cause(ctx), errConnectBound):
		return faultf(wire.FaultTimeout, "%s: not finished within %v", what, addr.connect)
	case ctx.Err() != nil:
		return faultf(wire.FaultTimeout, "%s: cancelled", what)
	case errors.As(err, &record) && string(record.RecordHeader[:]) == "HTTP/":
		return faultf(wire.FaultTLS, "%s: the server answered in plain HTTP; is the URL http, not https?", what)
	case errors.As(err, &record):
		return faultf(wire.FaultTLS, "%s: the server does not speak TLS", what)
	case errors.As(err, &verify):
		return faultf(wire.FaultTLS, "%s: the certificate does not verify: %s", what, certificateDetail(verify.Err))
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return faultf(wire.FaultTLS, "%s: the server closed the connection", what)
	case isReset(err):
		return faultf(wire.FaultTLS, "%s: the server reset the connection", what)
	default:
		return faultf(wire.FaultTLS, "%s: %v", what, err)
	}
}

func certificateDetail(err error) string {
	var unknown x509.UnknownAuthorityError
	if errors.As(err, &unknown) {
		return "signed by an unknown authority (self-signed, or an intermediate certificate is missing)"
	}
	return err.Error()
}

// rootCause is the innermost error, without the addresses that the outer ones
// repeat.
func rootCause(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

// classify says why no answer came: read is what ended the reading, write what
// ended the writing, if anything did.
func (e *exchange) classify(ctx context.Context, read, write error) *fault {
	var garbage *notHTTP
	var source *sourceError
	sent := fmt.Sprintf("after %d B of the body", e.x.Sent)
	switch {
	case errors.As(read, &garbage):
		return faultf(wire.FaultNotHTTP, "reading the answer: %s", garbage.detail)
	case errors.As(write, &source):
		return faultf(wire.FaultClosed, "reading the body to send, %s: %v", sent, source.err)
	case errors.Is(context.Cause(ctx), errBound):
		return faultf(wire.FaultTimeout, "waiting for the answer, %s: none within %v", sent, e.answer)
	case ctx.Err() != nil:
		return faultf(wire.FaultTimeout, "waiting for the answer, %s: cancelled", sent)
	case isAlert(read):
		return faultf(wire.FaultTLS, "waiting for the answer, %s: %v", sent, read)
	// The kernel tells a reset once, to the side that asks first; the other
	// sees the connection's end. A write that fails because of an earlier,
	// orderly end of the peer's side is EPIPE, not this.
	case isReset(read), isReset(write):
		return faultf(wire.FaultReset, "waiting for the answer, %s: the connection was reset", sent)
	case errors.Is(read, io.ErrUnexpectedEOF):
		return faultf(wire.FaultClosed, "reading the answer's head, %s: the connection was closed inside it", sent)
	case errors.Is(read, io.EOF):
		return faultf(wire.FaultClosed, "waiting for the answer, %s: the connection was closed", sent)
	case isTimeout(read):
		return faultf(wire.FaultTimeout, "waiting for the answer, %s: %v", sent, rootCause(read))
	}
	return faultf(wire.FaultClosed, "waiting for the answer, %s: %v", sent, rootCause(read))
}
