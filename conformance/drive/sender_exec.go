package drive

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"

	"github.com/whconform/whconform/conformance/drive/adapter"
)

// SenderExecConfig describes a sender whose adapter is a command.
type SenderExecConfig struct {
	SenderSetup
	SenderOptions
	Command []string  // program and arguments, no shell
	Dir     string    // working directory, "" for this one
	Env     []string  // beside this process's own environment
	Log     io.Writer // gets the adapter's stderr, without secrets; may be nil
}

// SenderExec starts an adapter as a process and speaks with it on its standard
// streams. It runs in a process group of its own, which Restart and Close end
// as a whole. Its WHCONFORM_STATE_DIR is the setup's State.
func SenderExec(ctx context.Context, c SenderExecConfig) (Sender, error) {
	if len(c.Command) == 0 {
		return nil, errors.New("starting a sender: no command")
	}
	return orNone(openSender(ctx, c.SenderSetup, c.SenderOptions, true, func(_ context.Context, setup SenderSetup, o adapter.Options) (adapter.Peer, error) {
		env := append(withoutSecrets(os.Environ()), c.Env...)
		if setup.State != "" {
			env = append(env, "WHCONFORM_STATE_DIR="+setup.State)
		}
		return adapter.Start(adapter.Command{Args: c.Command, Dir: c.Dir, Env: env, Log: c.Log}, o)
	}))
}

// SenderControlConfig describes a sender whose adapter answers by POST.
type SenderControlConfig struct {
	SenderSetup // without State: it runs already
	SenderOptions
	URL       string
	Transport http.RoundTripper // nil: straight to the host
}

// SenderControl speaks with the adapter at a control URL. It cannot be started
// again, so what needs that is not offered.
func SenderControl(ctx context.Context, c SenderControlConfig) (Sender, error) {
	c.State = ""
	return orNone(openSender(ctx, c.SenderSetup, c.SenderOptions, false, func(_ context.Context, _ SenderSetup, o adapter.Options) (adapter.Peer, error) {
		return adapter.NewHTTP(c.URL, c.Transport, o)
	}))
}

// DialPeer makes the adapter of a sender in this process; see [adapter.Local].
// The setup's State is its own.
type DialPeer func(ctx context.Context, setup SenderSetup, o adapter.Options) (adapter.Peer, error)

// SenderPeer speaks with an adapter in this process, for tests. Dial is called
// again for Restart and Another; a kill there ends the connection without a
// farewell, which is all that can be done to a part of this process.
func SenderPeer(ctx context.Context, setup SenderSetup, o SenderOptions, dial DialPeer) (Sender, error) {
	return orNone(openSender(ctx, setup, o, true, dialSender(dial)))
}

// orNone keeps a nil pointer from becoming a Sender.
func orNone(s *remoteSender, err error) (Sender, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}
