package drive

import (
	"context"
	"errors"
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
