package sender

import (
	"testing"

	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/conformance/evidence"
)

// took is how much of an answer went over the wire, and how the sender ended it.
func took(written int64, peer string) func(*attempt) {
	return func(a *attempt) { a.Written, a.Peer = written, peer }
}

func TestHugeBodiesAreReadInPart(t *testing.T) {
	plain, packed := hugeProbes()[0], hugeProbes()[2]
	const some = 700 << 10
	gzip := with("Accept-Encoding", "gzip")
	tell(t, judgeHuge, map[string]*evidence.Transcript{
		"a part of each": recorded(try(plain.name(200), 0, 200, took(some, "closed")), try(plain.name(500), 0, 500, took(some, "reset")), try(plain.name(500), 5*second, 200)),
		"a packed one whole, by a client that does not unpack": recorded(try(packed.name(200), 0, 200, took(1<<20, ""))),
		"the start of a packed one":                            recorded(try(packed.name(200), 0, 200, took(some, "closed"), gzip)),
	}, []wrongly{
		{"all of it", recorded(try(plain.name(200), 0, 200, took(1<<30, ""))), "1024 MiB", "without a limit"},
		{"9 MiB of it", recorded(try(plain.name(200), 0, 200, took(9<<20, "closed"))), "9 MiB", "without a limit"},
		{"a packed one whole, by a client that unpacks", recorded(try(packed.name(200), 0, 200, took(1<<20, ""), gzip)), "expand to 1 GiB", "unpacks"},
		{"the success counts as failed", recorded(try(plain.name(200), 0, 200), try(plain.name(200), 5*second, 200)), "2 requests", "a failure"},
		{"the failure ends the message", recorded(try(plain.name(500), 0, 500)), "none came", "not caught"},
		{"it reads for ever", recorded(open(plain.name(200), 1)), "still reading", "without a limit"},
	})
}

func TestEndlessHeadersAreAFailure(t *testing.T) {
	lines := headerProbes()[0].name
	right := these(try(aliveName, second, 200))
	tell(t, judgeEndlessHeaders, map[string]*evidence.Transcript{
		"it is tried again": recorded(append(right, try(lines, 0, 0, unanswered("reset")), try(lines, 5*second, 200))...),
	}, []wrongly{
		{"they are read", recorded(append(right, try(lines, 0, 200, took(16<<20, "")))...), "16 MiB was read", "limit for headers"},
		{"they end the message", recorded(append(right, try(lines, 0, 0, unanswered("reset")))...), "none came", "not caught"},
		{"they end the sender", recorded(try(lines, 0, 0, unanswered("reset")), try(lines, 5*second, 200)), "none came", "has ended"},
	})
}

func TestWhatIsReportedOfABodyThatNeverEnds(t *testing.T) {
	for name, tt := range map[string]struct {
		t    *evidence.Transcript
		want string
	}{
		"settled at once": {recorded(try(trickleName, 0, 200), fact{listedFact + trickleName, "delivered"}), `the attempt ended after 0s, and the message was not sent again; it is listed as "delivered"`},
		"sent again":      {recorded(try(trickleName, 0, 200, lasting(15*second)), try(trickleName, 20*second, 200)), "the attempt ended after 15s, and the message was sent again"},
		"never over":      {recorded(open(trickleName, 1)), "the attempt was still reading at the end of the scenario"},
	} {
		if got := judgeTrickle(tt.t); len(got) != 1 || got[0].Got != tt.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := judgeTrickle(recorded()); got != nil {
		t.Errorf("of nothing %+v is told", got)
	}
}

func TestTheLogKeepsTheStartOfABody(t *testing.T) {
	kept := 4096
	tell(t, judgeStored, map[string]*evidence.Transcript{
		"a KiB": recorded(number(storedFact, 1024)), "a KiB and a mark": recorded(number(storedFact, 1027)), "nothing": recorded(number(storedFact, 0)),
		"what is declared": recordedBy(drive.About{ErrorBodyKept: &kept}, number(storedFact, 4096)),
	}, []wrongly{{"all of it", recorded(number(storedFact, 65536)), "65536 bytes", "cut nowhere"}})
}

func TestRedirectsAreFailuresAndNotFollowed(t *testing.T) {
	name := answering(302)
	twice := these(try(name, 0, 302), try(name, 5*second, 302))
	tell(t, judgeNotFollowed, map[string]*evidence.Transcript{"nobody is in the trap": recorded(twice...)}, []wrongly{
		{"somebody is", recorded(append(twice, try(name+trapName, 0, 200, method("GET")), try(name+trapName, 0, 200))...), "2 requests there, by GET and POST", "follows redirects"},
		{"nothing came", recorded(event(name, 1, 0)), "nothing came", ""},
	})
	tell(t, judgeRedirectFails, map[string]*evidence.Transcript{"it is tried again": recorded(twice...)}, []wrongly{
		{"it is not", recorded(twice[0]), "no second request", "taken for a success"},
		{"it is followed", recorded(twice[0], try(name+trapName, 0, 200)), "no second request", "followed"},
	})
	logged := func(text string, more ...part) *evidence.Transcript {
		return recorded(append(these(fact{loggedFact + name, text}), append(twice, more...)...)...)
	}
	tell(t, judgeRedirectLogged, map[string]*evidence.Transcript{"with its status": logged("302 302 200"), "nobody looked": recorded(twice...)}, []wrongly{
		{"as a success", logged("200", try(name+trapName, 0, 200)), "the status 200", "followed"},
		{"without a status", logged("0 0"), "the status 0", "not its status"},
		{"not at all", logged(""), "no attempt at all", "not its status"},
	})
}
