package drive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/whconform/whconform/conformance/drive/adapter"
)

func TestAnAnswerIsACountOrExplainsWhyNot(t *testing.T) {
	for _, tt := range []struct {
		answer string
		want   Count
		why    string
	}{
		{"3", Count{N: 3}, ""},
		{" 3\r\n", Count{N: 3}, ""},
		{"0", Count{}, ""},
		{`{"processed": 2}`, Count{N: 2}, ""},
		{`{"processed": 0, "failed": true, "since": "today"}`, Count{Failed: true}, ""},
		{`"failed"`, Count{Failed: true}, ""},
		{"", Count{}, "no count: it is neither JSON nor a number"},
		{"twice", Count{}, "no count: it is neither JSON nor a number"},
		{"3 4", Count{}, "no count: there is more than one value"},
		{"1.0", Count{}, "no count: the number is not a whole one, or too large"},
		{"1e999", Count{}, "no count: the number is not a whole one, or too large"},
		{"99999999999999999999", Count{}, "no count: the number is not a whole one, or too large"},
		{"-1", Count{}, "no count: the number is not from 0 to 1000000000"},
		{"1000000001", Count{}, "no count: the number is not from 0 to 1000000000"},
		{`"3"`, Count{}, "no count: it is a text"},
		{"null", Count{}, "no count: it is null"},
		{"true", Count{}, "no count: it is true or false"},
		{"[1]", Count{}, "no count: it is a list"},
		{"{}", Count{}, "no count: the member processed is missing"},
		{`{"processed": "3"}`, Count{}, "no count: its member processed is a text"},
		{`{"processed": {}}`, Count{}, "no count: its member processed is an object"},
		{`{"processed": 1, "failed": 1}`, Count{}, "no count: its member failed is a number"},
	} {
		t.Run(tt.answer, func(t *testing.T) {
			got, err := parseCount([]byte(tt.answer))
			if tt.why == "" && (err != nil || got != tt.want) {
				t.Errorf("got %+v, %v", got, err)
			}
			if tt.why != "" && (err == nil || err.Error() != tt.why || got.N != 0 && !errors.Is(err, errNoCount)) {
				t.Errorf("got %+v, %v, want %s", got, err, tt.why)
			}
		})
	}
}

func TestACountThatWasWrittenIsTheOneThatIsRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Count{N: rapid.IntRange(0, countMax).Draw(t, "n"), Failed: rapid.Bool().Draw(t, "failed")}
		text, err := json.Marshal(map[string]any{"processed": want.N, "failed": want.Failed})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := parseCount(text); err != nil || got != want {
			t.Fatalf("%s is read as %+v, %v", text, got, err)
		}
	})
}

func FuzzParseCount(f *testing.F) {
	for _, seed := range []string{"3", `{"processed":2,"failed":true}`, `"failed"`, "1e5", "[[[[", `{"processed":-0}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		if c, err := parseCount(answer); err == nil && (c.N < 0 || c.N > countMax) {
			t.Fatalf("%q is read as %+v", answer, c)
		}
	})
}

func TestAPointerFollowsRFC6901(t *testing.T) {
	const doc = `{"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"m~n":8,"k\"l":6," ":7,"processed":{"evt/1":3,"e~2":4}}`
	for _, tt := range []struct{ pointer, id, want string }{
		{"", "", doc},
		{"/foo/0", "", `"bar"`},
		{"/", "", "0"},
		{"/a~1b", "", "1"},
		{"/c%d", "", "2"},
		{`/k"l`, "", "6"},
		{"/ ", "", "7"},
		{"/m~0n", "", "8"},
		{"/processed/{id}", "evt/1", "3"},
		{"/processed/{id}", "e~2", "4"},
		{"/foo/{id}", "1", `"baz"`},
	} {
		t.Run(tt.pointer+" "+tt.id, func(t *testing.T) {
			p, err := parsePointer(tt.pointer)
			if err != nil {
				t.Fatal(err)
			}
			if tt.pointer != p.String() {
				t.Errorf("it is written as %s", p)
			}
			var v, want any
			if json.Unmarshal([]byte(doc), &v) != nil || json.Unmarshal([]byte(tt.want), &want) != nil {
				t.Fatal("the test is broken")
			}
			if got, err := p.in(v, tt.id); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("got %v, %v, want %v", got, err, want)
			}
		})
	}
}

