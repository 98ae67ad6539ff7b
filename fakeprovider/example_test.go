package fakeprovider_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/whconform/whconform/fakeprovider"
	"github.com/whconform/whconform/reference/profile"
	"github.com/whconform/whconform/reference/signature"
	"github.com/whconform/whconform/reference/wire"
)

// A receiver under test gets a valid delivery, one that comes too late, and one
// whose body was changed on the way.
func ExampleProvider() {
	contract, err := profile.Load("standard-webhooks")
	if err != nil {
		fmt.Println(err)
		return
	}
	provider, err := fakeprovider.New(fakeprovider.Config{Profile: contract, Clock: clock.New()})
	if err != nil {
		fmt.Println(err)
		return
	}
	scheme := provider.Scheme()
	key, err := scheme.Key("current", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		fmt.Println(err)
		return
	}

	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request := wire.Request{Method: r.Method}
		request.Body, _ = io.ReadAll(r.Body)
		for name := range r.Header {
			request.Headers = append(request.Headers, wire.Header{Name: name, Value: r.Header.Get(name)})
		}
		if _, err := scheme.Verify(&request, time.Now(), key); err != nil {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	defer receiver.Close()

	delivery := fakeprovider.Delivery{
		ID: provider.NewID(), Type: "invoice.paid",
		Keys: []signature.Key{key},
		Body: []byte(`{"data":{"amount":4200},"type":"invoice.paid"}`),
	}
	for _, alterations := range [][]fakeprovider.Alteration{
		nil,
		{fakeprovider.Age(10 * time.Minute)},
		{fakeprovider.ChangeDigit()},
	} {
		draft, err := provider.Draft(delivery, alterations...)
		if err != nil {
			fmt.Println(err)
			return
		}
		x := provider.Send(context.Background(), fakeprovider.Target{URL: receiver.URL}, draft, "probe")
		fmt.Println(string(draft.Request.Body), x.Response.Status)
	}
	// Output:
	// {"data":{"amount":4200},"type":"invoice.paid"} 200
	// {"data":{"amount":4200},"type":"invoice.paid"} 401
	// {"data":{"amount":5200},"type":"invoice.paid"} 401
}

// The signature of the original over the body as another library writes it.
func ExampleRespell() {
	out, err := fakeprovider.Respell("python", []byte(`{"name":"Zoë","total":1e2}`))
	fmt.Println(string(out), err)
	// Output: {"name": "Zo\u00eb", "total": 100.0} <nil>
}

// Which library stands between the wire and the signature check.
func ExampleExplain() {
	corpus := map[string][]byte{
		"raw letters":  []byte(`{"a":"é"}`),
		"slashes":      []byte(`{"a":"/"}`),
		"float":        []byte(`{"a":1.5}`),
		"integer-keys": []byte(`{"b":1,"a":2}`),
	}
	library, ok := fakeprovider.Explain([]string{"raw letters", "slashes"}, []string{"float", "integer-keys"}, corpus)
	fmt.Println(library.Name, ok)
	// Output: php true
}

// A receiver under load: what it answers, and how long everybody waited.
func ExampleProvider_Load() {
	contract, err := profile.Load("standard-webhooks")
	if err != nil {
		fmt.Println(err)
		return
	}
	provider, err := fakeprovider.New(fakeprovider.Config{Profile: contract, Clock: clock.New()})
	if err != nil {
		fmt.Println(err)
		return
	}
	key, err := provider.Scheme().Key("current", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		fmt.Println(err)
		return
	}
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	}))
	defer receiver.Close()

	result, err := provider.Load(context.Background(), fakeprovider.Target{URL: receiver.URL}, fakeprovider.LoadConfig{
		Rate: 200, Duration: 250 * time.Millisecond, Copies: 2, Keys: []signature.Key{key},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(result.Sent, "deliveries of", result.Events, "events,", result.Genuine.Accepted, "accepted")
	fmt.Println("p99 known:", result.Latency.Percentile(99) > 0)
	// Output:
	// 50 deliveries of 25 events, 50 accepted
	// p99 known: true
}
