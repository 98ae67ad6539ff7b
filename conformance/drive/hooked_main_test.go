package drive

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/whconform/whconform/conformance/drive/adapter"
)

// speak plays a command that speaks the adapter protocol, or means to. It
// returns its exit code.
func speak(role string) int {
	switch role {
	case roleDeafInput:
		term := make(chan os.Signal, 1)
		signal.Notify(term, syscall.SIGTERM)
		<-term
		return 0
	case roleBanner:
		fmt.Println("Shop is listening, secret", os.Getenv("WEBHOOK_SECRET"))
		// More than a pipe holds: whoever stops reading stops the receiver.
		for n := range 5000 {
			fmt.Println("log line", n, strings.Repeat("x", 40))
		}
		fmt.Println("all is logged")
		_, _ = io.Copy(io.Discard, os.Stdin)
		return 0
	case roleBreaks:
		line := bufio.NewReader(os.Stdin)
		for {
			request, err := line.ReadString('\n')
			switch {
			case err != nil:
				return 0
			case strings.Contains(request, adapter.MethodInitialize):
				fmt.Println(`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"name":"shop","version":"","capabilities":["receiver.failOnce"]}}`)
			default:
				fmt.Println("panic: no such table")
			}
		}
	}
	signal.Ignore(syscall.SIGTERM) // the end of its input is enough
	if err := adapter.Serve(context.Background(), os.Stdin, os.Stdout, shop(os.Getenv("WHCONFORM_STATE_DIR"))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Fprintln(os.Stderr, "ending with its input")
	return 0
}

// shop are the methods of a receiver that remembers what it was asked to do. Its
// state is what it remembers.
func shop(dir string) adapter.Methods {
	var mu sync.Mutex
	var failing []string
	var ahead time.Duration
	methods := adapter.Methods{
		adapter.MethodProcessed: adapter.Func(func(_ context.Context, p adapter.ProcessedParams) (adapter.Processed, error) {
			return adapter.Processed{Processed: len(p.ID)}, nil
		}),
		adapter.MethodFailOnce: adapter.Func(func(_ context.Context, p adapter.FailOnceParams) (any, error) {
			mu.Lock()
			defer mu.Unlock()
			failing = append(failing, p.ID)
			return nil, nil
		}),
		adapter.MethodState: adapter.Func(func(_ context.Context, p adapter.StateParams) (adapter.State, error) {
			mu.Lock()
			defer mu.Unlock()
			hours := ahead.Round(time.Hour).Hours()
			return adapter.State{State: fmt.Sprintf("%s %s: fails %s, %g h ahead", p.ID, p.Reference, strings.Join(failing, "+"), hours)}, nil
		}),
		adapter.MethodAdvance: adapter.Func(func(_ context.Context, p adapter.AdvanceParams) (adapter.Advanced, error) {
			mu.Lock()
			defer mu.Unlock()
			ahead = time.Until(p.To)
			return adapter.Advanced{Now: p.To}, nil
		}),
	}
	methods[adapter.MethodInitialize] = adapter.Initialize(adapter.Initialized{Name: "shop"}, methods, func(_ context.Context, p adapter.InitializeParams) error {
		if p.Profile != "standard-webhooks" || p.StateDir != dir {
			return fmt.Errorf("introduced by profile %q and folder %q", p.Profile, p.StateDir)
		}
		if p.Now != nil {
			ahead = time.Until(*p.Now)
		}
		return nil
	})
	return methods
}

// serveShop serves the shop's methods at /control beside a receiver in this
// process.
func serveShop(Secrets) (*http.Server, error) {
	mux := http.NewServeMux()
	mux.Handle("/control", adapter.Handler(shop("")))
	mux.HandleFunc("/", func(http.ResponseWriter, *http.Request) {})
	return &http.Server{Handler: mux}, nil
}
