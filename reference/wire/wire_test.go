package wire

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestAnExchangeSurvivesItsJSONForm(t *testing.T) {
	began := time.Date(2026, 11, 14, 10, 0, 0, 0, time.UTC)
	for name, x := range map[string]Exchange{
		"text body": {Label: "control", Request: Request{"POST", "/hooks", []Header{{"Webhook-Id", "msg_1"}, {"webhook-id", "msg_2"}}, []byte(`{"a":1}`), 7},
			Response: &Response{Status: 200, Headers: []Header{{"Date", "x"}}, Body: []byte("ok"), Size: 2, Reason: "Fine"}, Began: began, Ended: began.Add(time.Second), Took: 3 * time.Millisecond, Sent: 7},
		"binary body": {Label: "binary", Request: Request{"POST", "/", []Header{}, []byte{0xff, 0, 1}, 3}, Fault: FaultReset, FaultDetail: "reading the answer", Began: began, Ended: began},
		"no body":     {Label: "empty", Request: Request{Method: "GET", Target: "/", Headers: []Header{}}, Fault: FaultTimeout, Began: began, Ended: began},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := json.Marshal(x)
			if err != nil {
				t.Fatal(err)
			}
			var back Exchange
			if err := json.Unmarshal(b, &back); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(x, back) {
				t.Errorf("came back as\n%+v, was\n%+v", back, x)
			}
		})
	}
}

func TestAHeaderByteThatIsNotUTF8StaysReadable(t *testing.T) {
	b, err := json.Marshal(Request{Method: "POST", Target: "/", Headers: []Header{{"x", "caf\xe9"}}})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), "café") {
		t.Errorf("the value is written as %s", b)
	}
}

func TestHeadersAreFoundInAnyCaseAndChangedInPlace(t *testing.T) {
	h := []Header{{"Webhook-Id", "a"}, {"X", "b"}, {"webhook-id", "c"}}
	if v, ok := Get(h, "WEBHOOK-ID"); !ok || v != "a" {
		t.Errorf("Get = %q, %v", v, ok)
	}
	if n := Count(h, "webhook-ID"); n != 2 {
		t.Errorf("Count = %d", n)
	}
	if got := Set(h, "x", "z"); got[1] != (Header{"X", "z"}) || h[1].Value != "b" {
		t.Errorf("Set = %v, the argument became %v", got, h)
	}
	if got := Set(h, "new", "z"); got[3] != (Header{"new", "z"}) {
		t.Errorf("Set appended %v", got)
	}
	if got := Drop(h, "webhook-id"); len(got) != 1 || got[0].Name != "X" {
		t.Errorf("Drop = %v", got)
	}
}

func FuzzExchangeJSON(f *testing.F) {
	f.Add([]byte(`{"label":"x","request":{"headers":[["a","b"]],"bodyBase64":"/w=="}}`))
	f.Add([]byte(`{"request":{"headers":[["a"]]}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var x Exchange
		_ = json.Unmarshal(b, &x) // must not panic
	})
}
