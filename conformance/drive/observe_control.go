package drive

import (
	"context"
	"errors"
	"fmt"

	"github.com/whconform/whconform/conformance/drive/adapter"
)

// ObserveControl asks the receiver's adapter by its method receiver.processed.
// ErrNotOffered if the adapter did not declare it.
func ObserveControl(s *adapter.Session) (Observer, error) {
	if !s.Has(adapter.MethodProcessed) {
		return nil, fmt.Errorf("observing by the adapter's method %s: %w", adapter.MethodProcessed, ErrNotOffered)
	}
	return controlObserver{s}, nil
}

type controlObserver struct{ session *adapter.Session }

func (o controlObserver) Processed(ctx context.Context, id string) (Count, error) {
	p, err := o.session.Processed(ctx, id)
	if err == nil {
		return Count{N: p.Processed, Failed: p.Failed}, nil
	}
	if ctx.Err() != nil {
		return Count{}, err
	}
	return Count{}, &ObserverError{Fault: controlFault(err), Observer: adapter.MethodProcessed, ID: id, Got: err.Error(), Err: err}
}

// controlFault translates what the adapter did wrong.
func controlFault(err error) ObserverFault {
	var f *adapter.Fault
	if !errors.As(err, &f) {
		return ObserverRefuses // it answered with an error
	}
	switch f.Kind {
	case adapter.Silent, adapter.Unread:
		return ObserverHangs
	case adapter.NoContact:
		return ObserverUnreachable
	case adapter.BadResult, adapter.Garbage, adapter.WrongID, adapter.LongLine, adapter.BadStatus:
		return ObserverNonsense
	}
	return ObserverUnfit // an adapter that died stays dead
}
