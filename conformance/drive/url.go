package drive

import (
	"context"

	"github.com/whconform/whconform/fakeprovider"
)

// URL drives a receiver that is already running at a target. It offers no
// capability.
func URL(to fakeprovider.Target) Receiver { return &urlReceiver{to: to} }

type urlReceiver struct {
	Bare
	to fakeprovider.Target
}

func (*urlReceiver) Has(string) bool                  { return false }
func (*urlReceiver) Close(context.Context) error      { return nil }
func (u *urlReceiver) Target(int) fakeprovider.Target { return u.to }
