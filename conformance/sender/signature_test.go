package sender

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/reference/signature"
)

func TestEveryAttemptVerifies(t *testing.T) {
	tell(t, judgeVerifies, alright(try(plainName, 0, 200), try(retriedName, 0, 500), try(retriedName, 5*time.Second, 200, by("secret 2"))), []wrongly{
		{"the only one", one(by()), "it does not verify: no-match", ""},
		{"with what was signed instead", one(by(), hint("the signature covers an empty body")), "no-match", "The signature covers an empty body."},
		{"the retry alone", recorded(try(retriedName, 0, 500), try(retriedName, 5*time.Second, 200, by())), "no-match", ""},
	})
}

func TestTheFormOfSignaturesIsTheProfiles(t *testing.T) {
	sum := strings.Repeat("A", 43) + "="
	long := strings.Repeat("A", 86) + "=="
	digits := strings.Repeat("0a", 32)
	for _, tt := range []struct {
		name       string
		spec       signature.Spec
		value      string
		got, cause string
	}{
		{"one token", signature.StandardWebhooks(), "v1," + sum, "", ""},
		{"two", signature.StandardWebhooks(), "v1," + sum + " v1," + sum, "", ""},
		{"an asymmetric one", signature.StandardWebhooks(), "v1a," + long, "", ""},
		{"an unknown version beside", signature.StandardWebhooks(), "v2,anything v1," + sum, "", ""},
		{"an unknown version alone", signature.StandardWebhooks(), "v2,anything", "no token v1,", "label"},
		{"no label", signature.StandardWebhooks(), sum, "without a version", "joined"},
		{"a comma between", signature.StandardWebhooks(), "v1," + sum + ",v1," + sum, "no padded standard base64", ""},
		{"url-safe", signature.StandardWebhooks(), "v1," + strings.Repeat("A", 42) + "-=", "no padded standard base64", "url-safe"},
		{"no padding", signature.StandardWebhooks(), "v1," + strings.Repeat("A", 43), "no padded standard base64", "padding"},
		{"hexadecimal", signature.StandardWebhooks(), "v1," + digits, "48 bytes instead of 32", "hexadecimal where base64"},
		{"SHA-512", signature.StandardWebhooks(), "v1," + long, "64 bytes instead of 32", "Another hash"},
		{"SHA-1", signature.StandardWebhooks(), "v1," + strings.Repeat("A", 27) + "=", "20 bytes instead of 32", "Another hash"},
		{"an asymmetric one that is short", signature.StandardWebhooks(), "v1a," + sum, "32 bytes instead of 64", ""},
		{"an equals sign", signature.StandardWebhooks(), "v1=" + sum, "without a version", ""},

		{"time and digits", signature.DeliveryEnvelope(), "t=1767225600,v1=" + digits, "", ""},
		{"two of them", signature.DeliveryEnvelope(), "t=1767225600,v1=" + digits + ",v1=" + digits, "", ""},
		{"others beside", signature.DeliveryEnvelope(), "t=1767225600,v0=x,v1=" + digits, "", ""},
		{"base64", signature.DeliveryEnvelope(), "t=1767225600,v1=" + sum, "no hexadecimal", "base64"},
		{"cut", signature.DeliveryEnvelope(), "t=1767225600,v1=" + digits[:40], "40 digits instead of 64", "cut"},
		{"a date", signature.DeliveryEnvelope(), "t=2026-01-01,v1=" + digits, "no whole number", ""},
		{"the time alone", signature.DeliveryEnvelope(), "t=1767225600", "no token v1=", ""},
	} {
		got, cause := formOf(tt.spec).wrong(tt.value)
		if !strings.Contains(got, tt.got) || (got == "") != (tt.got == "") || !strings.Contains(cause, tt.cause) {
			t.Errorf("%s: found is %q because %q", tt.name, got, cause)
		}
	}
	tell(t, judgeTokens, alright(try(plainName, 0, 200)), []wrongly{
		{"no header", one(without("webhook-signature")), "there is no webhook-signature", ""},
		{"another form on the retry", recorded(try(retriedName, 0, 500), try(retriedName, 5*time.Second, 200, with("webhook-signature", "v1,AAAA"))), "3 bytes", ""},
	})
}

func TestIDsDifferFromEventToEvent(t *testing.T) {
	tell(t, judgeIDs, map[string]*evidence.Transcript{
		"different ones":                recorded(try(plainName, 0, 200, id("msg_1")), try(plainName, 0, 200, id("msg_2"))),
		"the same on a retry elsewhere": recorded(try(retriedName, 0, 500, id("msg_1")), try(retriedName, 5*time.Second, 200, id("msg_1"))),
	}, []wrongly{
		{"one for two events", recorded(try(plainName, 0, 200), try(plainName, 0, 200)), "again, of another event", "anew"},
		{"a full stop", one(id("msg.1")), "full stop", ""},
		{"a blank", one(id("msg 1")), `' '`, ""},
		{"beyond ASCII", one(id("msg_é")), `'é'`, ""},
		{"none", one(id("")), "no id", ""},
	})
}

