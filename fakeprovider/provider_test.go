package fakeprovider_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/whconform/whconform/fakeprovider"
	"github.com/whconform/whconform/reference/profile"
	"github.com/whconform/whconform/reference/signature"
	"github.com/whconform/whconform/reference/wire"
	"pgregory.net/rapid"
)

func TestNewNamesWhatIsMissing(t *testing.T) {
	contract, err := profile.Load("standard-webhooks")
	if err != nil {
		t.Fatal(err)
	}
	described, err := profile.Load("paypal")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		config fakeprovider.Config
		want   string
	}{
		{fakeprovider.Config{Clock: clock.New()}, "profile is required"},
		{fakeprovider.Config{Profile: contract}, "clock is required"},
		{fakeprovider.Config{Profile: described, Clock: clock.New()}, `profile "paypal"`},
	} {
		if _, err := fakeprovider.New(c.config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}

func TestEveryProfileThatCanSignMakesADeliveryThatVerifies(t *testing.T) {
	for _, name := range profile.Names() {
		t.Run(name, func(t *testing.T) {
			contract, err := profile.Load(name)
			if err != nil {
				t.Fatal(err)
			}
			var unsupported *signature.UnsupportedError
			if _, err := signature.New(contract.Signature); errors.As(err, &unsupported) {
				// Described only: a provider of it cannot be made, and says so.
				_, err := fakeprovider.New(fakeprovider.Config{Profile: contract, Clock: clock.NewMock()})
				if !errors.As(err, &unsupported) {
					t.Errorf("making its provider: %v, want a *signature.UnsupportedError", err)
				}
				return
			}
			f := newFixture(t, name)
			d := f.draft(t)
			if _, err := f.Scheme().Verify(&d.Request, now, f.key); err != nil {
				t.Error(err)
			}
			for _, h := range d.Request.Headers {
				if strings.ContainsAny(h.Value, "{}") {
					t.Errorf("a template was left: %q", h)
				}
			}
		})
	}
}

func TestDraftWritesItsHeadersInOrder(t *testing.T) {
	f := newFixture(t, "standard-webhooks")
	var names []string
	for _, h := range f.draft(t).Request.Headers {
		names = append(names, h.Name)
	}
	if want := []string{"User-Agent", "Content-Type", "webhook-id", "webhook-timestamp", "webhook-signature"}; !slices.Equal(names, want) {
		t.Errorf("got %q", names)
	}
	if got, want := f.SignatureHeaders(), names[2:]; !slices.Equal(got, want) {
		t.Errorf("SignatureHeaders: %q", got)
	}
	if got, want := f.Parts(), (fakeprovider.Parts{ID: "webhook-id", Timestamp: "webhook-timestamp", Signature: "webhook-signature"}); got != want {
		t.Errorf("Parts: %+v", got)
	}
	envelope := newFixture(t, "delivery-envelope")
	if got, want := envelope.Parts(), (fakeprovider.Parts{Timestamp: "Webhook-Signature", Signature: "Webhook-Signature"}); got != want {
		t.Errorf("Parts: %+v", got)
	}
}

func TestDraftAppliesAlterationsStageByStage(t *testing.T) {
	f := newFixture(t, "standard-webhooks")
	var order []string
	step := func(name string, stage fakeprovider.Stage) fakeprovider.Alteration {
		return fakeprovider.Alteration{Name: name, Stage: stage, Apply: func(d *fakeprovider.Draft) {
			order = append(order, name)
			signed := wire.Count(d.Request.Headers, "webhook-signature") > 0
			if signed != (stage >= fakeprovider.AfterSigning) || (len(d.Tokens) > 0) != (stage >= fakeprovider.OnTokens) {
				t.Errorf("%s: signed %v, %d tokens", name, signed, len(d.Tokens))
			}
		}}
	}
	f.draft(t, step("wire", fakeprovider.OnWire), step("after 1", fakeprovider.AfterSigning), step("tokens", fakeprovider.OnTokens), step("before", fakeprovider.BeforeSigning), step("after 2", fakeprovider.AfterSigning))
	if want := []string{"before", "tokens", "after 1", "after 2", "wire"}; !slices.Equal(order, want) {
		t.Errorf("got %q", order)
	}
}

func TestDraftRefusesWhatCannotBeDone(t *testing.T) {
	f := newFixture(t, "standard-webhooks")
	public, _ := f.Scheme().Key("public", "whpk_"+"MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwAAAAAAAAAAA=")
	for name, a := range map[string]fakeprovider.Alteration{
		"no function":             {Name: "x"},
		"no stage":                {Name: "x", Stage: 9, Apply: func(*fakeprovider.Draft) {}},
		"a key that cannot sign":  fakeprovider.WithKeys(public, signature.Key{}),
		"a header not there":      fakeprovider.DropHeader("X-Nothing"),
		"an empty one not there":  fakeprovider.EmptyHeader("X-Nothing"),
		"a renamed one not there": fakeprovider.RenameHeader("X-Nothing", "Y"),
		"an unknown library":      fakeprovider.Reserialize("cobol"),
		"an oversize too small":   fakeprovider.Oversize(3),
		"a fill too small":        fakeprovider.FillTo(3),
	} {
		if _, err := f.Draft(f.delivery(), a); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for name, a := range map[string]fakeprovider.Alteration{
		"removing a byte of nothing": fakeprovider.RemoveByte(),
		"a digit of nothing":         fakeprovider.ChangeDigit(),
		"a member of nothing":        fakeprovider.AddMember("a", "1"),
	} {
		if _, err := f.Draft(fakeprovider.Delivery{Keys: []signature.Key{f.key}}, a); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestDraftLeavesTheCallersBytesAlone(t *testing.T) {
	f := newFixture(t, "standard-webhooks")
	before := bytes.Clone(f.event)
	f.draft(t, fakeprovider.ChangeDigit(), fakeprovider.AppendByte(), fakeprovider.Relabel("v2"))
	if !bytes.Equal(before, f.event) {
		t.Error("the event was changed")
	}
}

func TestAnEmptyBodyStaysEmpty(t *testing.T) {
	for _, name := range []string{"standard-webhooks", "delivery-envelope"} {
		f := newFixture(t, name)
		d, err := f.Draft(fakeprovider.Delivery{ID: f.id, Keys: []signature.Key{f.key}})
		if err != nil || len(d.Request.Body) != 0 || d.Request.Size != 0 {
			t.Errorf("%s: %v, %q", name, err, d.Request.Body)
		}
		if _, err := f.Scheme().Verify(&d.Request, now, f.key); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestIdsSortInTheOrderOfTheirMaking(t *testing.T) {
	f := newFixture(t, "standard-webhooks")
	last, seen := "", map[string]bool{}
	for i := range 10_000 {
		id := f.NewID()
		if id <= last || seen[id] || len(id) != len("msg_")+36 || !strings.HasPrefix(id, "msg_") || id[4+14] != '7' || !strings.ContainsRune("89ab", rune(id[4+19])) {
			t.Fatalf("id %d: %q after %q", i, id, last)
		}
		last, seen[id] = id, true
	}
	f.clock.Add(time.Hour)
	if id := f.NewID(); id <= last {
		t.Errorf("an hour later: %q after %q", id, last)
	}
}

func TestIdsRepeatWithTheirSeed(t *testing.T) {
	make2 := func(seed byte) [2]string {
		contract, err := profile.Load("delivery-envelope")
		if err != nil {
			t.Fatal(err)
		}
		mock := clock.NewMock()
		mock.Set(now)
		p, err := fakeprovider.New(fakeprovider.Config{Profile: contract, Clock: mock, Rand: rand.NewChaCha8([32]byte{seed})})
		if err != nil {
			t.Fatal(err)
		}
		return [2]string{p.NewID(), p.NewID()}
	}
	if first, again := make2(1), make2(1); first != again {
		t.Error("the same seed made other ids")
	}
	if make2(1) == make2(2) {
		t.Error("another seed made the same ids")
	}
}

func TestIdsDifferWhenTheRandomSourceRunsDry(t *testing.T) {
	contract, err := profile.Load("standard-webhooks")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for range 3 {
		p, err := fakeprovider.New(fakeprovider.Config{Profile: contract, Clock: clock.NewMock(), Rand: strings.NewReader("x")})
		if err != nil {
			t.Fatal(err)
		}
		if id := p.NewID(); seen[id] {
			t.Errorf("%q came twice", id)
		} else {
			seen[id] = true
		}
	}
}

// What is drafted is what a receiver gets: net/http reads the same body and the
// same header values, and the signature verifies over them.
func TestWhatIsDraftedArrivesByteForByte(t *testing.T) {
	type arrived struct {
		header http.Header
		body   []byte
	}
	got := make(chan arrived, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- arrived{r.Header, body}
	}))
	defer server.Close()
	for _, name := range []string{"standard-webhooks", "delivery-envelope"} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, name)
			rapid.Check(t, func(rt *rapid.T) {
				delivery := f.delivery()
				delivery.Body = rapid.SliceOfN(rapid.Byte(), 0, 40_000).Draw(rt, "body")
				var alter []fakeprovider.Alteration
				if rapid.Bool().Draw(rt, "chunked") {
					alter = append(alter, fakeprovider.Chunked())
				}
				value := rapid.StringMatching(`[!-~]([ -~]*[!-~])?`).Draw(rt, "value")
				alter = append(alter, fakeprovider.AddHeader("X-Extra", value), fakeprovider.HeaderCase(fakeprovider.Case(rapid.IntRange(0, 3).Draw(rt, "case"))))
				draft, err := f.Draft(delivery, alter...)
				if err != nil {
					rt.Fatal(err)
				}
				x := f.Send(t.Context(), fakeprovider.Target{URL: server.URL}, draft, "")
				if !x.OK() || x.Sent != int64(len(delivery.Body)) {
					rt.Fatalf("%q: %q, %d B sent", x.Fault, x.FaultDetail, x.Sent)
				}
				a := <-got
				if !bytes.Equal(a.body, delivery.Body) {
					rt.Fatalf("%d B came, %d were sent", len(a.body), len(delivery.Body))
				}
				arrived := wire.Request{Method: "POST", Body: a.body}
				for _, h := range draft.Request.Headers {
					if a.header.Get(h.Name) != h.Value {
						rt.Fatalf("%s came as %q, sent %q", h.Name, a.header.Get(h.Name), h.Value)
					}
					arrived.Headers = append(arrived.Headers, wire.Header{Name: h.Name, Value: a.header.Get(h.Name)})
				}
				if _, err := f.Scheme().Verify(&arrived, now, f.key); err != nil {
					rt.Fatal(err)
				}
			})
		})
	}
}
