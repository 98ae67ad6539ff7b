package signature_test

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/whconform/whconform/reference/signature"
	"github.com/whconform/whconform/reference/wire"
)

// change is a case: the documented delivery, changed, and the rule by which it
// must be refused; an empty rule means that it must be accepted.
type change struct {
	name string
	make func(r *wire.Request)
	rule string
}

func set(name, value string) func(*wire.Request) {
	return func(r *wire.Request) { r.Headers = wire.Set(r.Headers, name, value) }
}

func drop(name string) func(*wire.Request) {
	return func(r *wire.Request) { r.Headers = wire.Drop(r.Headers, name) }
}

func repeat(name, value string) func(*wire.Request) {
	return func(r *wire.Request) { r.Headers = append(r.Headers, wire.Header{Name: name, Value: value}) }
}

// tokens writes the signature header; SIG stands for the right token.
func tokens(text string) func(*wire.Request) {
	return set("webhook-signature", strings.ReplaceAll(text, "SIG", exampleSig))
}

func exampleMAC() []byte {
	mac, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(exampleSig, "v1,"))
	if err != nil {
		panic(err) // a constant of this test
	}
	return mac
}

func std(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

func standardChanges() []change {
	mac := exampleMAC()
	text := strings.TrimPrefix(exampleSig, "v1,")
	foreign := "v1," + std(make([]byte, 32))
	return []change{
		{"nothing changed", func(*wire.Request) {}, ""},
		{"names in another case", func(r *wire.Request) {
			for i := range r.Headers {
				r.Headers[i].Name = strings.ToUpper(r.Headers[i].Name)
			}
		}, ""},

		{"no id", drop("webhook-id"), signature.RuleMissingID},
		{"an empty id", set("webhook-id", ""), signature.RuleMissingID},
		{"no timestamp", drop("webhook-timestamp"), signature.RuleMissingTimestamp},
		{"an empty timestamp", set("webhook-timestamp", ""), signature.RuleMissingTimestamp},
		{"no signature", drop("webhook-signature"), signature.RuleMissingSignature},
		{"an empty signature", set("webhook-signature", ""), signature.RuleMissingSignature},
		{"no headers at all", func(r *wire.Request) { r.Headers = nil }, signature.RuleMissingID},
		{"the id twice, with equal values", repeat("Webhook-Id", exampleID), signature.RuleRepeatedHeader},
		{"the timestamp twice", repeat("webhook-timestamp", "1614265330"), signature.RuleRepeatedHeader},
		{"the signature twice", repeat("webhook-signature", exampleSig), signature.RuleRepeatedHeader},
		{"another header twice", repeat("x-other", "1"), ""},
		{"a control character in the id", set("webhook-id", "msg\n1"), signature.RuleMalformedID},
		{"an id of a kilobyte and one", set("webhook-id", strings.Repeat("m", signature.MaxID+1)), signature.RuleMalformedID},
		{"a body that was cut when it was recorded", func(r *wire.Request) { r.Size++ }, signature.RuleIncompleteBody},

		{"another id", set("webhook-id", exampleID+"x"), signature.RuleNoMatch},
		{"another second", set("webhook-timestamp", "1614265331"), signature.RuleNoMatch},
		{"a digit of the body changed", func(r *wire.Request) { r.Body[len(r.Body)-2]++ }, signature.RuleNoMatch},
		{"a byte appended", func(r *wire.Request) { r.Body = append(r.Body, ' '); r.Size++ }, signature.RuleNoMatch},
		{"a byte removed", func(r *wire.Request) { r.Body = r.Body[1:]; r.Size-- }, signature.RuleNoMatch},
		{"no body", func(r *wire.Request) { r.Body, r.Size = nil, 0 }, signature.RuleNoMatch},

		{"the token first", tokens("SIG " + foreign), ""},
		{"the token in the middle", tokens(foreign + " SIG v2,AAAA"), ""},
		{"the token last", tokens(foreign + " v9,x v1a,AAAA SIG"), ""},
		{"malformed tokens beside it", tokens("v1 , ,, x v1,%%% v1, SIG"), ""},
		{"double blanks", tokens("  SIG  "), ""},
		{"only foreign tokens", tokens(foreign + " " + foreign), signature.RuleNoMatch},
		{"under the label v0", tokens("v0," + text), signature.RuleUnknownVersion},
		{"under the label v2", tokens("v2," + text), signature.RuleUnknownVersion},
		{"under the label V1", tokens("V1," + text), signature.RuleUnknownVersion},
		{"under the label v1a, without an Ed25519 key", tokens("v1a," + text), signature.RuleUnknownVersion},
		{"without a label", tokens(text), signature.RuleMalformedSignature},
		{"an empty label", tokens("," + text), signature.RuleMalformedSignature},
		{"a label alone", tokens("v1"), signature.RuleMalformedSignature},
		{"a label and a comma", tokens("v1,"), signature.RuleMalformedSignature},
		{"only commas", tokens(",,,,"), signature.RuleMalformedSignature},
		{"blanks", tokens("   "), signature.RuleMalformedSignature},
		{"letters beyond ASCII", tokens("v1,éééé"), signature.RuleMalformedSignature},
		{"the token in another place of the list's grammar", tokens("x,SIG"), signature.RuleUnknownVersion},
		{"8 bytes of the MAC", tokens("v1," + std(mac[:8])), signature.RuleNoMatch},
		{"31 bytes of the MAC", tokens("v1," + std(mac[:31])), signature.RuleNoMatch},
		{"a byte after the MAC", tokens("v1," + std(append(slices.Clone(mac), 0))), signature.RuleNoMatch},
		{"500 characters", tokens("v1," + strings.Repeat("A", 500)), signature.RuleNoMatch},
		{"hex", tokens("v1," + hex.EncodeToString(mac)), signature.RuleNoMatch},
		{"url-safe base64", tokens("v1," + base64.URLEncoding.EncodeToString(mac)), signature.RuleMalformedSignature},
		{"base64 without padding", tokens("v1," + strings.TrimRight(text, "=")), signature.RuleMalformedSignature},
		{"base64 with trailing bits", tokens("v1," + strings.Replace(text, "E=", "F=", 1)), signature.RuleMalformedSignature},
		{"a line break inside", tokens("v1," + text[:10] + "\n" + text[10:]), signature.RuleMalformedSignature},
		{"text after the padding", tokens("SIGx"), signature.RuleMalformedSignature},
		{"a third part", tokens("SIG,x"), signature.RuleMalformedSignature},
	}
}

func TestStandardWebhooksRefusesByTheRuleThatWasBroken(t *testing.T) {
	s := scheme(t, signature.StandardWebhooks())
	k := key(t, s, exampleSecret)
	for _, c := range standardChanges() {
		t.Run(c.name, func(t *testing.T) {
			r := example(t, s, k)
			c.make(r)
			got, err := s.Verify(r, exampleTime, k)
			wantRule(t, err, c.rule)
			if (err == nil) != (got == k) {
				t.Errorf("returned %v with error %v", got, err)
			}
		})
	}
}

func TestEveryRuleIsDocumentedAndMet(t *testing.T) {
	met := map[string]bool{
		// Tested by themselves below.
		signature.RuleMalformedTimestamp: true, signature.RuleStale: true, signature.RuleFuture: true,
		signature.RuleMalformedBody: true,
	}
	for _, c := range standardChanges() {
		met[c.rule] = true
	}
	for _, r := range signature.Rules() {
		if !met[r.Rule] {
			t.Errorf("no case is refused by %s", r.Rule)
		}
		if r.Doc == "" || strings.Contains(r.Doc, "\n") {
			t.Errorf("%s: want one line of documentation", r.Rule)
		}
		delete(met, r.Rule)
	}
	delete(met, "")
	if len(met) > 0 {
		t.Errorf("rules without documentation: %v", met)
	}
}

func TestTheToleranceEndsAfterItsLastSecond(t *testing.T) {
	for _, spec := range []signature.Spec{signature.StandardWebhooks(), signature.DeliveryEnvelope()} {
		s := scheme(t, spec)
		k := key(t, s, exampleSecret)
		r := example(t, s, k)
		for _, c := range []struct {
			name string
			now  time.Duration // after the signing
			rule string
		}{
			{"at once", 0, ""},
			{"exactly the tolerance old", 300 * time.Second, ""},
			{"in the last second of the tolerance", 300*time.Second + 999*time.Millisecond, ""},
			{"a second too old", 301 * time.Second, signature.RuleStale},
			{"a day old", 24 * time.Hour, signature.RuleStale},
			{"exactly the tolerance ahead", -300 * time.Second, ""},
			{"a second too far ahead", -301 * time.Second, signature.RuleFuture},
		} {
			t.Run(spec.Name+" "+c.name, func(t *testing.T) {
				_, err := s.Verify(r, exampleTime.Add(c.now), k)
				wantRule(t, err, c.rule)
			})
		}
	}
}

func TestTimestampsHaveOneSpelling(t *testing.T) {
	at := fmt.Sprint(exampleTime.Unix())
	for _, c := range []struct{ name, text, rule string }{
		{"seconds", at, ""},
		{"words", "abc", signature.RuleMalformedTimestamp},
		{"a minus sign", "-1", signature.RuleMalformedTimestamp},
		{"a plus sign", "+" + at, signature.RuleMalformedTimestamp},
		{"a blank before", " " + at, signature.RuleMalformedTimestamp},
		{"a blank after", at + " ", signature.RuleMalformedTimestamp},
		{"a leading zero", "0" + at, signature.RuleMalformedTimestamp},
		{"a fraction", at + ".5", signature.RuleMalformedTimestamp},
		{"letters after", at + "abc", signature.RuleMalformedTimestamp},
		{"an exponent", "1e400", signature.RuleMalformedTimestamp},
		{"hex", "0x60378ff2", signature.RuleMalformedTimestamp},
		{"2^63", "9223372036854775808", signature.RuleMalformedTimestamp},
		{"2^63-1", "9223372036854775807", signature.RuleMalformedTimestamp},
		{"a hundred digits", strings.Repeat("9", 100), signature.RuleMalformedTimestamp},
		{"digits of another script", "١٦١٤٢٦٥٣٣٠", signature.RuleMalformedTimestamp},
		{"a date", "2021-02-25T15:02:10Z", signature.RuleMalformedTimestamp},
		{"milliseconds", at + "000", signature.RuleFuture},
		{"microseconds", at + "000000", signature.RuleFuture},
		{"18 digits", strings.Repeat("9", 18), signature.RuleFuture},
		{"zero", "0", signature.RuleStale},
	} {
		for _, spec := range []signature.Spec{signature.StandardWebhooks(), signature.DeliveryEnvelope()} {
			t.Run(spec.Name+" "+c.name, func(t *testing.T) {
				s := scheme(t, spec)
				k := key(t, s, exampleSecret)
				r := signed(t, s, signature.Input{ID: exampleID, Timestamp: c.text, Body: []byte(exampleBody)}, k)
				_, err := s.Verify(r, exampleTime, k)
				wantRule(t, err, c.rule)
			})
		}
	}
}

func TestOtherUnitsAreCheckedInTheirOwn(t *testing.T) {
	content := []string{"{ts}", "{raw}"}
	for _, c := range []struct {
		name, unit, text string
		now              time.Duration
		rule             string
	}{
		{"milliseconds", "ms", "1614265330000", 0, ""},
		{"exactly the tolerance old in milliseconds", "ms", "1614265330000", 300 * time.Second, ""},
		{"a millisecond too old", "ms", "1614265330000", 300*time.Second + time.Millisecond, signature.RuleStale},
		{"a millisecond too far ahead", "ms", "1614265330000", -300*time.Second - time.Millisecond, signature.RuleFuture},
		{"seconds in place of milliseconds", "ms", "1614265330", 0, signature.RuleStale},
		{"no number of milliseconds", "ms", "x", 0, signature.RuleMalformedTimestamp},
		{"a date", "rfc3339", "2021-02-25T15:02:10Z", 0, ""},
		{"a date with an offset", "rfc3339", "2021-02-25T17:02:10+02:00", 0, ""},
		{"an old date", "iso8601", "2021-02-25T14:02:10Z", 0, signature.RuleStale},
		{"no date", "rfc3339", "yesterday", 0, signature.RuleMalformedTimestamp},
		{"the year 9999", "rfc3339", "9999-12-31T23:59:59Z", 0, signature.RuleFuture},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := scheme(t, custom(signature.HMACSHA256, c.unit, content))
			k := key(t, s, "secret")
			r := signed(t, s, signature.Input{Timestamp: c.text, Body: []byte("x")}, k)
			_, err := s.Verify(r, exampleTime.Add(c.now), k)
			wantRule(t, err, c.rule)
		})
	}
}

