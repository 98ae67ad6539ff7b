package sender

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/conformance/evidence"
)

// notified is what the owner of an endpoint was told, after so long each.
func notified(name string, after ...time.Duration) fact {
	list := []told{}
	for _, d := range after {
		list = append(list, told{start.Add(d), "endpoint.told"})
	}
	text, err := json.Marshal(list)
	if err != nil {
		panic(err)
	}
	return fact{toldFact + name, string(text)}
}

func TestAfter410NothingIsSent(t *testing.T) {
	until := func(more ...part) *evidence.Transcript {
		return recorded(append(these(
			event(goneName, 1, 0, "msg_1"), event(goneName, 2, 0, "msg_2"), event(goneName, 3, 0, "msg_3"), event(goneName, 4, 0, "msg_4"),
			try(goneName, 0, 500), try(goneName, 0, 500, id("msg_2")), try(goneName, 0, 410, id("msg_3"), lasting(second)), event(besideGone, 1, 0, "msg_5"),
		), more...)...)
	}
	beside := try(besideGone, second, 200, id("msg_5"))
	tell(t, judgeGone, map[string]*evidence.Transcript{
		"nothing but at another endpoint": until(beside), "what was on the wire already": until(beside, try(goneName, 500*time.Millisecond, 410)),
		"it was never answered": recorded(try(goneName, 0, 500)),
	}, []wrongly{
		{"the message itself", until(beside, try(goneName, 6*second, 410, id("msg_3"))), "1 attempt came, the first 5s after", "any other failure"},
		{"one that waited", until(beside, try(goneName, 6*second, 410)), "1 attempt came", "on publishing only"},
		{"a later one, at once", until(beside, try(goneName, second, 410, id("msg_4"))), "1 attempt came, the first 0s after", "later event"},
		{"nothing at another endpoint", until(), "none came", "more than the endpoint"},
	})
	tell(t, judgeGoneStatus, map[string]*evidence.Transcript{
		"it is disabled": recorded(fact{statusFact + goneName, "disabled 410"}), "it is deleted": recorded(fact{statusFact + goneName, "deleted "}), "nobody looked": recorded(),
	}, []wrongly{{"it is enabled", recorded(fact{statusFact + goneName, "enabled "}), "enabled", "cannot be read"}})
}

func TestASingleFailureDisablesNothing(t *testing.T) {
	name := answering(404)
	both := these(event(name, 1, 0, "msg_1"), event(name, 2, 0, "msg_2"), try(name, 0, 404))
	tell(t, judgeOnlyGone, map[string]*evidence.Transcript{
		"the next event comes": recorded(append(both, try(name, 0, 200, id("msg_2")), fact{statusFact + name, "enabled "})...),
		"behind the retry":     recorded(append(both, try(name, 5*second, 200), try(name, 5*second, 200, id("msg_2")))...),
	}, []wrongly{
		{"it does not", recorded(append(both, try(name, 5*second, 200))...), "none came", "by a single 404"},
		{"its state says so", recorded(append(both, try(name, 0, 200, id("msg_2")), fact{statusFact + name, "disabled 404"})...), "disabled: 404", "A single 404"},
	})
}

func TestWhatItsOwnerDisabledIsLeftAlone(t *testing.T) {
	tell(t, judgeByOwner, map[string]*evidence.Transcript{
		"nothing comes":                    recorded(try(disabledName, 0, 500), moment(actedFact+disabledName, 0), try(deletedName, 0, 500), moment(actedFact+deletedName, 0)),
		"what was on the wire when it was": recorded(try(disabledName, 0, 500), try(disabledName, second, 500), moment(actedFact+disabledName, 1100*time.Millisecond)),
		"it was not tried":                 recorded(try(disabledName, 0, 500), try(disabledName, 5*second, 500)),
	}, []wrongly{
		{"a retry comes", recorded(try(deletedName, 0, 500), moment(actedFact+deletedName, 0), try(deletedName, 5*second, 500)), "1 attempt came", "on publishing only"},
	})
}

// fails is a failure at an endpoint every so long, from one time to another.
func fails(name string, from, to, every time.Duration) []part {
	var out []part
	for at := from; at <= to; at += every {
		out = append(out, try(name, at, 500))
	}
	return out
}

const day = 24 * hour

