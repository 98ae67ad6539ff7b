package fakeprovider_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/whconform/whconform/fakeprovider"
	"github.com/whconform/whconform/reference/profile"
	"github.com/whconform/whconform/reference/signature"
	"github.com/whconform/whconform/reference/wire"
)

// valid is what Verify says of a delivery that is right; the other outcomes are
// the rules of signature.Refusal.
const valid = ""

// alteration is one case for each of both profiles: what Verify must say, and
// what must be seen.
type alteration struct {
	name               string
	alter              func(f *fixture) fakeprovider.Alteration
	standard, envelope string // outcomes; "-": does not apply
	seen               func(t *testing.T, f *fixture, d *fakeprovider.Draft)
}

func the(a fakeprovider.Alteration) func(*fixture) fakeprovider.Alteration {
	return func(*fixture) fakeprovider.Alteration { return a }
}

var errEdit = errors.New("no")

func alterations() []alteration {
	return []alteration{
		// Before signing: the signature covers it.
		{"a little age", the(fakeprovider.Age(5 * time.Second)), valid, valid, nil},
		{"age at the tolerance", the(fakeprovider.Age(5 * time.Minute)), valid, valid, nil},
		{"age beyond the tolerance", the(fakeprovider.Age(10 * time.Minute)), signature.RuleStale, signature.RuleStale, nil},
		{"a time ahead", the(fakeprovider.At(10 * time.Minute)), signature.RuleFuture, signature.RuleFuture, nil},
		{"a timestamp of words", the(fakeprovider.Timestamp("abc")), signature.RuleMalformedTimestamp, signature.RuleMalformedTimestamp, timestampIs("abc")},
		{"an empty timestamp", the(fakeprovider.Timestamp("")), signature.RuleMissingTimestamp, signature.RuleMissingTimestamp, timestampIs("")},
		{"another id", the(fakeprovider.ID("msg_other")), valid, valid, idIs("msg_other")},
		{"another body", the(fakeprovider.BodyBytes([]byte("{}"))), valid, valid, bodyIs("{}")},
		{"an empty body", the(fakeprovider.BodyBytes(nil)), valid, valid, bodyIs("")},
		{"an edited body", the(fakeprovider.EditBody("upper", func(b []byte) ([]byte, error) { return bytes.ToUpper(b), nil })), valid, valid, nil},
		{"a member more", the(fakeprovider.AddMember("x", `[1, 2]`)), valid, valid, bodyHas(`,"x":[1, 2]}`)},
		{"deep JSON", the(fakeprovider.DeepJSON(5)), valid, valid, bodyHas(`,"whconform":[[[[[]]]]]}`)},
		{"a body filled up", the(fakeprovider.FillTo(20 << 10)), valid, valid, sizeIs(20 << 10)},
		{"another secret", wrongKey, signature.RuleNoMatch, signature.RuleNoMatch, nil},
		{"both secrets", bothKeys, valid, valid, tokens(2)},
		{"no secret", the(fakeprovider.WithKeys()), signature.RuleMissingSignature, signature.RuleMalformedSignature, tokens(0)},
		{"an empty key", the(fakeprovider.WithKeys(signature.RawKey("empty", nil))), signature.RuleNoMatch, signature.RuleNoMatch, nil},
		{"another method", the(fakeprovider.Method("PUT")), valid, valid, func(t *testing.T, _ *fixture, d *fakeprovider.Draft) {
			if d.Request.Method != "PUT" {
				t.Errorf("method %q", d.Request.Method)
			}
		}},
		{"packed and then signed", the(fakeprovider.GzipSignedPacked()), valid, valid, packed},

		// On tokens.
		{"a token more", the(fakeprovider.ExtraTokens(signature.Token{Version: "v9", Text: "AAAA"})), valid, valid, tokens(2)},
		{"the valid token in the middle", the(fakeprovider.Tokens("middle", fakeprovider.Foreign(2), fakeprovider.Own(), fakeprovider.Literal("v9", "AAAA"))), valid, valid, tokens(4)},
		{"foreign tokens alone", the(fakeprovider.Tokens("foreign", fakeprovider.Foreign(3))), signature.RuleNoMatch, signature.RuleNoMatch, differentTokens(3)},
		{"a token by another key beside", func(f *fixture) fakeprovider.Alteration {
			return fakeprovider.Tokens("by", fakeprovider.By(signature.RawKey("other", []byte("x"))), fakeprovider.Own())
		}, valid, valid, differentTokens(2)},
		{"tokens replaced", the(fakeprovider.ReplaceTokens(signature.Token{Version: "v1", Text: "AAAA"})), "any", "any", tokens(1)},
		{"an unknown label", the(fakeprovider.Relabel("v2")), signature.RuleUnknownVersion, signature.RuleUnknownVersion, nil},
		{"no label", the(fakeprovider.Unlabel()), "any", "any", headerLacks("v1")},
		{"a MAC cut short", the(fakeprovider.TruncateMAC(8)), "any", "any", macIs(8)},
		{"no MAC at all", the(fakeprovider.TruncateMAC(0)), "any", "any", macIs(0)},
		{"a MAC of 31 bytes", the(fakeprovider.TruncateMAC(31)), "any", "any", macIs(31)},
		{"a MAC with a byte more", the(fakeprovider.ExtendMAC()), "any", "any", macIs(33)},
		{"a MAC with a bit flipped", the(fakeprovider.FlipMAC()), signature.RuleNoMatch, signature.RuleNoMatch, macIs(32)},
		{"a token's text edited", the(fakeprovider.EditTokenText("trailing", func(s string) string { return s + "!" })), "any", "any", nil},

		// After signing: the signature no longer covers it.
		{"a whole header value", the(fakeprovider.TokenText("v1")), "any", "any", func(t *testing.T, f *fixture, d *fakeprovider.Draft) {
			if got, _ := wire.Get(d.Request.Headers, f.Parts().Signature); got != "v1" {
				t.Errorf("signature header %q", got)
			}
		}},
		{"an edited header value", the(fakeprovider.EditSignature("other-label", func(s string) string { return strings.Replace(s, "v1", "v0", 1) })), signature.RuleUnknownVersion, signature.RuleUnknownVersion, nil},
		{"an id swapped", the(fakeprovider.SwapID("msg_swapped")), signature.RuleNoMatch, signature.RuleNoMatch, idIs("msg_swapped")},
		{"a timestamp moved on", the(fakeprovider.ShiftTimestamp(1)), signature.RuleNoMatch, signature.RuleNoMatch, timestampIs(strconv.FormatInt(now.Unix()+1, 10))},
		{"a timestamp moved back", the(fakeprovider.ShiftTimestamp(-1)), signature.RuleNoMatch, signature.RuleNoMatch, timestampIs(strconv.FormatInt(now.Unix()-1, 10))},
		{"no timestamp", the(fakeprovider.DropTimestamp()), signature.RuleMissingTimestamp, signature.RuleMissingTimestamp, noTimestamp},
		{"a timestamp emptied", the(fakeprovider.EmptyTimestamp()), signature.RuleMissingTimestamp, signature.RuleMissingTimestamp, timestampIs("")},
		{"a digit changed", the(fakeprovider.ChangeDigit()), signature.RuleNoMatch, signature.RuleNoMatch, changedBytes(0, 1)},
		{"a byte appended", the(fakeprovider.AppendByte()), signature.RuleNoMatch, signature.RuleNoMatch, changedBytes(1, 1)},
		{"a byte removed", the(fakeprovider.RemoveByte()), signature.RuleNoMatch, signature.RuleNoMatch, changedBytes(-1, 1)},
		{"another body sent", the(fakeprovider.SendBody([]byte("null"))), signature.RuleNoMatch, signature.RuleNoMatch, bodyIs("null")},
		{"respelt", the(fakeprovider.Reserialize("python")), signature.RuleNoMatch, signature.RuleNoMatch, bodyHas(`": `)},
		{"respelt by one that changes nothing", the(fakeprovider.Reserialize("go")), valid, valid, changedBytes(0, 0)},
		{"unsigned", the(fakeprovider.DropSignatureHeaders()), signature.RuleMissingID, signature.RuleMissingSignature, func(t *testing.T, f *fixture, d *fakeprovider.Draft) {
			if len(d.Request.Headers) != 2 {
				t.Errorf("left: %q", d.Request.Headers)
			}
		}},
		{"a signature header dropped", func(f *fixture) fakeprovider.Alteration { return fakeprovider.DropHeader(f.Parts().Signature) }, signature.RuleMissingSignature, signature.RuleMissingSignature, nil},
		{"a signature header emptied", func(f *fixture) fakeprovider.Alteration { return fakeprovider.EmptyHeader(f.Parts().Signature) }, signature.RuleMissingSignature, signature.RuleMissingSignature, nil},
		{"a signature header renamed", func(f *fixture) fakeprovider.Alteration {
			return fakeprovider.RenameHeader(f.Parts().Signature, "X-Other")
		}, signature.RuleMissingSignature, signature.RuleMissingSignature, headerIs("X-Other", "v1")},
		{"names in upper case", the(fakeprovider.HeaderCase(fakeprovider.UpperCase)), valid, valid, namesAre(strings.ToUpper)},
		{"names in lower case", the(fakeprovider.HeaderCase(fakeprovider.LowerCase)), valid, valid, namesAre(strings.ToLower)},
		{"names in title case", the(fakeprovider.HeaderCase(fakeprovider.TitleCase)), valid, valid, headerNamed("Webhook-Signature")},
		{"names in mixed case", the(fakeprovider.HeaderCase(fakeprovider.MixedCase)), valid, valid, headerNamed("wEbHoOk-sIgNaTuRe")},
		{"a header more", the(fakeprovider.AddHeader("X-Request-Id", "1")), valid, valid, headerIs("X-Request-Id", "1")},
		{"a header set", the(fakeprovider.SetHeader("user-agent", "x")), valid, valid, headerIs("User-Agent", "x")},
		{"another content type", the(fakeprovider.ContentType("text/plain")), valid, valid, headerIs("Content-Type", "text/plain")},
		{"no content type", the(fakeprovider.NoContentType()), valid, valid, lacks("Content-Type")},
		{"no user agent", the(fakeprovider.NoUserAgent()), valid, valid, lacks("User-Agent")},
		{"another path", the(fakeprovider.Path("/other")), valid, valid, func(t *testing.T, _ *fixture, d *fakeprovider.Draft) {
			if d.Request.Target != "/other" {
				t.Errorf("target %q", d.Request.Target)
			}
		}},
		{"a huge header", the(fakeprovider.HugeHeader(1 << 20)), valid, valid, headerIs("X-Whconform-Fill", "xxx")},
		{"many headers", the(fakeprovider.ManyHeaders(100, 10)), valid, valid, headerIs("X-Whconform-Fill-99", "xxx")},
		{"signed and then packed", the(fakeprovider.GzipSignedPlain()), signature.RuleNoMatch, signature.RuleNoMatch, packed},
		{"oversize", the(fakeprovider.Oversize(1 << 20)), "any", "any", oversize},

		// On the wire: the delivery is as it was.
		{"chunked", the(fakeprovider.Chunked()), valid, valid, wireIs(func(w fakeprovider.Wire) bool { return w.Chunked })},
		{"expecting", the(fakeprovider.Expect100()), valid, valid, wireIs(func(w fakeprovider.Wire) bool { return w.Expect })},
		{"a length declared", the(fakeprovider.DeclaredLength(7)), valid, valid, wireIs(func(w fakeprovider.Wire) bool { return *w.Length == "7" })},
		{"dripping", the(fakeprovider.Drip(time.Second)), valid, valid, wireIs(func(w fakeprovider.Wire) bool { return w.Drip == time.Second })},
		{"stalling", the(fakeprovider.StallAfter(9)), valid, valid, wireIs(func(w fakeprovider.Wire) bool { return w.StallAt == 9 })},
		{"pausing", the(fakeprovider.PauseAt(3, time.Second)), valid, valid, wireIs(func(w fakeprovider.Wire) bool { return len(w.Pace) == 1 && w.Pace[0].Offset == 3 })},
		{"half closing", the(fakeprovider.HalfClose()), valid, valid, wireIs(func(w fakeprovider.Wire) bool { return w.HalfClose })},
	}
}