func TestTheSignatureHeaderCanCarryTheTimestamp(t *testing.T) {
	s := scheme(t, signature.DeliveryEnvelope())
	k := key(t, s, exampleSecret)
	value, _ := wire.Get(example(t, s, k).Headers, "webhook-signature")
	ts, sig, _ := strings.Cut(value, ",")
	hash := strings.TrimPrefix(sig, "v1=")
	zeros := strings.Repeat("0", 64)
	for _, c := range []struct{ name, value, rule string }{
		{"as it was written", value, ""},
		{"the signature before the timestamp", sig + "," + ts, ""},
		{"foreign signatures around it", ts + ",v1=" + zeros + "," + sig + ",v0=" + zeros, ""},
		{"no timestamp", sig, signature.RuleMissingTimestamp},
		{"an empty timestamp", "t=," + sig, signature.RuleMissingTimestamp},
		{"two timestamps", ts + "," + ts + "," + sig, signature.RuleMalformedTimestamp},
		{"the timestamp alone", ts, signature.RuleMalformedSignature},
		{"a comma alone after it", ts + ",", signature.RuleMalformedSignature},
		{"another version only", ts + ",v0=" + hash, signature.RuleUnknownVersion},
		{"upper-case hex", ts + ",v1=" + strings.ToUpper(hash), signature.RuleMalformedSignature},
		{"a blank after the comma", ts + ", " + sig, signature.RuleUnknownVersion},
		{"half of the signature", ts + ",v1=" + hash[:32], signature.RuleNoMatch},
		{"an odd digit", ts + ",v1=" + hash[:63], signature.RuleMalformedSignature},
		{"another second", strings.Replace(value, "t=1614265330", "t=1614265331", 1), signature.RuleNoMatch},
		{"nothing", "", signature.RuleMissingSignature},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := example(t, s, k)
			set("webhook-signature", c.value)(r)
			_, err := s.Verify(r, exampleTime, k)
			wantRule(t, err, c.rule)
		})
	}
}

