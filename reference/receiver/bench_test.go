package receiver

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
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
	plain := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		w.WriteHeader(http.StatusOK)
	})
	headers, err := scheme.Sign(signature.Input{ID: "msg_1", Time: time.Now(), Body: []byte(event)}, key)
	if err != nil {
		b.Fatal(err)
	}
	request := []byte(head("POST", headers, "Content-Length: "+strconv.Itoa(len(event))) + "\r\n" + event)
	receiverAddr, plainAddr := serve(b, r), serve(b, plain)

	// In turns, so that what else the machine does hits both alike.
	var ofReceiver, ofPlain time.Duration
	const turns = 10
	b.ResetTimer()
	for range turns {
		ofPlain += load(b, plainAddr, request, b.N/turns+1)
		ofReceiver += load(b, receiverAddr, request, b.N/turns+1)
	}
	b.ReportMetric(ofPlain.Seconds()/ofReceiver.Seconds(), "x-plain")
}

// load sends the request n times and returns the time it took.
func load(b *testing.B, addr string, request []byte, n int) time.Duration {
	b.Helper()
	work := make(chan struct{}, n)
	for range n {
		work <- struct{}{}
	}
	close(work)
	began := time.Now()
	var all sync.WaitGroup
	for range min(connections, n) {
		all.Go(func() {
			if err := drain(addr, request, work); err != nil {
				b.Error(err)
			}
		})
	}
	all.Wait()
	return time.Since(began)
}

// drain sends the request over one connection as often as there is work.
func drain(addr string, request []byte, work <-chan struct{}) error {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	r := bufio.NewReader(c)
	for range work {
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
