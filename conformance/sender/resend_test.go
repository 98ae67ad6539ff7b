package sender

import (
	"fmt"
	"testing"
	"time"

	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/reference/wire"
)

// short is a sender with three attempts.
func short() drive.About {
	zero := 0.0
	return drive.About{Schedule: []time.Duration{0, 5 * time.Second, time.Minute}, JitterLow: &zero, JitterHigh: &zero}
}

func TestAResendIsTheSameMessage(t *testing.T) {
	delivered := func(more ...part) *evidence.Transcript {
		return recordedBy(short(), append([]part{try(deliveredName, 0, 200), moment(resentFact+deliveredName, 10*time.Second)}, more...)...)
	}
	again := func(changes ...func(*attempt)) part { return try(deliveredName, 10*time.Second, 200, changes...) }
	behind := func(after time.Duration) func(*attempt) {
		return with("webhook-timestamp", fmt.Sprint(start.Add(after-time.Minute).Unix()))
	}
	stale := with("webhook-timestamp", fmt.Sprint(start.Unix()))
	tell(t, judgeResentDelivered, map[string]*evidence.Transcript{
		"once more": delivered(again()), "its clock is wrong": recordedBy(short(), try(deliveredName, 0, 200, behind(0)), moment(resentFact+deliveredName, 10*time.Second), again(behind(10*time.Second))),
		"it was never sent again":                recordedBy(short(), try(deliveredName, 0, 200)),
		"a client that repeats a broken request": delivered(again(unanswered(wire.FaultReset), with("webhook-signature", "v1,x")), again(with("webhook-signature", "v1,x"))),
	}, []wrongly{
		{"not at all", delivered(), "none came", "silence"},
		{"three times", delivered(again(), try(deliveredName, 15*time.Second, 200), try(deliveredName, 75*time.Second, 200)), "3 requests more", "whole schedule"},
		{"a new id", delivered(again(id("msg_2"))), `"msg_2" instead of "msg_1"`, "new message"},
		{"other bytes", delivered(again(body(`{"type":"other"}`))), "other bytes", "built again"},
		{"the old timestamp", delivered(try(deliveredName, 20*time.Second, 200, stale)), "20s old", "stored"},
		{"the time of another", delivered(try(deliveredName, 20*time.Second, 200, with("webhook-timestamp", fmt.Sprint(start.Add(8*time.Second).Unix())))), "12s old", "stored"},
		{"unsigned", delivered(again(by())), "does not verify", ""},
	})
	failed := func(more ...part) *evidence.Transcript {
		return recordedBy(short(), append([]part{
			try(failedName, 0, 500), try(failedName, 5*time.Second, 500), try(failedName, 65*time.Second, 500), moment(resentFact+failedName, 70*time.Second),
		}, more...)...)
	}
	after := func(changes ...func(*attempt)) part { return try(failedName, 70*time.Second, 200, changes...) }
	tell(t, judgeResentFailed, map[string]*evidence.Transcript{"once more": failed(after())}, []wrongly{
		{"not at all", failed(), "none came", "used up"},
		{"twice", failed(after(), after(with("webhook-signature", "v1,y"))), "2 requests more", "does not end"},
		{"a new id", failed(after(id("msg_2"))), "msg_2", ""},
	})
}

func TestAResendLeavesTheScheduleAlone(t *testing.T) {
	alone := []part{try(plainName, 0, 500), try(plainName, 5*time.Second, 500), try(plainName, 65*time.Second, 500)}
	begin := func(more ...part) *evidence.Transcript {
		return recordedBy(short(), append([]part{alone[0], alone[1], alone[2], fact{factBehind, "1"}, try(failedName, 0, 500), moment(resentFact+failedName, 2*time.Second)}, more...)...)
	}
	at := func(d time.Duration) part { return try(failedName, d, 500) }
	tell(t, judgeScheduleUntouched, map[string]*evidence.Transcript{
		"one at once, the others when they are due": begin(at(2*time.Second), at(5*time.Second), at(65*time.Second)),
	}, []wrongly{
		{"it uses one up", begin(at(2*time.Second), at(5*time.Second)), "1 attempt came", "counts as one"},
		{"it cancels all", begin(at(2 * time.Second)), "none came", "takes the place"},
		{"it begins anew", begin(at(2*time.Second), at(5*time.Second), at(7*time.Second), at(65*time.Second), at(67*time.Second)), "4 attempts came", "anew"},
		{"it moves the next one", begin(at(2*time.Second), at(7*time.Second), at(67*time.Second)), "1s late", "sets the time"},
		{"it only makes it due", begin(at(5*time.Second), at(65*time.Second)), "none came before", "waits"},
	})
	for name, tr := range map[string]*evidence.Transcript{
		"it is always early":       recordedBy(short(), alone[0], try(plainName, 2*time.Second, 500), try(plainName, 33*time.Second, 500), fact{factBehind, "1"}, try(failedName, 0, 500), moment(resentFact+failedName, time.Second), at(time.Second), at(2*time.Second), at(33*time.Second)),
		"it always gives up early": recordedBy(short(), alone[0], alone[1], fact{factBehind, "1"}, try(failedName, 0, 500), moment(resentFact+failedName, time.Second), at(time.Second), at(5*time.Second)),
	} {
		if got := judgeScheduleUntouched(tr); len(got) != 0 {
			t.Errorf("%s, which other rows tell: %+v", name, got)
		}
	}
	late := recordedBy(short(), fact{factBehind, "2"}, try(failedName, 0, 500), try(failedName, 5*time.Second, 500), moment(resentFact+failedName, 25*time.Second),
		at(25*time.Second), at(65*time.Second))
	if got := judgeScheduleUntouched(late); len(got) != 0 {
		t.Errorf("behind the second attempt: %+v", got)
	}
}

func TestWhatIsReportedOfARange(t *testing.T) {
	for text, want := range map[string]string{"3": "3 came", "there is no such thing": "refused: there is no such thing"} {
		if got := reportRange(recorded(fact{factRange, text})); len(got) != 1 || got[0].Got != want {
			t.Errorf("%q: %+v", text, got)
		}
	}
	if got := reportRange(recorded()); got != nil {
		t.Errorf("of nothing %+v is told", got)
	}
}