func TestAnyTokenMayMatchAnyKey(t *testing.T) {
	s := scheme(t, signature.StandardWebhooks())
	old := key(t, s, exampleSecret)
	current := key(t, s, "whsec_"+std([]byte("the newer of the two secrets")))
	third := key(t, s, "whsec_"+std([]byte("a secret that nobody signed by")))
	both := example(t, s, current, old)
	for name, c := range map[string]struct {
		r    *wire.Request
		keys []signature.Key
		want signature.Key
	}{
		"both sign, the old is known":     {both, []signature.Key{old}, old},
		"both sign, the new is known":     {both, []signature.Key{current}, current},
		"the old signs, both are known":   {example(t, s, old), []signature.Key{current, old}, old},
		"the new signs, both are known":   {example(t, s, current), []signature.Key{current, old}, current},
		"a zero key among them is nobody": {both, []signature.Key{{}, old}, old},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := s.Verify(c.r, exampleTime, c.keys...)
			if err != nil || got != c.want {
				t.Errorf("got %v, %v; want %v", got, err, c.want)
			}
		})
	}
	_, err := s.Verify(both, exampleTime, third)
	wantRule(t, err, signature.RuleNoMatch)
	_, err = s.Verify(both, exampleTime)
	wantRule(t, err, signature.RuleUnknownVersion)
	_, err = s.Verify(both, exampleTime, signature.Key{})
	wantRule(t, err, signature.RuleUnknownVersion)
}

