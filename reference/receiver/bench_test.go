package receiver

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/whconform/whconform/reference/signature"
)

// connections is how many deliveries are under way at one time.
const connections = 64

// BenchmarkReceiver measures the receiver on 64 loopback connections beside a
// plain net/http handler that reads the body and answers 200, under the same
// load in the same run. x-plain is its share of the plain handler's rate, the
// number to look at: absolute times say more about the machine.
func BenchmarkReceiver(b *testing.B) {
	scheme, err := signature.New(signature.StandardWebhooks())
	if err != nil {
		b.Fatal(err)
	}
	key := keyOf(b, scheme, "current", 1)
	r, err := New(Config{
		Profile: standard(), Keys: []signature.Key{key}, Clock: clock.New(),
		// The store's own cost is not the question here.
		Store: storeFunc(func(context.Context, Message) (bool, error) { return true, nil }),
	})
	if err != nil {
		b.Fatal(err)
	}
	headers, err := scheme.Sign(signature.Input{ID: "msg_1", Time: time.Now(), Body: []byte(event)}, key)
	if err != nil {
		b.Fatal(err)
	}
	request := []byte(head("POST", headers, "Content-Length: "+strconv.Itoa(len(event))) + "\r\n" + event)
	besidePlain(b, r, slices.Repeat([][]byte{request}, b.N))
}

// besidePlain sends the requests to h and to a plain handler, which reads the
// body and answers, and reports h's share of the plain handler's rate.
func besidePlain(b *testing.B, h http.Handler, requests [][]byte) {
	b.Helper()
	addr, plainAddr := serve(b, h), serve(b, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		w.WriteHeader(http.StatusOK)
	}))
	var ofH, ofPlain time.Duration
	b.ResetTimer()
	// In turns, so that what else the machine does hits both alike.
	for turn := range slices.Chunk(requests, 500) {
		ofPlain += load(b, plainAddr, turn)
		ofH += load(b, addr, turn)
	}
	b.StopTimer()
	b.ReportMetric(ofPlain.Seconds()/ofH.Seconds(), "x-plain")
	b.ReportMetric(float64(len(requests))/ofH.Seconds(), "deliveries/s")
}

// load sends each request once, over 64 connections, and returns the time it
// took.
func load(b *testing.B, addr string, requests [][]byte) time.Duration {
	b.Helper()
	work := make(chan []byte, len(requests))
	for _, r := range requests {
		work <- r
	}
	close(work)
	began := time.Now()
	var all sync.WaitGroup
	for range min(connections, len(requests)) {
		all.Go(func() {
			if err := drain(addr, work); err != nil {
				b.Error(err)
			}
		})
	}
	all.Wait()
	return time.Since(began)
}

// drain sends requests over one connection while there are any.
func drain(addr string, work <-chan []byte) error {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	r := bufio.NewReader(c)
	for request := range work {
		if _, err := c.Write(request); err != nil {
			return err
		}
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s answered %s", addr, resp.Status)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
	}
	return nil
}