func TestAPointerThatLeadsNowhereSaysWhere(t *testing.T) {
	d := json.NewDecoder(strings.NewReader(`{"processed":{"evt_1":1},"list":[1],"n":1}`))
	d.UseNumber() // as it is read from an answer
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ pointer, want string }{
		{"/processed/{id}", "the event is not in the answer"},
		{"/list/9", "/list/9: there is no such member"},
		{"/procesed/{id}", "/procesed: there is no such member"},
		{"/list/x", "/list/x: a list is asked for a member by name"},
		{"/list/01", "/list/01: a list is asked for a member by name"},
		{"/n/{id}", "/n/{id}: a number has no members"},
	} {
		p, err := parsePointer(tt.pointer)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := p.in(v, "evt_2"); err == nil || err.Error() != tt.want {
			t.Errorf("%s: %v, %v", tt.pointer, got, err)
		}
	}
	for _, broken := range []string{"processed", "/a~", "/a~2"} {
		if _, err := parsePointer(broken); err == nil {
			t.Errorf("%s is taken", broken)
		}
	}
}

func FuzzPointer(f *testing.F) {
	f.Add("/processed/{id}", "evt_1", `{"processed":{"evt_1":1}}`)
	f.Add("/~01/0", "", `{"~1":[1]}`)
	f.Fuzz(func(t *testing.T, text, id, doc string) {
		p, err := parsePointer(text)
		if err != nil {
			return
		}
		if p.String() != text {
			t.Fatalf("%q is written as %q", text, p.String())
		}
		var v any
		if json.Unmarshal([]byte(doc), &v) == nil {
			_, _ = p.in(v, id)
		}
	})
}

// control is an observer behind an adapter whose receiver.processed is f.
func control(t *testing.T, f adapter.Method) Observer {
	t.Helper()
	here, there := net.Pipe()
	methods := adapter.Methods{}
	if f != nil {
		methods[adapter.MethodProcessed] = f
	}
	methods[adapter.MethodInitialize] = adapter.Initialize(adapter.Initialized{Name: "shop"}, methods, nil)
	served := make(chan error, 1)
	go func() { served <- adapter.Serve(context.Background(), there, there, methods) }()
	session, err := adapter.Open(t.Context(), adapter.NewClient(here, adapter.Options{}), adapter.InitializeParams{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(session.Close(context.Background()), there.Close(), <-served); err != nil {
			t.Error(err)
		}
	})
	o, err := ObserveControl(session)
	if f == nil {
		if !errors.Is(err, ErrNotOffered) || o != nil {
			t.Errorf("without the method: %v, %v", o, err)
		}
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestAnAdapterIsAnObserver(t *testing.T) {
	noLeaks(t)
	control(t, nil)
	o := control(t, adapter.Func(func(_ context.Context, p adapter.ProcessedParams) (any, error) {
		switch p.ID {
		case "evt_1":
			return adapter.Processed{Processed: 2, Failed: true}, nil
		case "evt_2":
			return "two", nil
		}
		return nil, errors.New("no such table: inbox")
	}))
	if got, err := o.Processed(t.Context(), "evt_1"); err != nil || got != (Count{N: 2, Failed: true}) {
		t.Errorf("got %+v, %v", got, err)
	}
	_, err := o.Processed(t.Context(), "evt_2")
	isFault(t, err, ObserverNonsense, `the observer receiver.processed, asked for evt_2: adapter: calling receiver.processed: bad-result: the result is not what the protocol says: "\"two\""; expected {"processed":N} with N a whole number from 0 to 1000000000, and "failed":true for an event on the list of failed ones`)
	_, err = o.Processed(t.Context(), "evt_3")
	isFault(t, err, ObserverRefuses, `the observer receiver.processed, asked for evt_3: adapter: calling receiver.processed: it answered with an error: no such table: inbox (code -32603)`)
}

// isFault pins an observer's fault and its text.
func isFault(t *testing.T, err error, f ObserverFault, want string) {
	t.Helper()
	var of *ObserverError
	if !errors.As(err, &of) || of.Fault != f || strings.TrimSuffix(of.Error(), "; expected status 200 with "+expectedCount) != want {
		t.Errorf("got  %v\nwant %s (%s)", err, want, f)
	}
}
