package adapter_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/whconform/whconform/conformance/drive/adapter"
)

// shop is a receiver that has processed one event.
func shop() adapter.Methods {
	processed := map[string]int{"evt_1": 1}
	methods := adapter.Methods{
		adapter.MethodProcessed: adapter.Func(func(_ context.Context, p adapter.ProcessedParams) (adapter.Processed, error) {
			return adapter.Processed{Processed: processed[p.ID]}, nil
		}),
	}
	methods[adapter.MethodInitialize] = adapter.Initialize(adapter.Initialized{Name: "shop", Version: "1.2"}, methods, nil)
	return methods
}

// An adapter in Go is a few methods and Serve, here with one request on its
// stdin.
func ExampleServe() {
	stdin := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"receiver.processed","params":{"id":"evt_1"}}` + "\n")
	if err := adapter.Serve(context.Background(), stdin, os.Stdout, shop()); err != nil {
		fmt.Println(err)
	}
	// Output: {"jsonrpc":"2.0","id":1,"result":{"processed":1}}
}

// The suite's side, over a control URL.
func ExampleOpen() {
	control := httptest.NewServer(adapter.Handler(shop()))
	defer control.Close()
	peer, err := adapter.NewHTTP(control.URL, nil, adapter.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	session, err := adapter.Open(ctx, peer, adapter.InitializeParams{Profile: "standard-webhooks"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = session.Close(ctx) }()
	fmt.Println(session.About.Name, session.About.Capabilities)
	count, err := session.Processed(ctx, "evt_1")
	fmt.Println(count.Processed, err)
	_, err = session.State(ctx, "evt_1", "")
	fmt.Println(err)
	// Output:
	// shop [receiver.processed]
	// 1 <nil>
	// adapter: calling receiver.state: undeclared: the adapter did not declare this method; name it in the capabilities that initialize answers, if the subject can do it
}