func TestAnIDHoldsNoControlCharacterAnywhere(t *testing.T) {
	s := scheme(t, signature.StandardWebhooks())
	for at := range 20 {
		for b := range 256 {
			id := []byte("msg_0123456789abcdef")
			id[at] = byte(b)
			_, err := s.ID(&wire.Request{Headers: []wire.Header{{Name: "webhook-id", Value: string(id)}}})
			want := ""
			if b < ' ' || b == 0x7f {
				want = signature.RuleMalformedID
			}
			wantRule(t, err, want)
		}
	}
}

func TestATokenIsForeignOnlyIfNoneOfTheKeysCouldCheckIt(t *testing.T) {
	s := scheme(t, signature.StandardWebhooks())
	hmac := key(t, s, exampleSecret)
	ed, err := signature.NewEd25519Key("ed25519", newRandom(1))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, value string
		keys        []signature.Key
		rule        string
	}{
		{"malformed, for the HMAC key", "v1,%%%", []signature.Key{hmac}, signature.RuleMalformedSignature},
		{"malformed, for the HMAC key beside another", "v1,%%%", []signature.Key{hmac, ed}, signature.RuleMalformedSignature},
		{"for a kind of key that is absent", "v1,%%%", []signature.Key{ed}, signature.RuleUnknownVersion},
		{"of no key's version", "v1,%%% v2,AAAA", []signature.Key{ed, hmac}, signature.RuleUnknownVersion},
		{"well-formed behind foreign ones", "v2,AAAA v1,AAAA", []signature.Key{ed, hmac}, signature.RuleNoMatch},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := example(t, s, hmac)
			set("webhook-signature", c.value)(r)
			_, err := s.Verify(r, exampleTime, c.keys...)
			wantRule(t, err, c.rule)
		})
	}
}