func TestAnEndpointThatFailsForDaysIsDisabled(t *testing.T) {
	join := func(lists ...[]part) *evidence.Transcript {
		var all []part
		for _, list := range lists {
			all = append(all, list...)
		}
		return recorded(all...)
	}
	anew := func(last time.Duration) []part { // 4 d of failures, a success, failures again
		return append(append(fails(failsAgain, 0, 4*day, 6*hour), try(failsAgain, 4*day+hour, 200)), fails(failsAgain, 4*day+2*hour, last, 6*hour)...)
	}
	tell(t, judgeAfterDays, map[string]*evidence.Transcript{
		"at the first failure past five days":             join(fails(onlyFails, 0, 5*day+6*hour, 6*hour), anew(9*day+8*hour)),
		"at five days to the second":                      join(fails(onlyFails, 0, 5*day, 6*hour)),
		"what was on the wire then":                       join(fails(onlyFails, 0, 5*day, 6*hour), these(try(onlyFails, 5*day+hour, 500, lasting(10*second)), try(onlyFails, 5*day+hour, 500))),
		"attempts that ended in another order than begun": join(these(try(onlyFails, 0, 500, lasting(15*second)), try(onlyFails, second, 500)), fails(onlyFails, 6*hour, 5*day+6*hour, 6*hour)),
	}, []wrongly{
		{"never", join(fails(onlyFails, 0, 6*day, 6*hour)), "3 attempts came after that failure", "Nothing disables"},
		{"after three days", join(fails(onlyFails, 0, 3*day, 6*hour)), "the last attempt came 72h0m0s after", "shorter time"},
		{"the success changes nothing", join(anew(5*day + 2*hour)), "the last attempt came 24h0m0s after", "anew"},
		{"at the success", join(fails(failsAgain, 0, 4*day, 6*hour), these(try(failsAgain, 4*day+hour, 200))), "no attempt came after", "anew"},
	})
}

func TestTheOwnerIsTold(t *testing.T) {
	failing := fails(onlyFails, 0, 5*day+6*hour, 6*hour)
	with := func(about drive.About, more ...part) *evidence.Transcript {
		return recordedBy(about, append(slices.Clone(failing), more...)...)
	}
	end := 5*day + 6*hour
	tell(t, judgeNotifies, map[string]*evidence.Transcript{
		"on disabling": with(drive.About{}, notified(onlyFails, end)), "soon after": with(drive.About{}, notified(onlyFails, day, end+30*minute)), "nobody looked": with(drive.About{}),
	}, []wrongly{
		{"nothing", with(drive.About{}, notified(onlyFails)), "there are no notifications", "nobody hears"},
		{"only before", with(drive.About{}, notified(onlyFails, day, 3*day)), "24h0m0s after the first failure, endpoint.told 72h0m0s", "nobody hears"},
		{"a day later", with(drive.About{}, notified(onlyFails, end+day)), "nothing was told", "nobody hears"},
	})
	two := drive.About{NotifyAfter: []time.Duration{2 * day, 30 * day}}
	tell(t, judgeNotifiesEarly, map[string]*evidence.Transcript{
		"by the next failures": with(drive.About{}, notified(onlyFails, day+6*hour, 3*day+6*hour)), "at once": with(drive.About{}, notified(onlyFails, day, 3*day, end)),
		"when it is declared": with(two, notified(onlyFails, 2*day+6*hour)), "nobody looked": with(drive.About{}),
	}, []wrongly{
		{"only at disabling", with(drive.About{}, notified(onlyFails, end)), "nothing was told then", "Only disabling"},
		{"not when it is declared", with(two, notified(onlyFails, day)), "nothing was told then", "Only disabling"},
	})
}

func TestRefusedCredentialsAlertAndDoNotHammer(t *testing.T) {
	name := answering(401)
	come := func(next time.Duration, at ...time.Duration) *evidence.Transcript {
		return recorded(try(name, 0, 200), try(name, second, 401, id("msg_2")), try(name, second+next, 401, id("msg_2")), notified(name, at...))
	}
	tell(t, judgeCredentials, map[string]*evidence.Transcript{
		"at once": come(5*second, second), "within the day": come(5*second, 3*hour), "nobody looked": recorded(try(name, 0, 200), try(name, second, 401, id("msg_2"))),
	}, []wrongly{
		{"nothing is told", come(5 * second), "nothing was told", "any other failure"},
		{"what was told before", come(5*second, -hour), "nothing was told", "any other failure"},
		{"it is hammered", come(time.Millisecond, second), "after 1ms", "at once"},
	})
}

func TestAnEndpointThatIsEnabledAgainGetsItsEvents(t *testing.T) {
	begin := func(more ...part) *evidence.Transcript {
		return recorded(append(these(event(goneOnce, 1, 0, "msg_1"), event(goneOnce, 2, 0, "msg_2"), event(goneOnce, 3, 0, "msg_3"),
			try(goneOnce, 0, 410), fact{enabledFact + goneOnce, start.Format(time.RFC3339Nano) + " 1"}), more...)...)
	}
	second2, third := id("msg_2"), id("msg_3")
	tell(t, judgeReEnable, map[string]*evidence.Transcript{
		"with one failure":            begin(try(goneOnce, 0, 500, second2), try(goneOnce, 0, 200, third), try(goneOnce, 5*second, 200, second2)),
		"with the old message before": begin(try(goneOnce, 0, 500), try(goneOnce, 0, 200, second2), try(goneOnce, 0, 200, third), try(goneOnce, 5*second, 200)),
		"it was not tried":            recorded(try(goneOnce, 0, 410)),
	}, []wrongly{
		{"nothing comes", begin(), "no attempt came", "what is claimed"},
		{"one failure disables it", begin(try(goneOnce, 0, 500, second2)), "1 attempt came, and nothing was delivered", "is kept"},
		{"one of them is missing", begin(try(goneOnce, 0, 500, second2), try(goneOnce, 0, 200, third)), "2 attempts came", "is kept"},
		{"it cannot be", recorded(try(goneOnce, 0, 410), fact{enableFact + goneOnce, "no"}), "the sender refuses: no", ""},
	})
}
