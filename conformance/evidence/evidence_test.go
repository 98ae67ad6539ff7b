package evidence_test

import (
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/reference/wire"
)

func TestThrottlingIs429OrA503ThatNamesATime(t *testing.T) {
	answer := func(status int, headers ...wire.Header) wire.Exchange {
		return wire.Exchange{Response: &wire.Response{Status: status, Headers: headers}}
	}
	retry := wire.Header{Name: "retry-after", Value: "5"}
	for _, tt := range []struct {
		name string
		x    wire.Exchange
		want bool
	}{
		{"429", answer(http.StatusTooManyRequests), true},
		{"429 with Retry-After", answer(http.StatusTooManyRequests, retry), true},
		{"503 with Retry-After, in whatever case", answer(http.StatusServiceUnavailable, retry), true},
		{"503 alone is an error", answer(http.StatusServiceUnavailable), false},
		{"500 with Retry-After", answer(http.StatusInternalServerError, retry), false},
		{"202 with Retry-After", answer(http.StatusAccepted, retry), false},
		{"401", answer(http.StatusUnauthorized), false},
		{"no answer", wire.Exchange{Fault: wire.FaultTimeout}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := evidence.Throttles(&tt.x); got != tt.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestAnExchangeIsFoundByItsLabel(t *testing.T) {
	tr := evidence.Transcript{Exchanges: []wire.Exchange{{Label: "a"}, {Label: "b", Sent: 7}}}
	if x := tr.Find("b"); x == nil || x.Sent != 7 {
		t.Errorf("got %+v", x)
	}
	if x := tr.Find("B"); x != nil {
		t.Errorf("got %+v for a label that is not there", x)
	}
	if x := (&evidence.Transcript{}).Find(""); x != nil {
		t.Errorf("an empty transcript has %+v", x)
	}
	tr.Find("a").Sent = 9
	if tr.Exchanges[0].Sent != 9 {
		t.Error("Find gives a copy")
	}
}

func TestAFactIsSplitIntoItsWords(t *testing.T) {
	tr := evidence.Transcript{Facts: map[string]string{"statuses": " 400  401 ", "none": ""}}
	if got := tr.SplitFact("statuses"); !slices.Equal(got, []string{"400", "401"}) {
		t.Errorf("got %q", got)
	}
	for _, name := range []string{"none", "never recorded"} {
		if got := tr.SplitFact(name); len(got) != 0 {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

func TestOnlyASkipAndAnErrorSayNothingOfTheSubject(t *testing.T) {
	for outcome, want := range map[evidence.Outcome]bool{
		evidence.Pass: true, evidence.Fail: true, evidence.Warn: true, evidence.Info: true,
		evidence.XFail: true, evidence.XPass: true,
		evidence.Skipped: false, evidence.Error: false, "": false, "unheard-of": false,
	} {
		if got := outcome.Judged(); got != want {
			t.Errorf("%q: got %t", outcome, got)
		}
	}
}

// A transcript is kept and judged again, so nothing of it may be lost on the
// way through JSON.
func TestATranscriptSurvivesJSON(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	want := evidence.Transcript{
		Scenario: "s", Control: "control", Facts: map[string]string{"a": "b"},
		Skips: map[string]evidence.Skip{"row": {Reason: evidence.NotObservable, Detail: "unseen"}},
		Exchanges: []wire.Exchange{
			{
				Label:    "probe",
				Request:  wire.Request{Method: "POST", Target: "/x?y=1", Headers: []wire.Header{{Name: "A", Value: "b é"}, {Name: "a", Value: ""}}, Body: []byte{0, 0xff, '"'}, Size: 99},
				Response: &wire.Response{Status: 200, Headers: []wire.Header{{Name: "X", Value: "y"}}, Body: []byte("ok"), Size: 2},
				Began:    began, Ended: began.Add(time.Second), Took: 3 * time.Millisecond, Sent: 3,
			},
			{Label: "fault", Request: wire.Request{Headers: []wire.Header{}}, Fault: wire.FaultReset, FaultDetail: "reset", Began: began, Ended: began},
		},
		Error: "broke", Partial: true, TookMS: 12,
	}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got evidence.Transcript
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}
