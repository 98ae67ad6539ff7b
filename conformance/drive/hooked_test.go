package drive

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/whconform/whconform/conformance/drive/adapter"
	"github.com/whconform/whconform/fakeprovider"
)

var byStandard = HookOptions{Profile: "standard-webhooks"}

// hookedCommand starts a command with an adapter on its standard streams.
func hookedCommand(t *testing.T, role string, change func(*ExecConfig)) (Receiver, error) {
	t.Helper()
	c := as(role)
	c.Stdio, c.Secrets = true, Secrets{Current: current}
	if change != nil {
		change(&c)
	}
	return Hooked(t.Context(), started(t, c), HooksOnStdio(byStandard))
}

// expectState asks for the state of an event.
func expectState(t *testing.T, r Receiver, when, want string) {
	t.Helper()
	if got, err := r.State(t.Context(), "msg_1", "pay_1"); err != nil || got != want {
		t.Errorf("%s the state is %q (%v), want %q", when, got, err, want)
	}
}

// tryHooks asks for each of the shop's methods.
func tryHooks(t *testing.T, r Receiver) {
	t.Helper()
	for _, capability := range []string{Fail, ObserveState, Clock, Observe, ObserveByID} {
		if !r.Has(capability) {
			t.Errorf("it does not offer %s", capability)
		}
	}
	if c, err := r.Processed(t.Context(), "four"); err != nil || c.N != 4 {
		t.Errorf("Processed: %v, %v", c, err)
	}
	expectState(t, r, "at first", "msg_1 pay_1: fails , 0 h ahead")
	if err := r.FailOnce(t.Context(), "msg_1"); err != nil {
		t.Error(err)
	}
	if err := r.AdvanceClock(t.Context(), time.Now().Add(24*time.Hour)); err != nil {
		t.Error(err)
	}
	expectState(t, r, "afterwards", "msg_1 pay_1: fails msg_1, 24 h ahead")
}

func TestACommandsAdapterOnItsStandardStreamsIsAskedThere(t *testing.T) {
	noLeaks(t)
	log := newLog()
	r, err := hookedCommand(t, roleAdapter, func(c *ExecConfig) { c.Log = log })
	if err != nil {
		t.Fatal(err)
	}
	tryHooks(t, r)
	if !r.Has(Managed) || r.Has(Instances) || r.Has(ProviderAPI) {
		t.Error("what the command offers beside its adapter is not what was said of it")
	}
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
	log.await(t, "ending with its input")
}

func TestAnAdapterIsIntroducedAgainAfterEachRestart(t *testing.T) {
	for _, kill := range []bool{false, true} {
		r, err := hookedCommand(t, roleAdapter, nil)
		if err != nil {
			t.Fatal(err)
		}
		tryHooks(t, r)
		for range 2 {
			if err := r.Restart(t.Context(), kill); err != nil {
				t.Fatal(err)
			}
			// What it kept in memory is gone; the time is the run's all the same.
			expectState(t, r, "after a restart", "msg_1 pay_1: fails , 24 h ahead")
		}
	}
}

func TestAVariantHasHooksOfItsOwn(t *testing.T) {
	r, err := hookedCommand(t, roleAdapter, nil)
	if err != nil {
		t.Fatal(err)
	}
	v, err := r.Variant(t.Context(), Secrets{Current: previous})
	if err != nil {
		t.Fatal(err)
	}
	tryHooks(t, v)
	expectState(t, r, "of the first", "msg_1 pay_1: fails , 0 h ahead")
	if err := v.Close(t.Context()); err != nil {
		t.Error(err)
	}
	expectState(t, r, "once the variant is closed", "msg_1 pay_1: fails , 0 h ahead")
}