func TestEachAlterationChangesWhatItSaysAndSpoilsTheSignatureAccordingToItsStage(t *testing.T) {
	for _, c := range alterations() {
		for _, profileName := range []string{"standard-webhooks", "delivery-envelope"} {
			want := c.standard
			if profileName == "delivery-envelope" {
				want = c.envelope
			}
			t.Run(c.name+"/"+profileName, func(t *testing.T) {
				f := newFixture(t, profileName)
				a := c.alter(f)
				if a.Name == "" || strings.ContainsAny(a.Name, " ,/\n") {
					t.Errorf("its name is %q", a.Name)
				}
				d := f.draft(t, a)
				if got := outcome(t, f, &d); got != want && (want != "any" || got == valid) {
					t.Errorf("verification says %q, want %q; headers %q", got, want, d.Request.Headers)
				}
				if c.seen != nil {
					c.seen(t, f, &d)
				}
				if d.Wire.Body == nil && d.Request.Size != int64(len(d.Request.Body)) {
					t.Errorf("size %d of %d B", d.Request.Size, len(d.Request.Body))
				}
			})
		}
	}
}

// outcome is the rule by which the delivery is refused, or valid.
func outcome(t *testing.T, f *fixture, d *fakeprovider.Draft) string {
	t.Helper()
	_, err := f.Scheme().Verify(&d.Request, now, f.key)
	if err == nil {
		return valid
	}
	var refusal *signature.Refusal
	if !errors.As(err, &refusal) {
		t.Fatalf("%T: %v", err, err)
	}
	return refusal.Rule
}