func TestACharacterOfTheTokenChangedNeverVerifies(t *testing.T) {
	for _, mac := range []string{signature.HMACSHA256, signature.HMACSHA1} {
		for _, encoding := range signature.Encodings() {
			t.Run(mac+" in "+encoding, func(t *testing.T) {
				spec := custom(mac, "s", []string{"{ts}", ".", "{raw}"})
				spec.Encoding = encoding
				s := scheme(t, spec)
				k := key(t, s, "secret")
				in := signature.Input{Time: exampleTime, Body: []byte(exampleBody)}
				tok, err := s.Token(in, k)
				if err != nil {
					t.Fatal(err)
				}
				r := &wire.Request{Headers: s.Headers(in, tok), Body: in.Body}
				if _, err := s.Verify(r, exampleTime, k); err != nil {
					t.Fatal(err)
				}
				for i := range tok.Text {
					changed := []byte(tok.Text)
					changed[i] ^= 1
					r.Headers = s.Headers(in, signature.Token{Version: tok.Version, Text: string(changed)})
					if _, err := s.Verify(r, exampleTime, k); err == nil {
						t.Errorf("verified with character %d changed", i)
					}
				}
			})
		}
	}
}

func TestSecondsAreWrittenInDecimal(t *testing.T) {
	s := scheme(t, signature.StandardWebhooks())
	for _, n := range []int64{0, -1, 9, 999_999_999, 1_000_000_000, 1_000_000_001, 1_614_265_330, 1_900_099_999, 9_999_999_999, 10_000_000_000} {
		headers := s.Headers(signature.Input{ID: "m", Time: time.Unix(n, 999)})
		if got, _ := wire.Get(headers, "webhook-timestamp"); got != fmt.Sprint(n) {
			t.Errorf("got %q, want %d", got, n)
		}
	}
}

func TestAThousandTokensAreLookedAtAndNoMoreThanTheBound(t *testing.T) {
	s := scheme(t, signature.StandardWebhooks())
	k := key(t, s, exampleSecret)
	foreign := "v1," + std(make([]byte, 32)) + " "
	r := example(t, s, k)
	tokens(strings.Repeat(foreign, signature.MaxTokens-1) + "SIG")(r)
	_, err := s.Verify(r, exampleTime, k)
	wantRule(t, err, "")
	tokens(strings.Repeat(foreign, signature.MaxTokens) + "SIG")(r)
	_, err = s.Verify(r, exampleTime, k)
	wantRule(t, err, signature.RuleNoMatch)
}

