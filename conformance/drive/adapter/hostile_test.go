package adapter

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Each hostile adapter is a real process, and each ends with an error that names
// what it did, quotes the line, and says what to do.
func TestAHostileAdapterIsNamedAndBounded(t *testing.T) {
	const quick = 300 * time.Millisecond
	for _, tt := range []struct {
		role    string
		timeout time.Duration // 0: long enough not to matter
		kind    Kind
		want    string
	}{
		{"silent", quick, Silent, `adapter: calling receiver.processed: silent: no answer within 300ms; answer every request, if only with an error, and flush the output after each message`},
		{"prints a banner", 0, Banner, `adapter: calling receiver.processed: line 1 of its output: banner: it is not a message, and came before the first one: "Shop adapter 1.2 listening, key whsec_[secret]"; print everything but messages to stderr`},
		{"language server", 0, Banner, `adapter: calling receiver.processed: line 1 of its output: banner: it is not a message, and came before the first one: "Content-Length: 38\r"; write one message a line, without the headers that language servers use`},
		{"byte order mark", 0, Banner, "adapter: calling receiver.processed: line 1 of its output: banner: it is not a message, and came before the first one: \"\\ufeff{\\\"jsonrpc\\\":\\\"2.0\\\",\\\"id\\\":1,\\\"result\\\":null}\"; write UTF-8 without a byte order mark"},
		{"UTF-16", 0, Banner, `adapter: calling receiver.processed: line 1 of its output: banner: it is not a message, and came before the first one: "\xff\xfe{\x00"; write UTF-8, not UTF-16`},
		{"pretty prints", 0, Garbage, `adapter: calling receiver.processed: line 1 of its output: garbage: it is not JSON: unexpected end of JSON input at byte 1: "{"; write each message on one line, not spread over several`},
		{"answers in a batch", 0, Banner, `adapter: calling receiver.processed: line 1 of its output: banner: it is not a message, and came before the first one: "[{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"processed\":1}}]"; answer each request with a message of its own, not in a batch`},
		{"another protocol", 0, Garbage, `adapter: calling receiver.processed: line 1 of its output: garbage: it is JSON, but no JSON-RPC message: the member "jsonrpc":"2.0" is missing: "{\"id\":1,\"result\":{\"processed\":1},\"error\":null}"; print everything but messages to stderr`},
		{"an error beside the result", 0, Garbage, `adapter: calling receiver.processed: line 1 of its output: garbage: it is JSON, but no JSON-RPC message: it holds both result and error: "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"processed\":1},\"error\":null}"; an answer is {"jsonrpc":"2.0","id":N,"result":…} or {"jsonrpc":"2.0","id":N,"error":{"code":…,"message":…}}`},
		{"neither result nor error", 0, Garbage, `adapter: calling receiver.processed: line 1 of its output: garbage: it is JSON, but no JSON-RPC message: it holds neither result nor error: "{\"jsonrpc\":\"2.0\",\"id\":1}"; an answer is {"jsonrpc":"2.0","id":N,"result":…} or {"jsonrpc":"2.0","id":N,"error":{"code":…,"message":…}}`},
		{"capital letters", 0, Garbage, `adapter: calling receiver.processed: line 1 of its output: garbage: it is JSON, but no JSON-RPC message: the member "jsonrpc":"2.0" is missing: "{\"JSONRPC\":\"2.0\",\"ID\":1,\"Result\":{\"processed\":1}}"; print everything but messages to stderr`},
		{"one member twice", 0, Garbage, `adapter: calling receiver.processed: line 1 of its output: garbage: it is JSON, but no JSON-RPC message: the member "id" stands in it twice: "{\"jsonrpc\":\"2.0\",\"id\":2,\"id\":1,\"result\":{\"processed\":1}}"; an answer is {"jsonrpc":"2.0","id":N,"result":…} or {"jsonrpc":"2.0","id":N,"error":{"code":…,"message":…}}`},
		{"an error without a code", 0, Garbage, `adapter: calling receiver.processed: line 1 of its output: garbage: it is JSON, but no JSON-RPC message: its error is not {"code": a whole number, "message": "text"}: "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":\"it broke\"}"; an answer is {"jsonrpc":"2.0","id":N,"result":…} or {"jsonrpc":"2.0","id":N,"error":{"code":…,"message":…}}`},
		{"asks", 0, Garbage, `adapter: calling receiver.processed: line 1 of its output: garbage: it asks instead of answering: it holds a method, "log": "{\"jsonrpc\":\"2.0\",\"method\":\"log\",\"params\":{\"text\":\"hello\"}}"; only the suite asks; an adapter answers, and logs to stderr`},
		{"not UTF-8", 0, Garbage, `adapter: calling receiver.processed: line 1 of its output: garbage: it is not JSON: it is not UTF-8: "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"processed\":1,\"name\":\"M\xfcller\"}}"; print everything but messages to stderr`},
		{"nests too deep", 0, Garbage, `adapter: calling receiver.processed: line 1 of its output: garbage: it is not JSON: invalid character '[' exceeded max depth at byte 10033: "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":` + strings.Repeat("[", 127) + `"… (200034 bytes); print everything but messages to stderr`},
		{"wrong id", 0, WrongID, `adapter: calling receiver.processed: line 1 of its output: wrong-id: it answers the id 1001, which nothing was asked with: "{\"jsonrpc\":\"2.0\",\"id\":1001,\"result\":{\"processed\":1}}"; copy the id of the request as it stands: a whole number`},
		{"id as text", 0, WrongID, `adapter: calling receiver.processed: line 1 of its output: wrong-id: it answers the id "1", which nothing was asked with: "{\"jsonrpc\":\"2.0\",\"id\":\"1\",\"result\":{\"processed\":1}}"; copy the id of the request as it stands: a whole number`},
		{"id as a fraction", 0, WrongID, `adapter: calling receiver.processed: line 1 of its output: wrong-id: it answers the id 1.0, which nothing was asked with: "{\"jsonrpc\":\"2.0\",\"id\":1.0,\"result\":{\"processed\":1}}"; copy the id of the request as it stands: a whole number`},
		{"huge id", 0, WrongID, `adapter: calling receiver.processed: line 1 of its output: wrong-id: it answers an id that nothing was asked with: "{\"jsonrpc\":\"2.0\",\"id\":` + strings.Repeat("9", 138) + `"… (1048 bytes); copy the id of the request as it stands: a whole number`},
		{"no id", 0, Garbage, `adapter: calling receiver.processed: line 1 of its output: garbage: it is JSON, but no JSON-RPC message: the member id is missing: "{\"jsonrpc\":\"2.0\",\"result\":{\"processed\":1}}"; an answer is {"jsonrpc":"2.0","id":N,"result":…} or {"jsonrpc":"2.0","id":N,"error":{"code":…,"message":…}}`},
		{"could not read the request", 0, WrongID, `adapter: calling receiver.processed: line 1 of its output: wrong-id: it could not read a request: unexpected token (code -32700): "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"unexpected token\"}}"; a request is one line of UTF-8 with a JSON object`},
		{"endless empty lines", 0, Garbage, `adapter: calling receiver.processed: line 101 of its output: garbage: 101 empty lines in a row; print everything but messages to stderr`},
		{"dies", 0, Died, "adapter: calling receiver.processed: early-death: its output ended before the first line; serve requests until stdin ends\n  it ended with exit status 7; its last words on stderr:\n    panic: no database, secret whsec_[secret]"},
		{"dies mid-line", 0, CutLine, "adapter: calling receiver.processed: line 1 of its output: cut-line: the output ended inside it: \"{\\\"jsonrpc\\\":\\\"2.0\\\",\\\"id\\\":1,\\\"result\\\":{\\\"secret\\\":\\\"[secret]\"; write a message and its line feed at once, and flush\n  it ended with exit status 3; its last words on stderr:\n    out of memory"},
		{`{"jsonrpc":"2.0","id":1,"result":{"processed":1e999}}`, 0, BadResult, `adapter: calling receiver.processed: bad-result: the result is not what the protocol says: "{\"processed\":1e999}"; expected {"processed":N} with N a whole number from 0 to 1000000000, and "failed":true for an event on the list of failed ones`},
		{`{"jsonrpc":"2.0","id":1,"result":{"processed":99999999999999999999}}`, 0, BadResult, `adapter: calling receiver.processed: bad-result: the result is not what the protocol says: "{\"processed\":99999999999999999999}"; expected {"processed":N} with N a whole number from 0 to 1000000000, and "failed":true for an event on the list of failed ones`},
		{`{"jsonrpc":"2.0","id":1,"result":{"processed":-1}}`, 0, BadResult, `adapter: calling receiver.processed: bad-result: the result is not what the protocol says: "{\"processed\":-1}"; expected {"processed":N} with N a whole number from 0 to 1000000000, and "failed":true for an event on the list of failed ones`},
		{`{"jsonrpc":"2.0","id":1,"result":null}`, 0, BadResult, `adapter: calling receiver.processed: bad-result: the result is not what the protocol says: "null"; expected {"processed":N} with N a whole number from 0 to 1000000000, and "failed":true for an event on the list of failed ones`},
		{`{"jsonrpc":"2.0","id":1,"result":{"processed":"two"}}`, 0, BadResult, `adapter: calling receiver.processed: bad-result: the result is not what the protocol says: "{\"processed\":\"two\"}"; expected {"processed":N} with N a whole number from 0 to 1000000000, and "failed":true for an event on the list of failed ones`},
	} {
		t.Run(tt.role, func(t *testing.T) {
			noLeaks(t)
			p := started(t, tt.role, Options{CallTimeout: tt.timeout}, nil)
			var a processedAnswer
			err := p.Call(t.Context(), MethodProcessed, ProcessedParams{ID: "evt_1"}, &a)
			if !IsFault(err, tt.kind) || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s (%s)", err, tt.want, tt.kind)
			}
		})
	}
}