func wrongKey(f *fixture) fakeprovider.Alteration {
	return fakeprovider.WithKeys(signature.RawKey("wrong", []byte("another secret, good for nothing")))
}

func bothKeys(f *fixture) fakeprovider.Alteration {
	return fakeprovider.WithKeys(signature.RawKey("old", []byte("another secret, good for nothing")), f.key)
}

type see = func(*testing.T, *fixture, *fakeprovider.Draft)

func bodyIs(want string) see {
	return func(t *testing.T, _ *fixture, d *fakeprovider.Draft) {
		if string(d.Request.Body) != want {
			t.Errorf("body %q", d.Request.Body)
		}
	}
}

func bodyHas(want string) see {
	return func(t *testing.T, _ *fixture, d *fakeprovider.Draft) {
		if !strings.Contains(string(d.Request.Body), want) || !json.Valid(d.Request.Body) {
			t.Errorf("body %q", d.Request.Body)
		}
	}
}

func sizeIs(want int) see {
	return func(t *testing.T, _ *fixture, d *fakeprovider.Draft) {
		if len(d.Request.Body) != want || !json.Valid(d.Request.Body) {
			t.Errorf("%d B, valid JSON %v", len(d.Request.Body), json.Valid(d.Request.Body))
		}
	}
}

// changedBytes wants the body grown by so many bytes, and so many of its bytes
// other than they were, those that are gone or new included.
func changedBytes(grown, changed int) see {
	return func(t *testing.T, f *fixture, d *fakeprovider.Draft) {
		n := max(grown, -grown)
		for i := range min(len(f.event), len(d.Request.Body)) {
			if f.event[i] != d.Request.Body[i] {
				n++
			}
		}
		if len(d.Request.Body)-len(f.event) != grown || n != changed {
			t.Errorf("body %q", d.Request.Body)
		}
	}
}

