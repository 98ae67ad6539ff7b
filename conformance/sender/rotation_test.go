package sender

import (
	"testing"
	"time"

	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/conformance/evidence"
)

func TestBothSecretsSignForAWhile(t *testing.T) {
	const rotated = 10 * time.Second
	begin := func(more ...part) *evidence.Transcript {
		parts := []part{
			try(plainName, 0, 200), try(pendingName, 0, 200), event(pendingName, 1, 0, "msg_1"),
			event(pendingName, 2, 8*time.Second, "msg_2"), try(pendingName, 8*time.Second, 500, id("msg_2")),
			moment(rotatedFact+plainName+" 2", rotated), moment(rotatedFact+pendingName+" 2", rotated),
		}
		return recorded(append(parts, more...)...)
	}
	both := by("secret 1", "secret 2")
	fresh := func(after time.Duration, who func(*attempt)) part {
		return try(plainName, after, 200, id("msg_3"), who)
	}
	retry := func(who func(*attempt)) part { return try(pendingName, 13*time.Second, 200, id("msg_2"), who) }
	tell(t, judgeBothSign, map[string]*evidence.Transcript{
		"both, on a new event and on a retry":   begin(fresh(rotated, both), retry(both)),
		"the new one alone after a minute":      begin(fresh(rotated, both), retry(both), fresh(rotated+leastOverlap+time.Second, by("secret 2"))),
		"a third one beside them":               begin(fresh(rotated, by("secret 1", "secret 2", "secret 3")), retry(both)),
		"before the rotation the old one alone": begin(retry(both)),
	}, []wrongly{
		{"the old one alone", begin(fresh(rotated, by("secret 1")), retry(both)), "signed by secret 1 alone", "cache"},
		{"the new one alone", begin(fresh(rotated, by("secret 2")), retry(both)), "signed by secret 2 alone", "at once"},
		{"the new one alone on the retry", begin(fresh(rotated, both), retry(by("secret 2"))), "signed by secret 2 alone", "Pending retries"},
		{"half a minute later the new one alone", begin(fresh(rotated, both), retry(both), fresh(rotated+leastOverlap/2, by("secret 2"))), "secret 2 alone", ""},
		{"none", begin(fresh(rotated, by()), retry(both)), "does not verify", "joined"},
	})
	overlap := time.Hour
	declared := recordedBy(drive.About{RotationOverlap: &overlap}, try(plainName, 0, 200), moment(rotatedFact+plainName+" 2", rotated), fresh(50*time.Minute, by("secret 2")))
	if len(judgeBothSign(declared)) != 1 {
		t.Error("who declares an hour is not held to it")
	}
}

func TestTheOldSecretSignsNoMoreAfterTheOverlap(t *testing.T) {
	begin := func(more ...part) *evidence.Transcript {
		return recorded(append([]part{try(plainName, 0, 200), moment(rotatedFact+plainName+" 2", 0)}, more...)...)
	}
	late := func(who func(*attempt)) part { return try(plainName, 25*time.Hour, 200, who) }
	tell(t, judgeOverlapEnds, map[string]*evidence.Transcript{"the new one alone": begin(late(by("secret 2")))}, []wrongly{
		{"both still", begin(late(by("secret 1", "secret 2"))), "old secret signs still", "expiry"},
		{"the old one alone", begin(late(by("secret 1"))), "old secret signs still", ""},
		{"none", begin(late(by())), "does not verify", "not used"},
		{"nothing came", begin(), "none came", ""},
	})
}

func TestTheTwoNewestSecretsSignAfterTwoRotations(t *testing.T) {
	begin := func(who ...string) *evidence.Transcript {
		return recorded(try(plainName, 0, 200), try(plainName, time.Minute, 200, by(who...)))
	}
	tell(t, judgeTwice, map[string]*evidence.Transcript{"the two": begin("secret 2", "secret 3"), "all three": begin("secret 1", "secret 2", "secret 3")}, []wrongly{
		{"the first and the last", begin("secret 1", "secret 3"), "secret 1, secret 3", "One place"},
		{"the last alone", begin("secret 3"), "secret 3 alone", "newest secret alone"},
		{"the first two", begin("secret 1", "secret 2"), "secret 1, secret 2", "second new secret is not used"},
		{"nothing came", recorded(try(plainName, 0, 200)), "none came", ""},
	})
}
