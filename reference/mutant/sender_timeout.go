package mutant

import (
	"sync"
	"time"

	"github.com/whconform/whconform/reference/sender"
)

const (
	// tooLong is the default timeout of many an HTTP client.
	tooLong = 100 * time.Second

	// tooLongToConnect is the operating system's own limit, about.
	tooLongToConnect = 130 * time.Second

	// publishingWaits is how long publishing waits for a worker, in real time: a
	// little longer than a run waits for it.
	publishingWaits = 3500 * time.Millisecond
)

// timeoutSenders break sender.timeout.*.
func timeoutSenders() []SenderMutant {
	return []SenderMutant{
		{
			Name: "waits-too-long", Doc: "An attempt ends after 100 s, whatever it declares.",
			Fails:  []string{"sender.timeout.gives-up", "sender.timeout.gives-up.range", "sender.timeout.total"},
			Change: bounds(func(_, connect time.Duration) (time.Duration, time.Duration) { return tooLong, connect }),
		},
		{
			Name: "declares-a-long-timeout", Doc: "An attempt ends after a minute, as it declares.",
			Fails:  []string{"sender.timeout.gives-up.range"},
			Change: policy(func(p *sender.Policy) { p.Timeout = time.Minute }),
		},
		{
			Name: "gives-up-a-little-early", Doc: "A proxy in front of it ends each attempt two seconds before the declared timeout.",
			Fails: []string{"sender.timeout.waits", "sender.timeout.gives-up.range"},
			Change: bounds(func(timeout, connect time.Duration) (time.Duration, time.Duration) {
				timeout -= min(2*time.Second, timeout/2)
				return timeout, min(connect, timeout)
			}),
		},
		{
			Name: "timeout-to-the-headers", Doc: "The timeout ends with the answer's headers, and the body may take as long as it likes.",
			Fails: []string{"sender.timeout.total", "sender.timeout.connect.fast"},
			Change: together(
				network(func(t *sender.TransportOptions) { t.Faults.ConnectedByHeaders = true }),
				// The body has two minutes, so that a run ends.
				bounds(func(timeout, _ time.Duration) (time.Duration, time.Duration) { return timeout + 2*time.Minute, timeout }),
			),
		},
		{
			Name: "no-limit-to-connecting", Doc: "The timeout counts from when there is a connection, and connecting has the system's own limit.",
			Fails: []string{"sender.timeout.connect", "sender.timeout.connect.fast"},
			Change: together(
				network(func(t *sender.TransportOptions) { t.Faults.ConnectingIsFree = true }),
				bounds(func(timeout, _ time.Duration) (time.Duration, time.Duration) { return timeout, tooLongToConnect }),
			),
		},
		{
			Name: "connects-for-the-whole-timeout", Doc: "Connecting has no limit but that of the attempt.",
			Fails:  []string{"sender.timeout.connect.fast"},
			Change: bounds(func(timeout, _ time.Duration) (time.Duration, time.Duration) { return timeout, timeout }),
		},
		{
			Name: "publishing-waits", Doc: "Publishing waits for a free worker of the endpoint.",
			Fails:  []string{"sender.timeout.publish-returns", "sender.timeout.publish-returns.absolute"},
			Change: publishingWaitsForWorkers,
		},
		{
			Name: "head-of-line", Doc: "All endpoints share a few workers, and one that hangs gets them all.",
			Fails: []string{"sender.timeout.isolation"},
			Change: together(
				policy(func(p *sender.Policy) { p.AtOnce, p.PerEndpoint = 8, 8 }),
				prepared(trusting),
				judging(func(_ sender.AttemptInfo, _ sender.Result, o sender.Outcome) sender.Outcome {
					o.Unanswered = false
					return o
				}),
			),
			Wrap: declaring("perEndpointLimit", 2),
		},
		{
			Name: "no-limit-per-endpoint", Doc: "Nothing counts the attempts of one endpoint.",
			Fails: []string{"sender.timeout.isolation"},
			Change: together(
				policy(func(p *sender.Policy) { p.PerEndpoint = 16 }),
				prepared(trusting),
			),
			Wrap: declaring("perEndpointLimit", 2),
		},
	}
}

// trusting gives a new endpoint all its slots before it has answered once.
const trusting = `CREATE TRIGGER IF NOT EXISTS trusting AFTER INSERT ON endpoints BEGIN UPDATE endpoints SET trusted = 1 WHERE id = NEW.id; END`

// publishingWaitsForWorkers keeps publishing waiting while an attempt is under
// way at the endpoint.
func publishingWaitsForWorkers(o *sender.Options) {
	var mu sync.Mutex
	busy := map[string]int{}
	count := func(endpoint string, by int) int {
		mu.Lock()
		defer mu.Unlock()
		busy[endpoint] += by
		return busy[endpoint]
	}
	o.Faults.Request = func(a sender.AttemptInfo, r sender.Request) sender.Request {
		count(a.EndpointID, 1)
		return r
	}
	o.Faults.Outcome = func(a sender.AttemptInfo, _ sender.Result, out sender.Outcome) sender.Outcome {
		count(a.EndpointID, -1)
		return out
	}
	var waited memory[int]
	o.Faults.Publish = func(_ sender.Event, e sender.Endpoint, subscribed bool) bool {
		// Once for each endpoint, so that a run ends.
		if subscribed && count(e.ID, 0) > 0 && waited.change(e.ID, func(n int) int { return n + 1 }) == 1 {
			timer := time.NewTimer(publishingWaits)
			defer timer.Stop()
			<-timer.C
		}
		return subscribed
	}
}
