package sender

import (
	"fmt"
	"testing"
	"time"

	"github.com/whconform/whconform/conformance/evidence"
)

func TestMessagesSurviveAKill(t *testing.T) {
	fresh := func(n int, from int) []part {
		var parts []part
		for i := range n {
			parts = append(parts, event(publishedName, i+1, 0, fmt.Sprintf("msg_p%d", i)))
			if i >= from {
				parts = append(parts, try(publishedName, time.Second, 200, id(fmt.Sprintf("msg_p%d", i))))
			}
		}
		return parts
	}
	flying := []part{event(inFlightName, 1, 0, "msg_f"), try(inFlightName, 0, 0, id("msg_f"), unanswered("closed"))}
	landed := append(flying, try(inFlightName, time.Minute, 200, id("msg_f")))
	waiting := []part{event(waitingName, 1, 0, "msg_w"), try(waitingName, 0, 500, id("msg_w"))}
	waited := append(waiting, try(waitingName, 6*time.Second, 200, id("msg_w")))
	with := func(lists ...[]part) *evidence.Transcript {
		var parts []part
		for _, l := range lists {
			parts = append(parts, l...)
		}
		return recorded(parts...)
	}
	again := append(append([]part{}, fresh(3, 0)...), try(publishedName, 2*time.Second, 200, id("msg_p0")))
	tell(t, judgeSurvivesKill, map[string]*evidence.Transcript{
		"all arrive": with(fresh(3, 0), landed, waited), "one that was under way comes twice": with(again, landed, waited),
		"a schedule without retries":        with(fresh(3, 0), landed),
		"ids that publishing does not tell": recorded(event(publishedName, 1, 0, "1"), event(publishedName, 2, 0, "2"), try(publishedName, 0, 200, id("a")), try(publishedName, 0, 200, id("b"))),
		"new ids without a kill, too":       with(fresh(3, 0), []part{try(calmName, 0, 500, id("msg_a")), try(calmName, 5*time.Second, 200, id("msg_b"))}, append(flying, try(inFlightName, time.Minute, 200, id("msg_g"))), waited),
	}, []wrongly{
		{"what was published is lost", with(fresh(3, 3), landed, waited), "3 events never came", "in memory"},
		{"one of them is lost", with(fresh(3, 1), landed, waited), "1 event never came", "in memory"},
		{"what was under way is lost", with(fresh(3, 0), flying, waited), "none came", "never released"},
		{"the retry is lost", with(fresh(3, 0), landed, waiting), "none came", "timers"},
		{"the retry comes twice", with(fresh(3, 0), landed, append(waited, try(waitingName, 7*time.Second, 200, id("msg_w")))), "2 requests", "taken up"},
		{"under a new id", with(fresh(3, 0), append(flying, try(inFlightName, time.Minute, 200, id("msg_g"))), waited), "msg_g", "new message"},
		{"in other bytes", with(fresh(3, 0), landed, append(waiting, try(waitingName, 6*time.Second, 200, id("msg_w"), body("{}")))), "other bytes", "when it is sent"},
	})
}

func TestTransactionsDecide(t *testing.T) {
	tell(t, judgeTransactional, alright(try(committedName, 0, 200)), []wrongly{
		{"what was rolled back is sent", recorded(try(committedName, 0, 200), try(rolledBackName, 0, 200)), "1 request", "before the transaction ends"},
	})
	begin := func(ids ...string) *evidence.Transcript {
		parts := []part{event(committedName, 1, 0, "msg_1"), event(committedName, 2, 0, "msg_2")}
		for _, i := range ids {
			parts = append(parts, try(committedName, 0, 200, id(i)))
		}
		return recorded(parts...)
	}
	tell(t, judgeCommitted, map[string]*evidence.Transcript{"both": begin("msg_1", "msg_2"), "one of them twice": begin("msg_1", "msg_1", "msg_2"), "ids that publishing does not tell": begin("a", "a")}, []wrongly{
		{"one is lost", begin("msg_1", "msg_1"), "1 were delivered", "handed over"},
		{"both are", begin(), "0 were delivered", "handed over"},
	})
}

func TestEndpointsGetTheirTypes(t *testing.T) {
	begin := func(more ...part) *evidence.Transcript {
		return recorded(append([]part{event("of a", 1, 0, "msg_1"), event("of ab", 1, 0, "msg_2"), try("of a", 0, 200, id("msg_1"))}, more...)...)
	}
	second := try("of ab", 0, 200, id("msg_2"))
	tell(t, judgeFilter, map[string]*evidence.Transcript{"each its own": begin(second)}, []wrongly{
		{"one gets none", begin(), "none came", "patterns"},
		{"one gets both", begin(second, try("of a", 0, 200, id("msg_2"))), "1 request too many", "beginnings"},
	})
	tell(t, judgeFanOut, alright(try("first", 0, 200, id("msg_1")), try("second", 0, 200, id("msg_2"))), []wrongly{
		{"the first alone", recorded(try("first", 0, 200)), "none came", "first endpoint settles"},
		{"one of them twice", recorded(try("first", 0, 200), try("second", 0, 200), try("second", 0, 200, id("msg_3"))), "2 attempts", "once for each"},
		{"by another's secret", recorded(try("first", 0, 200), try("second", 0, 200, by(), hint(`it is signed with the secret of another endpoint, "first"`))), "does not verify", "another endpoint"},
	})
}

func TestTwoDispatchersDoNotSendOneMessageTwice(t *testing.T) {
	long := lasting(time.Second)
	tell(t, judgeTwoDispatchers, map[string]*evidence.Transcript{
		"one after the other":     recorded(try("endpoint 1", 0, 500, long), try("endpoint 1", 6*time.Second, 200, long)),
		"two messages beside":     recorded(try("endpoint 1", 0, 200, long), try("endpoint 1", 0, 200, long, id("msg_2"))),
		"at once after a failure": recorded(try("endpoint 1", 0, 500, long), try("endpoint 1", time.Second, 200, long)),
	}, []wrongly{
		{"at one moment", recorded(try("endpoint 1", 0, 200, long), try("endpoint 1", 0, 200, long)), "another one 0s after", "same due rows"},
		{"overlapping", recorded(try("endpoint 1", 0, 500, long), try("endpoint 1", 999*time.Millisecond, 200, long)), "another one 999ms after", "same due rows"},
		{"after a success", recorded(try("endpoint 1", 0, 200, long), try("endpoint 1", 2*time.Second, 200, long)), "another one came", "does not see"},
		{"nothing at all", recorded(), "none came", ""},
	})
}
