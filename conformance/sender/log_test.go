package sender

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/reference/wire"
)

// lines is a delivery log in a hand-made transcript.
func lines(list ...logged) part {
	text, err := json.Marshal(list)
	if err != nil {
		panic(err)
	}
	return fact{logFact + loggedName, string(text)}
}

func TestTheLogShowsEveryAttempt(t *testing.T) {
	seen := []part{
		try(loggedName, 0, 500, answered(errorBody)), try(loggedName, 5*time.Second, 0, unanswered(wire.FaultClosed)),
		try(loggedName, 6*time.Minute, 503, lasting(3*time.Second)), try(loggedName, 40*time.Minute, 200, answered("thanks")),
	}
	right := func() []logged {
		return []logged{
			{At: start, Status: 500, Body: errorBody, Size: len(errorBody)}, {At: start.Add(5 * time.Second), Error: "connection closed"},
			{At: start.Add(6 * time.Minute), Status: 503, Duration: 3 * time.Second}, {At: start.Add(40 * time.Minute), Status: 200},
		}
	}
	logging := func(change func(l []logged) []logged) *evidence.Transcript {
		return recorded(append(seen, lines(change(right())...))...)
	}
	set := func(i int, change func(*logged)) *evidence.Transcript {
		return logging(func(l []logged) []logged { change(&l[i]); return l })
	}
	tell(t, judgeLog, map[string]*evidence.Transcript{
		"as it was":           logging(func(l []logged) []logged { return l }),
		"the newest first":    logging(func(l []logged) []logged { return []logged{l[3], l[2], l[1], l[0]} }),
		"in whole seconds":    set(0, func(l *logged) { l.At = l.At.Add(900 * time.Millisecond) }),
		"an error in words":   set(0, func(l *logged) { l.Error = "500 Internal Server Error" }),
		"more of the body":    set(0, func(l *logged) { l.Body += " and more" }),
		"the success's body":  set(3, func(l *logged) { l.Body = "thanks" }),
		"with another's zone": set(0, func(l *logged) { l.At = l.At.In(time.FixedZone("", 3600)) }),
	}, []wrongly{
		{"no log", recorded(seen...), "there is no log", ""},
		{"the last one alone", logging(func(l []logged) []logged { return l[3:] }), "1 line", "last attempt"},
		{"only what was answered", logging(func(l []logged) []logged { return []logged{l[0], l[2], l[3]} }), "3 lines", "without an answer"},
		{"two lines for one", logging(func(l []logged) []logged { return append(l, l[3]) }), "5 lines", "begins"},
		{"another status", set(0, func(l *logged) { l.Status = 200 }), "200", ""},
		{"a status that never came", set(1, func(l *logged) { l.Status = 599 }), "599", "made up"},
		{"no error where nothing came", set(1, func(l *logged) { l.Error = " " }), "none", "dropped"},
		{"the time of the event", set(3, func(l *logged) { l.At = start }), "03:04:05", "first attempt"},
		{"milliseconds as seconds", set(2, func(l *logged) { l.Duration = 3000 * time.Second }), "50m0s", "unit"},
		{"no duration", set(2, func(l *logged) { l.Duration = 0 }), "0s", ""},
		{"no error body", set(0, func(l *logged) { l.Body = "" }), `""`, "only after a success"},
	})
}

func TestFailedMessagesAreListed(t *testing.T) {
	begin := func(failed, delivered, wrong string) *evidence.Transcript {
		return recorded(event(failedName, 1, 0, "msg_f"), event(deliveredName, 1, 0, "msg_d"),
			fact{inListFact + "failed " + failedName, failed}, fact{inListFact + "delivered " + deliveredName, delivered}, fact{inListFact + "failed " + deliveredName, wrong})
	}
	tell(t, judgeFailedList, map[string]*evidence.Transcript{"each where it belongs": begin("msg_f", "msg_d", ""), "among others": begin("msg_x msg_f", "msg_d", "")}, []wrongly{
		{"the failed one is missing", begin("", "msg_d", ""), "0 other messages", "deleted"},
		{"the delivered one is missing", begin("msg_f", "", ""), "0 other messages", "at once"},
		{"of all endpoints", begin("msg_f", "msg_d", "msg_f"), "1 message", "endpoint"},
	})
	kept := func(list string) *evidence.Transcript {
		return recorded(event(failedName, 1, 0, "msg_f"), fact{factKept, "720h0m0s"}, fact{inListFact + "failed " + failedName, list})
	}
	tell(t, judgeFailedKept, map[string]*evidence.Transcript{"still there": kept("msg_f")}, []wrongly{{"gone", kept("msg_x"), "gone", "deletes"}})
}
