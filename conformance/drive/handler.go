package drive

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"

	"github.com/whconform/whconform/fakeprovider"
)

// HandlerConfig describes a receiver that runs in this process.
type HandlerConfig struct {
	// New makes the receiver for the given secrets, and the server around it,
	// whose limits are part of what is judged. An error means that it refuses
	// to start so. Required; see [Serve].
	New func(Secrets) (*http.Server, error)
	// Secrets are those that the first one is made with.
	Secrets Secrets
	// Path of the webhook endpoint; "" means "/".
	Path string
	// PublicName stands in the URL in place of the loopback address that is
	// connected to; "" for the address itself.
	PublicName string
	// Listener wraps the listener, e.g. to play a broken network. May be nil.
	Listener func(net.Listener) net.Listener
	// ServerTLS makes it an https endpoint; ClientTLS is what deliveries use.
	ServerTLS, ClientTLS *tls.Config
}

// Serve is a HandlerConfig.New for a handler that needs no secrets of the
// suite's, under a server without limits of its own.
func Serve(h http.Handler) func(Secrets) (*http.Server, error) {
	return func(Secrets) (*http.Server, error) { return &http.Server{Handler: h}, nil }
}

// Handler serves an http.Handler on a loopback port: a real socket, so that
// everything a receiver at a URL can be sent, it can be sent too.
func Handler(c HandlerConfig) (Receiver, error) {
	server, err := c.New(c.Secrets)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRefusedToStart, err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening for the receiver in this process: %w", err)
	}
	h := &handlerReceiver{config: c, server: server, done: make(chan struct{})}
	if server.ErrorLog == nil {
		server.ErrorLog = log.New(io.Discard, "", 0)
	}
	scheme := "http"
	address := listener.Addr().String()
	if c.Listener != nil {
		listener = c.Listener(listener)
	}
	if c.ServerTLS != nil {
		scheme = "https"
		listener = tls.NewListener(listener, c.ServerTLS)
	}
	path := c.Path
	if path == "" {
		path = "/"
	}
	h.target = fakeprovider.Target{URL: scheme + "://" + address + path, TLS: c.ClientTLS}
	if c.PublicName != "" {
		h.target.URL, h.target.Address = scheme+"://"+c.PublicName+path, address
	}
	go func() {
		defer close(h.done)
		h.err = h.server.Serve(listener)
	}()
	return h, nil
}

type handlerReceiver struct {
	Bare
	config HandlerConfig
	server *http.Server
	target fakeprovider.Target
	done   chan struct{}
	err    error
}

func (h *handlerReceiver) Has(capability string) bool { return capability == SecondConfiguration }

func (h *handlerReceiver) Target(int) fakeprovider.Target { return h.target }

func (h *handlerReceiver) Variant(_ context.Context, s Secrets) (Receiver, error) {
	c := h.config
	c.Secrets = s
	return Handler(c)
}

// Close drops open connections too: a handler that hangs must not hold the run.
func (h *handlerReceiver) Close(context.Context) error {
	err := h.server.Close()
	<-h.done
	if !errors.Is(h.err, http.ErrServerClosed) {
		err = errors.Join(err, h.err)
	}
	if err != nil {
		return fmt.Errorf("closing the receiver in this process: %w", err)
	}
	return nil
}