func TestASecondInstanceIsToldOfFailuresAndTimeToo(t *testing.T) {
	noLeaks(t)
	r, err := hookedCommand(t, roleAdapter, func(c *ExecConfig) { c.Instances = true })
	if err != nil {
		t.Fatal(err)
	}
	if err := r.AdvanceClock(t.Context(), time.Now().Add(2*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Second(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := r.FailOnce(t.Context(), "msg_2"); err != nil {
		t.Fatal(err)
	}
	links := r.(*hooked).present()
	if len(links) != 2 {
		t.Fatalf("there are %d adapters", len(links))
	}
	for i, l := range links {
		if got, err := l.session.State(t.Context(), "", ""); err != nil || got != " : fails msg_2, 2 h ahead" {
			t.Errorf("instance %d: %q, %v", i, got, err)
		}
	}
	if err := r.Restart(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if err := r.FailOnce(t.Context(), "msg_3"); err != nil {
		t.Error("after a restart of both:", err)
	}
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAnAdapterThatLogsToStdoutIsNamedAndTheReceiverGoesOn(t *testing.T) {
	noLeaks(t)
	c := as(roleBanner)
	log, err := ObserveLog(`^all is {id}$`)
	if err != nil {
		t.Fatal(err)
	}
	c.Stdio, c.Secrets, c.Log = true, Secrets{Current: current}, log
	r := started(t, c)
	_, err = Hooked(t.Context(), r, HooksOnStdio(byStandard))
	if !adapter.IsFault(err, adapter.Banner) || !strings.Contains(err.Error(), "the adapter on the command's standard streams") ||
		!strings.Contains(err.Error(), "Shop is listening") || strings.Contains(err.Error(), current) {
		t.Errorf("the error is %v", err)
	}
	if ask(t, r).PID == 0 {
		t.Error("the receiver answers no more")
	}
	// All that it printed is read, and is its log.
	if _, err := AwaitProcessed(t.Context(), clock.New(), log, "logged", 1, 10*time.Second); err != nil {
		t.Error(err)
	}
	if n, _ := log.Processed(t.Context(), "logged"); n.N != 1 {
		t.Error("the end of its output did not come")
	}
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAnAdapterThatBreaksLaterFailsWhatAsksItAndNothingElse(t *testing.T) {
	r, err := hookedCommand(t, roleBreaks, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := r.FailOnce(t.Context(), "msg_1"); !adapter.IsFault(err, adapter.Garbage) || !strings.Contains(err.Error(), "no such table") {
			t.Errorf("the error is %v", err)
		}
	}
	if ask(t, r).PID == 0 {
		t.Error("the receiver answers no more")
	}
	if err := r.Restart(t.Context(), true); err != nil {
		t.Errorf("a restart ends with the adapter's fault: %v", err)
	}
	if !r.Has(Fail) {
		t.Error("it stopped to offer what it broke: its rows would be skipped in silence")
	}
}

func TestAReceiverThatEndsIsNoFaultOfTheSuite(t *testing.T) {
	r, err := hookedCommand(t, roleAdapter, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.(*hooked).Receiver.(*managed).first.kill()
	if err := r.FailOnce(t.Context(), "msg_1"); !adapter.IsFault(err, adapter.Died) || !strings.Contains(err.Error(), "killed") {
		t.Errorf("the error is %v", err)
	}
	if err := Revive(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	tryHooks(t, r)
}

func TestACommandThatNeverReadsEndsAllTheSame(t *testing.T) {
	noLeaks(t)
	c := as(roleDeafInput)
	c.Stdio = true
	r := started(t, c)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := Hooked(ctx, r, HooksOnStdio(byStandard)); !adapter.IsFault(err, adapter.Silent) {
		t.Errorf("the error is %v", err)
	}
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAReceiversAdapterMayAnswerAtAURL(t *testing.T) {
	inProcess := HandlerConfig{New: serveShop}
	r, err := Handler(inProcess)
	if err != nil {
		t.Fatal(err)
	}
	h, err := HooksAt("http://127.0.0.1:{port}/control", byStandard)
	if err != nil {
		t.Fatal(err)
	}
	hooked, err := Hooked(t.Context(), r, h)
	if err != nil {
		t.Fatal(err)
	}
	defer hooked.Close(t.Context())
	tryHooks(t, hooked)
	v, err := hooked.Variant(t.Context(), Secrets{})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close(t.Context())
	tryHooks(t, v)
}

func TestAnAdapterAtOneURLIsNoneOfAVariant(t *testing.T) {
	s := httptest.NewServer(adapter.Handler(shop("")))
	defer s.Close()
	r, err := Handler(HandlerConfig{New: serveShop})
	if err != nil {
		t.Fatal(err)
	}
	h, err := HooksAt(s.URL, byStandard)
	if err != nil {
		t.Fatal(err)
	}
	hooked, err := Hooked(t.Context(), r, h)
	if err != nil {
		t.Fatal(err)
	}
	defer hooked.Close(t.Context())
	tryHooks(t, hooked)
	v, err := hooked.Variant(t.Context(), Secrets{})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close(t.Context())
	if v.Has(Fail) || v.Has(Clock) {
		t.Error("the variant would move the first one's clock")
	}
}

func TestAnAdapterThatCannotBeReachedIsNamedWithoutItsPassword(t *testing.T) {
	for _, tt := range []struct {
		name  string
		serve http.HandlerFunc
		kind  adapter.Kind
	}{
		{"a login page", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }, adapter.Garbage},
		{"no such route", http.NotFound, adapter.BadStatus},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := httptest.NewServer(tt.serve)
			defer s.Close()
			h, err := HooksAt(strings.Replace(s.URL, "//", "//me:sesame@", 1), byStandard)
			if err != nil {
				t.Fatal(err)
			}
			_, err = Hooked(t.Context(), URL(fakeprovider.Target{URL: "http://127.0.0.1:1/"}), h)
			if !adapter.IsFault(err, tt.kind) || !strings.Contains(err.Error(), "the adapter at "+s.URL) || strings.Contains(err.Error(), "sesame") {
				t.Errorf("the error is %v", err)
			}
		})
	}
	for _, template := range []string{"", "localhost:80/control", "ftp://localhost/", "http://me:sesame@[::1/"} {
		if _, err := HooksAt(template, byStandard); err == nil || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%q: %v", template, err)
		}
	}
}

func TestHooksThatAreNotDeclaredAreNotOffered(t *testing.T) {
	methods := adapter.Methods{}
	methods[adapter.MethodInitialize] = adapter.Initialize(adapter.Initialized{Name: "shop"}, methods, nil)
	s := httptest.NewServer(adapter.Handler(methods))
	defer s.Close()
	h, err := HooksAt(s.URL, byStandard)
	if err != nil {
		t.Fatal(err)
	}
	bare := URL(fakeprovider.Target{URL: "http://127.0.0.1:1/"})
	r, err := Hooked(t.Context(), bare, h)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []Receiver{bare, r} {
		if r.Has(Fail) || r.Has(ObserveState) || r.Has(Clock) || r.Has(Observe) || r.Has(Instances) || r.Has(ProviderAPI) {
			t.Error("it offers something")
		}
		_, stateErr := r.State(t.Context(), "", "")
		_, countErr := r.Processed(t.Context(), "")
		_, secondErr := r.Second(t.Context())
		_, variantErr := r.Variant(t.Context(), Secrets{})
		for _, err := range []error{r.FailOnce(t.Context(), ""), stateErr, r.AdvanceClock(t.Context(), time.Now()), countErr, secondErr, variantErr, r.Restart(t.Context(), true)} {
			if !errors.Is(err, ErrNotOffered) {
				t.Errorf("the error is %v", err)
			}
		}
		if r.Provider() != nil {
			t.Error("it asks a provider")
		}
	}
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
