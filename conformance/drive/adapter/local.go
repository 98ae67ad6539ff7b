package adapter

import (
	"context"
	"fmt"
	"io"
)

// Local serves methods in this process and returns the suite's side of the
// connection, for tests: the messages take the way that they take between two
// processes. Close ends the methods' context and waits for them.
func Local(methods Methods, o Options) Peer {
	fromPeer, toMethods := io.Pipe()
	fromMethods, toPeer := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	l := &local{Client: NewClient(Streams(fromMethods, toMethods), o), cancel: cancel, served: make(chan struct{})}
	go func() {
		defer close(l.served)
		l.err = Serve(ctx, fromPeer, toPeer, methods)
		_ = toPeer.Close()
		_ = fromPeer.Close() // a request that is still being written goes nowhere
	}()
	return l
}

// local is a client whose peer is served in this process.
type local struct {
	*Client
	cancel context.CancelFunc
	served chan struct{}
	err    error // of Serve, once served is closed
}

// Kill cuts the methods off, without a farewell.
func (l *local) Kill() { l.cancel() }

func (l *local) Close(ctx context.Context) error {
	err := l.Client.Close(ctx)
	l.cancel()
	select {
	case <-l.served:
	case <-ctx.Done():
		return fmt.Errorf("closing the %s in this process: its methods still run: %w", l.options.Name, context.Cause(ctx))
	}
	return err
}