func idIs(want string) see {
	return func(t *testing.T, f *fixture, d *fakeprovider.Draft) {
		if got, err := f.Scheme().ID(&d.Request); err != nil || got != want {
			t.Errorf("id %q, %v", got, err)
		}
	}
}

// timestampIs looks at the header of its own, or at the element in the
// signature header.
func timestampIs(want string) see {
	return func(t *testing.T, f *fixture, d *fakeprovider.Draft) {
		value, ok := wire.Get(d.Request.Headers, f.Parts().Timestamp)
		if f.Parts().Timestamp == f.Parts().Signature {
			value, _, _ = strings.Cut(strings.TrimPrefix(value, "t="), ",")
		}
		if !ok || value != want {
			t.Errorf("timestamp %q, want %q", value, want)
		}
	}
}

func noTimestamp(t *testing.T, f *fixture, d *fakeprovider.Draft) {
	value, ok := wire.Get(d.Request.Headers, f.Parts().Timestamp)
	if strings.Contains(value, "t=") || ok != (f.Parts().Timestamp == f.Parts().Signature) {
		t.Errorf("left: %q", value)
	}
}

func tokens(n int) see {
	return func(t *testing.T, f *fixture, d *fakeprovider.Draft) {
		value, _ := wire.Get(d.Request.Headers, f.Parts().Signature)
		sep := map[bool]string{true: ",", false: "="}[f.Scheme().Spec().Encoding == "base64"]
		if got := strings.Count(value, "v1"+sep) + strings.Count(value, "v9"+sep); got != n || len(d.Tokens) != n {
			t.Errorf("%d tokens, header %q", len(d.Tokens), value)
		}
	}
}

