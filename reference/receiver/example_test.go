package receiver_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/whconform/whconform/reference/profile"
	"github.com/whconform/whconform/reference/receiver"
	"github.com/whconform/whconform/reference/signature"
)

// A receiver for one provider, and a delivery as the provider would send it.
func Example() {
	contract, err := profile.Load("standard-webhooks")
	if err != nil {
		log.Fatal(err)
	}
	scheme, err := receiver.Scheme(contract)
	if err != nil {
		log.Fatal(err)
	}
	// In a real receiver this comes from the environment or a secret store.
	key, err := scheme.Key("current", "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD")
	if err != nil {
		log.Fatal(err)
	}
	inbox := receiver.NewMemory()
	r, err := receiver.New(receiver.Config{
		Profile: contract,
		Keys:    []signature.Key{key},
		Store:   inbox,
		Clock:   clock.New(),
	})
	if err != nil {
		log.Fatal(err)
	}
	server := httptest.NewUnstartedServer(nil)
	server.Config = receiver.HTTPServer(r)
	server.Start()
	defer server.Close()

	const body = `{"type":"invoice.paid","timestamp":"2026-01-02T15:04:05Z","data":{"id":"in_1"}}`
	headers, err := scheme.Sign(signature.Input{ID: "msg_1", Time: time.Now(), Body: []byte(body)}, key)
	if err != nil {
		log.Fatal(err)
	}
	for range 2 { // the second is a copy, and as welcome as the first
		req, err := http.NewRequest(http.MethodPost, server.URL+"/webhooks", strings.NewReader(body))
		if err != nil {
			log.Fatal(err)
		}
		for _, h := range headers {
			req.Header.Set(h.Name, h.Value)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			log.Fatal(err)
		}
		_ = resp.Body.Close()
		fmt.Println(resp.Status)
	}
	message, _ := inbox.Get("msg_1")
	fmt.Println(message.ID, "verified by the", message.Key, "secret,", inbox.Len(), "stored")
	// Output:
	// 200 OK
	// 200 OK
	// msg_1 verified by the current secret, 1 stored
}
