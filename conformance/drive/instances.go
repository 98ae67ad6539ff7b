package drive

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/whconform/whconform/fakeprovider"
)

// managed is a receiver that the suite starts: a process of the command, and a
// second one on the same state where a scenario asks for it.
type managed struct {
	Bare
	config ExecConfig
	first  *process

	starting sync.Mutex // one second process is started, whoever asks for it
	mu       sync.Mutex
	second   *process // nil until it was asked for
}

func (m *managed) Has(capability string) bool {
	switch capability {
	case Managed, SecondConfiguration:
		return true
	case Instances:
		return m.config.Instances
	case ProviderAPI:
		return m.config.Provider != nil
	}
	return false
}

func (m *managed) Target(instance int) fakeprovider.Target {
	if second := m.other(); instance > 0 && second != nil {
		return second.target()
	}
	return m.first.target()
}

func (m *managed) Provider() *fakeprovider.API {
	if m.config.Provider == nil {
		return nil
	}
	return m.config.Provider.API
}

// Second implements [Receiver]. A second process that does not start is no
// failing of the first, and may be asked for again.
func (m *managed) Second(ctx context.Context) (fakeprovider.Target, error) {
	if !m.config.Instances {
		return fakeprovider.Target{}, ErrNotOffered
	}
	m.starting.Lock()
	defer m.starting.Unlock()
	if second := m.other(); second != nil {
		return second.target(), nil
	}
	second := &process{config: m.config}
	// It needs about as long as the first one.
	second.config.StartTimeout = m.laterStart()
	if err := second.start(ctx); err != nil {
		return fakeprovider.Target{}, fmt.Errorf("starting a second instance beside the first: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.second = second
	return second.target(), nil
}

// other is the second process, if there is one.
func (m *managed) other() *process {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.second
}

// running are the processes there are, the first one first.
func (m *managed) running() []*process {
	if second := m.other(); second != nil {
		return []*process{m.first, second}
	}
	return []*process{m.first}
}

func (m *managed) Variant(ctx context.Context, s Secrets) (Receiver, error) {
	c := m.config
	c.Secrets = s
	state, err := os.MkdirTemp(c.State, "variant-")
	if err != nil {
		return nil, fmt.Errorf("making a state folder for a second receiver: %w", err)
	}
	c.State = state
	c.StartTimeout = m.laterStart()
	return Exec(ctx, c)
}

// laterStart bounds the start of another process of the command. It needs about
// as long as the first one; a supervisor that starts a refusing process again
// and again would cost the whole bound.
func (m *managed) laterStart() time.Duration {
	return min(m.config.StartTimeout, max(variantStart, 3*m.first.took))
}

// Restart ends all processes before it starts one again: what is on the state
// then is what survived.
func (m *managed) Restart(ctx context.Context, kill bool) error {
	all := m.running()
	for _, p := range all {
		if kill {
			p.signal(syscall.SIGKILL)
		}
	}
	for _, p := range all {
		if kill {
			<-p.exited
		} else {
			p.stop(ctx)
		}
	}
	var errs []error
	for _, p := range all {
		errs = append(errs, p.start(ctx))
	}
	return errors.Join(errs...)
}

func (m *managed) Close(ctx context.Context) error {
	var ending sync.WaitGroup
	for _, p := range m.running() {
		ending.Go(func() { p.stop(ctx) })
	}
	ending.Wait()
	return nil
}
