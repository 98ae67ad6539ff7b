package drive

import (
	"context"
	"errors"

	"github.com/whconform/whconform/fakeprovider"
)

// Observed is a receiver with an observer of what it processes. observe makes
// the observer of a receiver once its target is known; a Variant gets one of
// its own.
func Observed(r Receiver, observe func(Receiver) (Observer, error)) (Receiver, error) {
	o, err := observe(r)
	if err != nil {
		return nil, err
	}
	return &observed{r, o, observe}, nil
}

type observed struct {
	Receiver
	observer Observer
	observe  func(Receiver) (Observer, error)
}

func (o *observed) Has(capability string) bool {
	return capability == Observe || capability == ObserveByID || o.Receiver.Has(capability)
}

func (o *observed) Processed(ctx context.Context, id string) (Count, error) {
	return o.observer.Processed(ctx, id)
}

func (o *observed) Variant(ctx context.Context, s Secrets) (Receiver, error) {
	r, err := o.Receiver.Variant(ctx, s)
	if err != nil {
		return nil, err
	}
	watched, err := Observed(r, o.observe)
	if err != nil {
		return nil, errors.Join(err, r.Close(context.WithoutCancel(ctx)))
	}
	return watched, nil
}

// AsksProvider is a receiver that asks the provider's API at an address where
// the suite plays it. One that the suite starts is told the address itself, by
// [ExecConfig].Provider.
func AsksProvider(r Receiver, api *fakeprovider.API) Receiver { return &asking{r, api} }

type asking struct {
	Receiver
	api *fakeprovider.API
}

func (a *asking) Has(capability string) bool {
	return capability == ProviderAPI || a.Receiver.Has(capability)
}

// Unwrap returns the receiver below.
func (a *asking) Unwrap() Receiver { return a.Receiver }

func (a *asking) Provider() *fakeprovider.API { return a.api }

// Variant implements [Receiver]. It asks at the same address.
func (a *asking) Variant(ctx context.Context, s Secrets) (Receiver, error) {
	r, err := a.Receiver.Variant(ctx, s)
	if err != nil {
		return nil, err
	}
	return &asking{r, a.api}, nil
}