func TestTimestampsAreThoseOfTheAttempt(t *testing.T) {
	stamped := func(text string) *evidence.Transcript { return one(with("webhook-timestamp", text)) }
	at := func(d time.Duration) string { return strconv.FormatInt(start.Add(d).Unix(), 10) }
	tell(t, judgeTimestamps, map[string]*evidence.Transcript{
		"now": one(), "5 s before": stamped(at(-5 * time.Second)), "5 s ahead": stamped(at(5 * time.Second)),
		"the first one's on a retry, which another row tells": recorded(try(retriedName, 0, 500), try(retriedName, 10*time.Minute, 200, with("webhook-timestamp", at(0)))),
		"on a retry": recorded(try(retriedName, 0, 500), try(retriedName, 30*time.Hour, 200)),
	}, []wrongly{
		{"6 s before", stamped(at(-6 * time.Second)), "6s off", ""},
		{"the event's", stamped(at(-eventAge)), "1m30s off", "the event"},
		{"milliseconds", stamped(strconv.FormatInt(start.UnixMilli(), 10)), "in milliseconds", "count milliseconds"},
		{"a fraction", stamped(at(0) + ".5"), "the timestamp is", "fraction"},
		{"a date", stamped(start.Format(time.RFC3339)), "the timestamp is", ""},
		{"a sign", stamped("+" + at(0)), "the timestamp is", "sign"},
		{"none", one(without("webhook-timestamp")), "no timestamp", ""},
		{"another time on a retry", recorded(try(retriedName, 0, 500), try(retriedName, 10*time.Minute, 200, with("webhook-timestamp", at(time.Minute)))), "9m0s off", ""},
	})
	f := formOf(signature.DeliveryEnvelope())
	a := try(plainName, 0, 200, with("Webhook-Signature", "t=1767323045,v1=00")).attempt
	if text, ok := f.timestamp(&a); !ok || text != "1767323045" {
		t.Errorf("the timestamp in the signature header is %q, %t", text, ok)
	}
}

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func TestWhatPublishingAcceptsVerifies(t *testing.T) {
	published := func(n int, id, text, what string) []part {
		return []part{event(contentName, n, 0, id), fact{fmt.Sprintf("%s%d", contentFact, n), digestOf(text) + " " + what}}
	}
	both := func(more ...part) *evidence.Transcript {
		parts := append(published(1, "msg_1", "{}", "an empty object"), published(2, "msg_2", "[1.0]", "a list")...)
		return recorded(append(parts, more...)...)
	}
	first := try(contentName, 0, 200, id("msg_1"), body("{}"))
	tell(t, judgeContents, map[string]*evidence.Transcript{
		"in any order":                   both(try(contentName, 0, 200, id("msg_2"), body("[1.0]")), first),
		"in other bytes":                 both(first, try(contentName, 0, 200, id("msg_2"), body("[1]"))),
		"other ids than publishing told": both(try(contentName, 0, 200, id("x_1"), body("{}")), try(contentName, 0, 200, id("x_2"), body("[1]"))),
	}, []wrongly{
		{"one does not verify", both(first, try(contentName, 0, 200, id("msg_2"), body("[1.0]"), by())), "no-match", ""},
		{"it was written again behind the signature", both(first, try(contentName, 0, 200, id("msg_2"), body("[1]"), by())), "no-match", "Other bytes arrive"},
		{"with what was signed", both(first, try(contentName, 0, 200, id("msg_2"), body("[1]"), by(), hint("the signature covers the JSON as X writes it"))), "no-match", "as X writes it"},
		{"one never came", both(first), "never came", "accepted"},
		{"one that nobody can name does not verify", both(first, try(contentName, 0, 200, id("x_2"), body("[1]"), by())), "no-match", ""},
	})
	if got := judgeContents(both(first)); got[0].Sent != "a list" {
		t.Errorf("it is called %q", got[0].Sent)
	}
	got := reportRefused(recorded(fact{declinedFact + "nothing", "empty"}, fact{declinedFact + "gzip", "no JSON"}))
	if len(got) != 2 || got[0].Sent != "gzip" || got[1].Got != "publishing refuses it: empty" {
		t.Errorf("told is %+v", got)
	}
}

func TestSecretsHaveTheProfilesFormAndAreNotShared(t *testing.T) {
	secret := func(n int, text string) fact { return fact{fmt.Sprintf("%sendpoint %d 1", secretFact, n), text} }
	tell(t, judgeSecretForm, alright(secret(1, secretWell), secret(2, secretWell)), []wrongly{
		{"too short", recorded(secret(1, secretWell), secret(2, "it is too short; expected is whsec_…")), "too short", "bytes"},
	})
	tell(t, judgeShared, alright(fact{factShared, ""}), []wrongly{
		{"two alike", recorded(fact{factShared, "endpoint 1 and endpoint 2;endpoint 1 and endpoint 3"}), "same secret", "configuration"},
	})
}

func TestAnAsymmetricSignatureVerifiesUnderThePublicKey(t *testing.T) {
	public := fact{factPublic, "secret 2"}
	token := with("webhook-signature", goodSignature+" v1a,"+strings.Repeat("A", 86)+"==")
	tell(t, judgeEd25519, alright(public, try(asymmetricName, 0, 200, token, by("secret 1", "secret 2"))), []wrongly{
		{"a wrong one", recorded(public, try(asymmetricName, 0, 200, token, by("secret 1"))), "v1a signature does not verify", "exported"},
		{"none", recorded(public, try(asymmetricName, 0, 200, by("secret 1"))), "no such signature", ""},
	})
}

func TestTheCorpusHasEverySizeAndNoLabelTwice(t *testing.T) {
	for _, id := range []string{"", "whd_1"} {
		list, err := contents("whconform.s1", id, start)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		sizes := map[int]bool{}
		for _, c := range list {
			if seen[c.what] || c.body == nil {
				t.Errorf("%q is there twice, or has no body", c.what)
			}
			seen[c.what], sizes[len(c.body)] = true, true
		}
		for _, n := range []int{0, 1, 20 << 10, 64 << 10, 64<<10 + 1, 256 << 10, 1 << 20} {
			if !sizes[n] {
				t.Errorf("nothing has %d bytes", n)
			}
		}
		if len(list) < 40 {
			t.Errorf("there are %d only", len(list))
		}
	}
}