func TestAnAdapterThatNeverReadsHoldsUpNeitherCallNorClose(t *testing.T) {
	noLeaks(t)
	p := started(t, "never reads", Options{CallTimeout: 300 * time.Millisecond}, nil)
	// More than any pipe holds.
	long := map[string]string{"text": strings.Repeat("x", 1<<20)}
	err := p.Call(t.Context(), "test.size", long, nil)
	const want = `adapter: calling test.size: never-reads: it did not read the request within 300ms; read stdin until it ends, also while a request is being worked on`
	if !IsFault(err, Unread) || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	// The next ones stand behind the first.
	if err := p.Call(t.Context(), "test.size", nil, nil); !IsFault(err, Unread) {
		t.Errorf("the second call: %v", err)
	}
	closesWithin(t, p, 10*time.Second)
}

func TestAnAdapterThatClosesItsInput(t *testing.T) {
	noLeaks(t)
	p := started(t, "closes its input", Options{}, nil)
	var err error
	for err == nil || !IsFault(err, Died) { // what is written before it closes stays unanswered
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		err = p.Call(ctx, MethodProcessed, nil, nil)
		cancel()
		if t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
	const want = "adapter: calling receiver.processed: early-death: its input was closed; read stdin until it ends\n  it still runs; its last words on stderr:\n    (none)"
	if f := p.Fault(); f == nil || f.during(MethodProcessed).Error() != want {
		t.Errorf("got  %v\nwant %s", f, want)
	}
}

func TestAFaultBehindAGoodAnswerEndsTheNextCall(t *testing.T) {
	for _, tt := range []struct {
		role string
		kind Kind
		want string
	}{
		{"garbage after a good answer", Garbage, `adapter: calling receiver.state: line 2 of its output: garbage: it is not JSON: invalid character 'D' looking for beginning of value at byte 1: "DEBUG asked for the event, secret whsec_[secret]"; print everything but messages to stderr`},
		{"doubled id", DoubledID, `adapter: calling receiver.state: line 2 of its output: doubled-id: request 1 was answered before: "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"processed\":1}}"; answer each request once`},
		{"answers and dies", Died, "adapter: calling receiver.state: early-death: its output ended after one line; serve requests until stdin ends\n  it ended with exit status 9; its last words on stderr:\n    (none)"},
	} {
		t.Run(tt.role, func(t *testing.T) {
			noLeaks(t)
			p := started(t, tt.role, Options{}, nil)
			var a processedAnswer
			if err := p.Call(t.Context(), MethodProcessed, ProcessedParams{ID: "evt_1"}, &a); err != nil || a.count != 1 {
				t.Fatalf("the first call: %d, %v", a.count, err)
			}
			if err := p.Call(t.Context(), MethodState, StateParams{ID: "evt_1"}, nil); !IsFault(err, tt.kind) || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
			if err := p.Call(t.Context(), MethodState, StateParams{ID: "evt_1"}, nil); !IsFault(err, tt.kind) {
				t.Errorf("a call after that: %v", err)
			}
		})
	}
}

// 512 MiB without a line feed cost no more than the line that is allowed.
func TestAnEndlessLineCostsLittleMemory(t *testing.T) {
	noLeaks(t)
	var before, after runtime.MemStats
	p := started(t, "endless line", Options{}, nil)
	runtime.ReadMemStats(&before)
	err := p.Call(t.Context(), MethodProcessed, nil, nil)
	runtime.ReadMemStats(&after)
	want := `adapter: calling receiver.processed: line 1 of its output: long-line: it is longer than 1048576 bytes, or has no end: "` + strings.Repeat("x", quoteKept) + `"… (1048576 bytes); end each message with a line feed, and answer with less`
	if !IsFault(err, LongLine) || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 64<<20 {
		t.Errorf("%d MiB were allocated", took>>20)
	}
	closesWithin(t, p, 10*time.Second)
}

func TestAFloodOnStderrCostsLittleAndItsEndIsKept(t *testing.T) {
	noLeaks(t)
	var log tally
	p := started(t, "floods stderr", Options{}, &log)
	var a processedAnswer
	if err := p.Call(t.Context(), MethodProcessed, ProcessedParams{ID: "evt_1"}, &a); err != nil || a.count != 2 {
		t.Fatalf("%d, %v", a.count, err)
	}
	closesWithin(t, p, 10*time.Second)
	if got := p.stderr.String(); !strings.HasSuffix(got, "\n    the last word") || len(got) > 4*outputKept {
		t.Errorf("%d bytes are kept, ending in %q", len(got), got[max(0, len(got)-40):])
	}
	if log.n != 200*1000*81+len("the last word\n") {
		t.Errorf("%d bytes were passed on", log.n)
	}
}

func TestAFloodOnStderrWithoutALineCostsLittle(t *testing.T) {
	noLeaks(t)
	var log tally
	p := started(t, "floods stderr without a line", Options{}, &log)
	err := p.Call(t.Context(), MethodProcessed, nil, nil)
	if !IsFault(err, Died) || !strings.Contains(err.Error(), "exit status 5") || len(err.Error()) > 2*outputKept {
		t.Errorf("got %d bytes, %.200v", len(err.Error()), err)
	}
	if log.n != 16<<20 || len(p.stderr.kept) > 2*outputKept || cap(p.stderr.line) > 4*logLine {
		t.Errorf("%d bytes were passed on, %d and %d are kept", log.n, len(p.stderr.kept), cap(p.stderr.line))
	}
}

func TestAnswersOutOfOrderFindTheirCalls(t *testing.T) {
	noLeaks(t)
	p := started(t, "out of order", Options{}, nil)
	var calls sync.WaitGroup
	got := make([]int, 3)
	for i := range got {
		calls.Go(func() {
			var a processedAnswer
			if err := p.Call(t.Context(), MethodProcessed, ProcessedParams{ID: fmt.Sprint(i)}, &a); err != nil {
				t.Error(err)
			}
			got[i] = a.count
		})
	}
	calls.Wait()
	slices.Sort(got)
	if !slices.Equal(got, []int{1, 2, 3}) {
		t.Errorf("the answers are %v", got)
	}
}

func TestALateAnswerToACallThatWasGivenUpIsNoFault(t *testing.T) {
	noLeaks(t)
	p := started(t, "late", Options{}, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	err := p.Call(ctx, MethodProcessed, nil, nil)
	if !IsFault(err, Silent) || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	var a processedAnswer
	if err := p.Call(t.Context(), MethodProcessed, nil, &a); err != nil || a.count != 2 {
		t.Errorf("the call after it: %d, %v", a.count, err)
	}
	if p.Fault() != nil {
		t.Error(p.Fault())
	}
}

func TestACallerThatLosesInterestIsNoFault(t *testing.T) {
	noLeaks(t)
	log := newLines()
	p := started(t, "good", Options{}, log)
	lost := errors.New("the scenario is over")
	ctx, cancel := context.WithCancelCause(t.Context())
	answered := make(chan error, 1)
	go func() { answered <- p.Call(ctx, "test.wait", nil, nil) }()
	// The request is with the adapter before it is taken back.
	if err := p.Call(t.Context(), MethodProcessed, ProcessedParams{ID: "evt_1"}, nil); err != nil {
		t.Fatal(err)
	}
	cancel(lost)
	if err := <-answered; !errors.Is(err, lost) || IsFault(err, Silent) {
		t.Errorf("got %v", err)
	}
	log.await(t, "taken back")
}

func TestCloseEndsAnAdapterWithAllThatItStarted(t *testing.T) {
	noLeaks(t)
	p := started(t, "never ends", Options{}, nil)
	var a processedAnswer
	if err := p.Call(t.Context(), MethodProcessed, nil, &a); err != nil {
		t.Fatal(err)
	}
	closesWithin(t, p, 15*time.Second)
	for _, pid := range []int{p.cmd.Process.Pid, a.count} {
		awaitGone(t, pid)
	}
}

func TestTooManyCallsWithoutAnAnswerEndTheConnection(t *testing.T) {
	noLeaks(t)
	c := NewClient(newEnds(t), Options{})
	defer func() { _ = c.Close(context.Background()) }()
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	for id := range int64(maxAbandoned + 1) {
		c.mu.Lock()
		c.asked = id + 1
		c.waiting[id+1] = make(chan reply, 1)
		c.mu.Unlock()
		c.abandon(id+1, c.waiting[id+1])
	}
	const want = `adapter: calling x: gave-up: 1001 requests were never answered; answer every request, if only with an error`
	if err := c.Call(context.WithoutCancel(ctx), "x", nil, nil); !IsFault(err, GaveUp) || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

func closesWithin(t *testing.T, p Peer, bound time.Duration) {
	t.Helper()
	closed := make(chan error, 1)
	go func() { closed <- p.Close(context.Background()) }()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(bound):
		t.Fatal("Close hangs")
	}
}