func differentTokens(n int) see {
	return func(t *testing.T, f *fixture, d *fakeprovider.Draft) {
		tokens(n)(t, f, d)
		seen := map[string]bool{}
		for _, token := range d.Tokens {
			if seen[token.Text] || token.Version != "v1" {
				t.Errorf("tokens %q", d.Tokens)
			}
			seen[token.Text] = true
		}
	}
}

// macIs wants a MAC of so many bytes, in hex or in base64 with its padding.
func macIs(n int) see {
	return func(t *testing.T, f *fixture, d *fakeprovider.Draft) {
		want := 2 * n
		if f.Scheme().Spec().Encoding == "base64" {
			want = (n + 2) / 3 * 4
		}
		if len(d.Tokens) != 1 || len(d.Tokens[0].Text) != want || d.Tokens[0].Version != "v1" {
			t.Errorf("tokens %q, want %d characters", d.Tokens, want)
		}
	}
}

func headerIs(name, start string) see {
	return func(t *testing.T, _ *fixture, d *fakeprovider.Draft) {
		if got, ok := wire.Get(d.Request.Headers, name); !ok || !strings.HasPrefix(got, start) && !strings.Contains(got, start) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func headerNamed(name string) see {
	return func(t *testing.T, _ *fixture, d *fakeprovider.Draft) {
		for _, h := range d.Request.Headers {
			if h.Name == name {
				return
			}
		}
		t.Errorf("no line is called %q: %q", name, d.Request.Headers)
	}
}

func namesAre(in func(string) string) see {
	return func(t *testing.T, _ *fixture, d *fakeprovider.Draft) {
		for _, h := range d.Request.Headers {
			if h.Name != in(h.Name) {
				t.Errorf("a line is called %q", h.Name)
			}
		}
	}
}

func lacks(name string) see {
	return func(t *testing.T, _ *fixture, d *fakeprovider.Draft) {
		if wire.Count(d.Request.Headers, name) != 0 {
			t.Errorf("left: %q", d.Request.Headers)
		}
	}
}

func headerLacks(text string) see {
	return func(t *testing.T, f *fixture, d *fakeprovider.Draft) {
		if got, ok := wire.Get(d.Request.Headers, f.Parts().Signature); !ok || strings.Contains(got, text) {
			t.Errorf("signature header %q", got)
		}
	}
}

func packed(t *testing.T, f *fixture, d *fakeprovider.Draft) {
	z, err := gzip.NewReader(bytes.NewReader(d.Request.Body))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil || !bytes.Equal(plain, f.event) {
		t.Errorf("unpacked: %q, %v", plain, err)
	}
	headerIs("Content-Encoding", "gzip")(t, f, d)
}

func oversize(t *testing.T, _ *fixture, d *fakeprovider.Draft) {
	for range 2 { // a draft can be sent again
		body, err := io.ReadAll(d.Wire.Body())
		if err != nil || int64(len(body)) != d.Request.Size || !json.Valid(body) {
			t.Errorf("%d B of %d, %v, valid JSON %v", len(body), d.Request.Size, err, json.Valid(body))
		}
	}
}

func wireIs(right func(fakeprovider.Wire) bool) see {
	return func(t *testing.T, _ *fixture, d *fakeprovider.Draft) {
		if !right(d.Wire) {
			t.Errorf("wire: %+v", d.Wire)
		}
	}
}

func TestTheIdAndTimeInsideABodyAreSignedAndSwappedThere(t *testing.T) {
	f := newFixture(t, "linear")
	event := []byte(`{"webhookTimestamp":` + strconv.FormatInt(now.UnixMilli(), 10) + `, "action":"create"}`)
	delivery := fakeprovider.Delivery{ID: f.id, Type: "Issue", Keys: []signature.Key{f.key}, Body: event}
	for name, c := range map[string]struct {
		alter fakeprovider.Alteration
		body  string
		valid bool
	}{
		"an age":         {fakeprovider.Age(time.Second), `{"webhookTimestamp":` + strconv.FormatInt(now.UnixMilli()-1000, 10) + `, "action":"create"}`, true},
		"a text":         {fakeprovider.Timestamp("abc"), `{"webhookTimestamp":"abc", "action":"create"}`, false},
		"a shift by 1 s": {fakeprovider.ShiftTimestamp(1), `{"webhookTimestamp":` + strconv.FormatInt(now.UnixMilli()+1000, 10) + `, "action":"create"}`, false},
	} {
		d, err := f.Draft(delivery, c.alter)
		if err != nil || string(d.Request.Body) != c.body {
			t.Errorf("%s: %q, %v", name, d.Request.Body, err)
			continue
		}
		if _, err := f.Scheme().Verify(&d.Request, now, f.key); (err == nil) != c.valid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := f.Draft(delivery, fakeprovider.DropTimestamp()); err == nil {
		t.Error("a timestamp in the body was dropped from the headers")
	}
}

func TestAnErrorOfAnEditIsTheDrafts(t *testing.T) {
	f := newFixture(t, "standard-webhooks")
	fail := func([]byte) ([]byte, error) { return nil, errEdit }
	for _, a := range []fakeprovider.Alteration{fakeprovider.EditBody("a", fail), fakeprovider.EditSentBody("b", fail)} {
		if _, err := f.Draft(f.delivery(), a); !errors.Is(err, errEdit) || !strings.Contains(err.Error(), strconv.Quote(a.Name)) {
			t.Errorf("%s: %v", a.Name, err)
		}
	}
}

func TestDeepJSONReplacesAnEventThatIsNoObject(t *testing.T) {
	f := newFixture(t, "standard-webhooks")
	d := f.draft(t, fakeprovider.BodyBytes([]byte("plain text")), fakeprovider.DeepJSON(30_000))
	if want := strings.Repeat("[", 30_000) + strings.Repeat("]", 30_000); string(d.Request.Body) != want {
		t.Errorf("%d B: %.20q", len(d.Request.Body), d.Request.Body)
	}
}

func TestForeignTokensHaveTheShapeOfTheSchemesOwn(t *testing.T) {
	f := newFixture(t, "standard-webhooks")
	for _, c := range []struct {
		profile string
		length  int // of the encoded signature
	}{
		{"standard-webhooks", 44},
		{"delivery-envelope", 64},
		{"github", 64},
		{"discord", 128},
	} {
		contract, err := profile.Load(c.profile)
		if err != nil {
			t.Fatal(err)
		}
		p, err := fakeprovider.New(fakeprovider.Config{Profile: contract, Clock: f.clock})
		if err != nil {
			t.Fatal(err)
		}
		delivery := fakeprovider.Delivery{ID: f.id, Body: f.event}
		d, err := p.Draft(delivery, fakeprovider.Tokens("foreign", fakeprovider.Foreign(2)))
		if err != nil {
			t.Fatal(err)
		}
		if len(d.Tokens) != 2 || d.Tokens[0].Text == d.Tokens[1].Text || len(d.Tokens[0].Text) != c.length {
			t.Errorf("%s: %q", c.profile, d.Tokens)
		}
		again, err := p.Draft(delivery, fakeprovider.Tokens("foreign", fakeprovider.Foreign(2)))
		if err != nil || d.Tokens[0] != again.Tokens[0] {
			t.Errorf("%s: another draft has other tokens: %q, %v", c.profile, again.Tokens, err)
		}
	}
}

func TestAlterationsThatASchemeHasNoPlaceForAreErrors(t *testing.T) {
	github := newFixture(t, "github") // no timestamp
	linear := newFixture(t, "linear") // the timestamp in the body
	envelope := newFixture(t, "delivery-envelope")
	body := fakeprovider.BodyBytes([]byte("no JSON"))
	for name, c := range map[string]struct {
		f *fixture
		a []fakeprovider.Alteration
	}{
		"shifting a time that is not there":   {github, []fakeprovider.Alteration{fakeprovider.ShiftTimestamp(1)}},
		"dropping a time that is not there":   {github, []fakeprovider.Alteration{fakeprovider.DropTimestamp()}},
		"an empty time inside a body":         {linear, []fakeprovider.Alteration{fakeprovider.Timestamp("")}},
		"an age inside a body that is none":   {linear, []fakeprovider.Alteration{body, fakeprovider.Age(time.Second)}},
		"an id inside a body that is none":    {envelope, []fakeprovider.Alteration{body, fakeprovider.ID("x")}},
		"swapping an id that is not there":    {envelope, []fakeprovider.Alteration{fakeprovider.BodyBytes([]byte("{}")), fakeprovider.SwapID("x")}},
		"swapping an id for itself":           {github, []fakeprovider.Alteration{fakeprovider.SwapID(github.id)}},
		"shifting a time that was set":        {envelope, []fakeprovider.Alteration{fakeprovider.Timestamp("abc"), fakeprovider.ShiftTimestamp(1)}},
		"cutting a MAC that is not encoded":   {envelope, []fakeprovider.Alteration{fakeprovider.ReplaceTokens(signature.Token{Version: "v1", Text: "%%"}), fakeprovider.TruncateMAC(8)}},
		"editing a header that was dropped":   {envelope, []fakeprovider.Alteration{fakeprovider.DropSignatureHeaders(), fakeprovider.TokenText("x")}},
		"a token by a key that cannot sign":   {envelope, []fakeprovider.Alteration{fakeprovider.Tokens("by", fakeprovider.By(signature.Key{}))}},
		"filling up a body that is no object": {envelope, []fakeprovider.Alteration{body, fakeprovider.FillTo(100)}},
	} {
		if d, err := c.f.Draft(c.f.delivery(), c.a...); err == nil {
			t.Errorf("%s: no error; headers %q", name, d.Request.Headers)
		}
	}
}
