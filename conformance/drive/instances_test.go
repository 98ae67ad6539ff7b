package drive

import (
	"errors"
	"sync"
	"testing"

	"github.com/benbjohnson/clock"

	"github.com/whconform/whconform/fakeprovider"
)

func TestASecondInstanceIsTheSameCommandOnTheSameStateAtAnotherPort(t *testing.T) {
	noLeaks(t)
	c := as(roleServe)
	c.Instances, c.State, c.Secrets = true, t.TempDir(), Secrets{Current: current, Previous: previous}
	r := started(t, c)
	if !r.Has(Instances) {
		t.Error("it does not offer instances")
	}
	if r.Target(1).URL != r.Target(0).URL {
		t.Error("a second target is there before it was asked for")
	}
	var asking sync.WaitGroup
	for range 4 { // whoever asks first starts it
		asking.Go(func() {
			if to, err := r.Second(t.Context()); err != nil || to.URL != r.Target(1).URL {
				t.Errorf("%+v, %v", to, err)
			}
		})
	}
	asking.Wait()
	first, second := ask(t, r), askAt(t, r.Target(1))
	if first.PID == second.PID || first.Env["PORT"] == second.Env["PORT"] {
		t.Error("there is one process only")
	}
	for _, name := range []string{"WHCONFORM_STATE_DIR", "WEBHOOK_SECRET", "WEBHOOK_SECRET_PREVIOUS"} {
		if first.Env[name] != second.Env[name] {
			t.Errorf("%s is %q and %q", name, first.Env[name], second.Env[name])
		}
	}
	for _, kill := range []bool{true, false} {
		if err := r.Restart(t.Context(), kill); err != nil {
			t.Fatal(err)
		}
		again, other := ask(t, r), askAt(t, r.Target(1))
		if !gone(first.PID) || !gone(second.PID) || again.Env["PORT"] != first.Env["PORT"] || other.Env["PORT"] != second.Env["PORT"] {
			t.Errorf("with kill %t not both were started again where they were", kill)
		}
		first, second = again, other
	}
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if !gone(first.PID) || !gone(second.PID) {
		t.Error("one of them still runs")
	}
}

func TestASecondInstanceThatDoesNotStartLeavesTheFirstAlone(t *testing.T) {
	c := as(roleOnce)
	c.Instances = true
	r := started(t, c)
	for range 2 {
		if _, err := r.Second(t.Context()); !errors.Is(err, ErrRefusedToStart) {
			t.Errorf("the error is %v", err)
		}
	}
	if ask(t, r).PID == 0 {
		t.Error("the first answers no more")
	}
}

func TestACommandIsToldWhereTheProvidersAPIIs(t *testing.T) {
	t.Setenv("WHCONFORM_PROVIDER_URL", "the caller's own")
	api, err := fakeprovider.ServeAPI(clock.New(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer api.Close(t.Context())
	c := as(roleServe)
	if value, there := ask(t, started(t, c)).Env["WHCONFORM_PROVIDER_URL"]; there {
		t.Errorf("without an API it is told %q", value)
	}
	c.Provider = api
	r := started(t, c)
	v, err := r.Variant(t.Context(), Secrets{})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close(t.Context())
	for _, r := range []Receiver{r, v} {
		if got := ask(t, r).Env["WHCONFORM_PROVIDER_URL"]; got != api.URL() || !r.Has(ProviderAPI) || r.Provider() != api.API {
			t.Errorf("it is told %q, want %q, and offers provider-api: %t", got, api.URL(), r.Has(ProviderAPI))
		}
	}
}

func TestAReceiverElsewhereMayAskTheProvidersAPI(t *testing.T) {
	api := fakeprovider.NewAPI(clock.New())
	inner, err := Handler(HandlerConfig{New: serveShop})
	if err != nil {
		t.Fatal(err)
	}
	r := AsksProvider(inner, api)
	defer r.Close(t.Context())
	v, err := r.Variant(t.Context(), Secrets{})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close(t.Context())
	for _, r := range []Receiver{r, v} {
		if !r.Has(ProviderAPI) || r.Provider() != api || r.Has(Instances) || !r.Has(SecondConfiguration) {
			t.Error("it offers something else than the API beside what it did")
		}
	}
	if got := nameOf(r); got != "of the receiver" {
		t.Errorf("its observer is called %q", got)
	}
	if _, err := AsksProvider(URL(fakeprovider.Target{}), api).Variant(t.Context(), Secrets{}); !errors.Is(err, ErrNotOffered) {
		t.Errorf("the error is %v", err)
	}
}
