package drive

import (
	"context"

	"github.com/whconform/whconform/fakeprovider"
)

// URL drives a receiver that is already running at a target. It offers no
// capability.
func URL(to fakeprovider.Target) Receiver { return &urlReceiver{to} }

type urlReceiver struct{ to fakeprovider.Target }

func (*urlReceiver) Has(string) bool                     { return false }
func (*urlReceiver) Restart(context.Context, bool) error { return ErrNotOffered }
func (*urlReceiver) Close(context.Context) error         { return nil }
func (u *urlReceiver) Target(int) fakeprovider.Target    { return u.to }
func (*urlReceiver) Processed(context.Context, string) (Count, error) {
	return Count{}, ErrNotOffered
}
func (*urlReceiver) Variant(context.Context, Secrets) (Receiver, error) {
	return nil, ErrNotOffered
}
