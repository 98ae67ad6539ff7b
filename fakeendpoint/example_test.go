package fakeendpoint_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/whconform/whconform/fakeendpoint"
	"github.com/whconform/whconform/reference/signature"
)

// A sender is tried: it must not give up after two failures, and must sign.
func Example() {
	scheme, err := signature.New(signature.StandardWebhooks())
	if err != nil {
		fmt.Println(err)
		return
	}
	key, err := scheme.Key("current", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		fmt.Println(err)
		return
	}
	endpoint, err := fakeendpoint.Start(fakeendpoint.Config{Clock: clock.New()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer endpoint.Close()
	script, err := fakeendpoint.ParseScript("500*2,200")
	if err != nil {
		fmt.Println(err)
		return
	}
	path := endpoint.Path("orders", script, key)

	go deliver(path.URL(), scheme, key) // the sender under test

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if _, err := path.Wait(ctx, 3); err != nil {
		fmt.Println(err)
		return
	}
	for _, a := range path.Attempts() {
		fmt.Println(a.Number, a.ID, a.Response.Status, a.Verification.OK())
	}
	// Output:
	// 1 msg_1 500 true
	// 2 msg_1 500 true
	// 3 msg_1 200 true
}

// deliver is a very small sender.
func deliver(url string, scheme signature.Scheme, key signature.Key) {
	const body = `{"type":"order.shipped"}`
	for {
		headers, err := scheme.Sign(signature.Input{ID: "msg_1", Time: time.Now(), Body: []byte(body)}, key)
		if err != nil {
			return
		}
		request, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
		if err != nil {
			return
		}
		for _, h := range headers {
			request.Header.Set(h.Name, h.Value)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return
		}
		_ = answer.Body.Close()
		if answer.StatusCode/100 == 2 {
			return
		}
	}
}

// A test that decides in Go: handlers read from top to bottom.
func ExamplePath_Handle() {
	endpoint, err := fakeendpoint.Start(fakeendpoint.Config{Clock: clock.New()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer endpoint.Close()
	path := endpoint.Path("orders", fakeendpoint.Script{}).Handle(
		fakeendpoint.WantMethod("POST"),
		fakeendpoint.WantHeader("Content-Type", "application/json"),
		fakeendpoint.InTurn(
			fakeendpoint.Status(503),
			func(c *fakeendpoint.Call) { c.Remark("%d bytes came", len(c.Attempt.Request.Body)) },
		),
	)
	for _, contentType := range []string{"application/json", "text/plain"} {
		answer, err := http.Post(path.URL(), contentType, strings.NewReader("{}"))
		if err != nil {
			fmt.Println(err)
			return
		}
		_ = answer.Body.Close()
		fmt.Println(answer.StatusCode)
	}
	if _, err := path.Wait(context.Background(), 2); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(strings.Join(path.Attempts()[1].Remarks, "\n"))
	// Output:
	// 503
	// 200
	// the header Content-Type is "text/plain", want "application/json"
	// 2 bytes came
}

// What is wrong with a script, where, and what may have been meant.
func ExampleParseScript() {
	_, err := fakeendpoint.ParseScript("500*2,hagn,200")
	fmt.Println(err)
	script, err := fakeendpoint.ParseScript("429(retry-after=date+30s)*until, slow(60s, 500), 200")
	fmt.Println(script, err)
	// Output:
	// script, column 7: there is no step "hagn"; did you mean "hang"?
	// 429(retry-after=date+30s)*until,slow(1m,500),200 <nil>
}

// On a virtual clock an attempt that takes 14 s takes no time: who moves the
// clock sees what is held, and when it is due.
func ExampleServer_Held() {
	virtual := clock.NewMock()
	endpoint, err := fakeendpoint.Start(fakeendpoint.Config{Clock: virtual})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer endpoint.Close()
	script, err := fakeendpoint.ParseScript("slow(14s)")
	if err != nil {
		fmt.Println(err)
		return
	}
	path := endpoint.Path("slow", script)
	go func() {
		answer, err := http.Post(path.URL(), "application/json", strings.NewReader("{}"))
		if err == nil {
			_ = answer.Body.Close()
		}
	}()
	for {
		changed := endpoint.HeldChanged()
		if n, next := endpoint.Held(); n == 1 {
			fmt.Println("due in", next.Sub(virtual.Now()))
			virtual.Set(next)
			break
		}
		<-changed
	}
	exchanges, err := path.Wait(context.Background(), 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("answered after", exchanges[0].Ended.Sub(exchanges[0].Began))
	// Output:
	// due in 14s
	// answered after 14s
}
