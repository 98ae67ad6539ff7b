package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/benbjohnson/clock"

	"github.com/whconform/whconform/conformance/drive/adapter"
	"github.com/whconform/whconform/reference/receiver"
)

// referenceHooks is the reference as an adapter: what a test can ask of it that
// no delivery can. The zero value offers nothing.
type referenceHooks struct {
	where   string // stdio, or a path
	clock   *receiver.MovableClock
	methods adapter.Methods
}

// readHooks checks --hooks.
func (f *referenceFlags) readHooks() (*referenceHooks, error) {
	switch {
	case f.hooks == "":
		return &referenceHooks{}, nil
	case f.hooks != onStdio && !strings.HasPrefix(f.hooks, "/"):
		return nil, usagef("reading --hooks: write stdio, or a path such as /_hooks")
	}
	return &referenceHooks{where: f.hooks, clock: receiver.NewMovableClock(clock.New())}, nil
}

// time is the clock that the receiver and its inbox live by.
func (h *referenceHooks) time() clock.Clock {
	if h.clock == nil {
		return clock.New()
	}
	return h.clock
}

// offer makes the adapter of what the receiver can be asked.
func (h *referenceHooks) offer(name string, methods map[string]receiver.Method) {
	h.methods = adapter.Methods{}
	for method, does := range methods {
		h.methods[method] = does
	}
	h.methods[adapter.MethodInitialize] = adapter.Initialize(adapter.Initialized{Name: name, Version: version()}, h.methods, h.begin)
}

// begin sets the clock to the time that the run has come to.
func (h *referenceHooks) begin(ctx context.Context, p adapter.InitializeParams) error {
	advance := h.methods[adapter.MethodAdvance]
	if p.Now == nil || advance == nil || !p.Now.After(h.time().Now()) {
		return nil
	}
	to, err := json.Marshal(adapter.AdvanceParams{To: *p.Now})
	if err != nil {
		return fmt.Errorf("setting the clock: %w", err)
	}
	_, err = advance(ctx, to)
	return err
}

// beside serves the hooks at their path beside the receiver.
func (h *referenceHooks) beside(deliveries http.Handler) http.Handler {
	if !strings.HasPrefix(h.where, "/") {
		return deliveries
	}
	hooks := adapter.Handler(h.methods)
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == h.where {
			hooks.ServeHTTP(w, req)
			return
		}
		deliveries.ServeHTTP(w, req)
	})
}

// during runs the receiver, with the hooks on the standard streams where they
// are asked for: the end of those is the receiver's, too.
func (h *referenceHooks) during(ctx context.Context, a *app, run func(context.Context) error) error {
	if h.where != onStdio {
		return run(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	spoken := make(chan error, 1)
	go func() {
		defer cancel()
		spoken <- adapter.Serve(ctx, a.in, flushing{a.out}, h.methods)
	}()
	if err := run(ctx); err != nil {
		return err
	}
	if err := <-spoken; err != nil && !errors.Is(err, context.Canceled) {
		return brokenf("serving the hooks on the standard streams: %w", err)
	}
	return nil
}

// flushing holds nothing back: each write is a whole message.
type flushing struct{ *redactor }

func (f flushing) Write(b []byte) (int, error) {
	n, err := f.redactor.Write(b)
	if err == nil {
		err = f.Flush()
	}
	return n, err
}

var _ io.Writer = flushing{}