func TestTheIDIsReadWhereTheSchemeHasIt(t *testing.T) {
	header := scheme(t, signature.StandardWebhooks())
	body := scheme(t, signature.DeliveryEnvelope())
	deep := signature.DeliveryEnvelope()
	deep.ID.Name = "/data/0/a~1b"
	inside := scheme(t, deep)
	id := func(value string) *wire.Request {
		return &wire.Request{Headers: []wire.Header{{Name: "Webhook-ID", Value: value}}}
	}
	text := func(b string) *wire.Request { return &wire.Request{Body: []byte(b)} }
	for _, c := range []struct {
		name string
		s    signature.Scheme
		r    *wire.Request
		want string
		rule string
	}{
		{"in a header", header, id("msg_1"), "msg_1", ""},
		{"an empty header", header, id(""), "", signature.RuleMissingID},
		{"no header", header, text("{}"), "", signature.RuleMissingID},
		{"a header with a control character", header, id("a\x00"), "", signature.RuleMalformedID},
		{"in the body", body, text(`{"delivery_id":"whd_1"}`), "whd_1", ""},
		{"a number in the body", body, text(`{"delivery_id":12345678901234567890}`), "12345678901234567890", ""},
		{"no member", body, text(`{"id":"whd_1"}`), "", signature.RuleMalformedBody},
		{"an empty member", body, text(`{"delivery_id":""}`), "", signature.RuleMissingID},
		{"null", body, text(`{"delivery_id":null}`), "", signature.RuleMalformedBody},
		{"an object", body, text(`{"delivery_id":{}}`), "", signature.RuleMalformedBody},
		{"no JSON", body, text(`{"delivery_id":`), "", signature.RuleMalformedBody},
		{"no body", body, text(``), "", signature.RuleMalformedBody},
		{"deeper down", inside, text(`{"data":[{"a/b":"x"}]}`), "x", ""},
		{"past the end of an array", inside, text(`{"data":[]}`), "", signature.RuleMalformedBody},
		{"a text where an object was expected", inside, text(`{"data":"x"}`), "", signature.RuleMalformedBody},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.s.ID(c.r)
			wantRule(t, err, c.rule)
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestABodyThatIsNoJSONIsVerifiedAllTheSame(t *testing.T) {
	for _, spec := range []signature.Spec{signature.StandardWebhooks(), signature.DeliveryEnvelope()} {
		s := scheme(t, spec)
		k := key(t, s, exampleSecret)
		r := signed(t, s, signature.Input{ID: "a", Time: exampleTime, Body: []byte(`{"broken":`)}, k)
		if _, err := s.Verify(r, exampleTime, k); err != nil {
			t.Errorf("%s: %v", spec.Name, err)
		}
	}
}

func TestATimestampInTheBodyIsReadOnceTheSignatureHolds(t *testing.T) {
	spec := custom(signature.HMACSHA256, "s", []string{"{raw}"})
	spec.Timestamp = signature.Timestamp{In: "body", Name: "/at", Unit: "ms", Past: time.Minute, Future: time.Minute}
	spec.ID = signature.ID{In: "none"}
	s := scheme(t, spec)
	k := key(t, s, "secret")
	for _, c := range []struct{ name, body, rule string }{
		{"now", `{"at":1614265330000}`, ""},
		{"as text", `{"at":"1614265330000"}`, ""},
		{"old", `{"at":1614265260000}`, signature.RuleStale},
		{"ahead", `{"at":1614265391000}`, signature.RuleFuture},
		{"a fraction", `{"at":1614265330000.5}`, signature.RuleMalformedTimestamp},
		{"absent", `{}`, signature.RuleMalformedBody},
		{"no JSON", `x`, signature.RuleMalformedBody},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := signed(t, s, signature.Input{Body: []byte(c.body)}, k)
			_, err := s.Verify(r, exampleTime, k)
			wantRule(t, err, c.rule)
			_, err = s.Verify(r, exampleTime, signature.RawKey("other", []byte("other")))
			wantRule(t, err, signature.RuleNoMatch)
		})
	}
	_, err := s.ID(&wire.Request{Body: []byte(`{}`)})
	wantRule(t, err, signature.RuleMissingID)
}
