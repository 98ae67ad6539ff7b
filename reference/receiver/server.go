package receiver

import (
	"crypto/tls"
	"net/http"
	"time"
)

// The limits of [HTTPServer], for what happens before a handler is asked.
const (
	// readHeaderTimeout ends a connection that sends its headers a byte at a
	// time. A provider sends them in one packet.
	readHeaderTimeout = 10 * time.Second

	// maxHeaderBytes answers 431 to anything larger, 64 KiB: a thousand
	// signatures fit, which is fifty times what a rotation needs.
	maxHeaderBytes = 64 << 10

	// writeTimeout counts from the end of the request's headers, so it must
	// leave room for the slowest body and the wait for a slot. It is for peers
	// that never read the answer.
	writeTimeout = 90 * time.Second

	// idleTimeout keeps a provider's connection between two events, which saves
	// it the TLS handshake; longer than the 90 s after which common clients
	// close theirs, so that no request meets a connection closing under it.
	idleTimeout = 2 * time.Minute
)

// HTTPServer returns a server for h with the limits that net/http leaves open:
// time for the headers, their size, idle connections, TLS 1.2 or newer. The
// time a body may take is the handler's business, since only a handler can
// answer before the connection ends (Config.BodyTimeout).
//
// The caller owns the server: Addr, ErrorLog, serving and Shutdown.
func HTTPServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: readHeaderTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		TLSConfig:         &tls.Config{MinVersion: tls.VersionTLS12},
	}
}
