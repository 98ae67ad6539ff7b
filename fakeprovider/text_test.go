package fakeprovider_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/whconform/whconform/fakeprovider"
	"github.com/whconform/whconform/reference/wire"
)

func TestWriteExchangeFitsTwoLines(t *testing.T) {
	request := wire.Request{Method: "POST", Target: "/hooks", Headers: []wire.Header{{Name: "webhook-id", Value: "msg_1"}}, Size: 512}
	cases := []struct {
		name string
		x    wire.Exchange
		want string
	}{
		{"an answer", wire.Exchange{Label: "tampered/append-byte", Request: request, Response: &wire.Response{Status: 204}, Took: 3 * time.Millisecond},
			"--> POST /hooks  id=msg_1  512 B  tampered/append-byte\n<-- 204 No Content  3 ms\n"},
		{"an answer with a body and a remark", wire.Exchange{Request: request, Response: &wire.Response{Status: 599, Size: 7}, FaultDetail: "cut short", Took: 12345 * time.Millisecond},
			"--> POST /hooks  id=msg_1  512 B\n<-- 599  7 B  (cut short)  12.3 s\n"},
		{"a fault", wire.Exchange{Request: wire.Request{Method: "GET", Target: "/"}, Fault: wire.FaultRefused, FaultDetail: "connecting to 127.0.0.1:9: connection refused", Took: 80 * time.Microsecond},
			"--> GET /  0 B\n<-- refused: connecting to 127.0.0.1:9: connection refused  80 µs\n"},
		{"control characters", wire.Exchange{Label: "a\x1b[2Jb\u202e", Request: wire.Request{Method: "PO\nST", Target: "/\xff"}, Fault: "not-http", FaultDetail: "\r\x00", Took: time.Second},
			"--> PO\\nST /\\xff  0 B  a\\x1b[2Jb\\u202e\n<-- not-http: \\r\\x00  1000 ms\n"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			if err := fakeprovider.WriteExchange(&out, &c.x); err != nil || out.String() != c.want {
				t.Errorf("got %v\n%swant\n%s", err, out.String(), c.want)
			}
		})
	}
}

func TestWriteExchangeCutsWhatIsLong(t *testing.T) {
	var out strings.Builder
	x := wire.Exchange{Request: wire.Request{Method: "POST", Target: "/" + strings.Repeat("é", 5000)}, Fault: "closed"}
	if err := fakeprovider.WriteExchange(&out, &x); err != nil || out.Len() > 600 || !strings.Contains(out.String(), "…") {
		t.Errorf("%v, %d B", err, out.Len())
	}
}

func TestWriteExchangeReportsTheWritersError(t *testing.T) {
	if err := fakeprovider.WriteExchange(brokenWriter{}, &wire.Exchange{}); !errors.Is(err, errEdit) {
		t.Errorf("got %v", err)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errEdit }
