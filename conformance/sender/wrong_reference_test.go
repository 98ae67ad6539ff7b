package sender

import (
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	reference "github.com/whconform/whconform/reference/sender"
	"github.com/whconform/whconform/reference/signature"
	"github.com/whconform/whconform/reference/wire"
)

// The self-test has a mutant for every row. Here one fault or two of each kind
// show that a scenario brings about what its judge looks for.

// faulty changes the sender's own steps.
func faulty(f reference.Faults) func(*reference.Options) {
	return func(o *reference.Options) { o.Faults = f }
}

// transporting changes the transport's.
func transporting(f reference.TransportFaults) func(*reference.Options) {
	return func(o *reference.Options) {
		options := o.Transport.(*reference.HTTPTransport).Options()
		options.Faults = f
		if t, err := reference.NewTransport(options); err == nil {
			o.Transport = t
		}
	}
}

// outcome is a fault of what an answer means.
func outcome(change func(r reference.Result, o *reference.Outcome)) func(*reference.Options) {
	return faulty(reference.Faults{Outcome: func(_ reference.AttemptInfo, r reference.Result, o reference.Outcome) reference.Outcome {
		change(r, &o)
		return o
	}})
}

// giveUp ends a message at a failure that it chooses.
func giveUp(at func(r reference.Result) bool) func(*reference.Options) {
	const given = "given up"
	return faulty(reference.Faults{
		Outcome: func(_ reference.AttemptInfo, r reference.Result, o reference.Outcome) reference.Outcome {
			if at(r) {
				o.Error = given
			}
			return o
		},
		Update: func(_ reference.AttemptInfo, o reference.Outcome, u reference.Update) reference.Update {
			if o.Error == given {
				u.Status, u.Next = reference.MessageFailed, time.Time{}
			}
			return u
		},
	})
}

// roundTrips wraps what makes requests.
func roundTrips(do func(next http.RoundTripper, r *http.Request) (*http.Response, error)) func(*reference.Options) {
	return transporting(reference.TransportFaults{Answer: func(next http.RoundTripper) http.RoundTripper {
		return tripper(func(r *http.Request) (*http.Response, error) { return do(next, r) })
	}})
}

type tripper func(*http.Request) (*http.Response, error)

func (t tripper) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// remembered is a value for each message, that of its first attempt.
type remembered[T any] struct {
	mu sync.Mutex
	by map[string]T
}

func (r *remembered[T]) first(id string, now T) T {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by == nil {
		r.by = map[string]T{}
	}
	if old, known := r.by[id]; known {
		return old
	}
	r.by[id] = now
	return now
}

func TestWrongSendersAreFound(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs many senders")
	}
	isRedirect := func(r reference.Result) bool { return r.Status >= 300 && r.Status < 400 }
	var times remembered[time.Time]
	var signatures remembered[string]
	var gone remembered[bool]
	for _, tt := range []struct {
		name   string
		change func(*reference.Options)
		found  []string
	}{
		{"a redirect is a success", outcome(func(r reference.Result, o *reference.Outcome) { o.Delivered = o.Delivered || isRedirect(r) }), []string{retryOnStatus, redirectFailure}},
		{"redirects are followed", roundTrips(func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
			answer, err := next.RoundTrip(r)
			if err != nil || answer.Header.Get("Location") == "" {
				return answer, err
			}
			_ = answer.Body.Close()
			again, err := http.NewRequestWithContext(r.Context(), http.MethodGet, answer.Header.Get("Location"), nil)
			if err != nil {
				return nil, err
			}
			return next.RoundTrip(again)
		}), []string{redirectFollowed, redirectFailure, redirectLogged, retryOnStatus}},
		{"404 is final", giveUp(func(r reference.Result) bool { return r.Status == 404 }), []string{retryOnStatus}},
		{"no answer is final", giveUp(func(r reference.Result) bool { return r.Status == 0 }), []string{retryOnTransport, retryDNS, timeoutGivesUp, timeoutTotal, timeoutConnect}},
		{"only 200 is a success", outcome(func(r reference.Result, o *reference.Outcome) { o.Delivered = r.Status == 200 }), []string{retrySuccess, retryInterim}},
		{"delays count from the beginning of an attempt", func(o *reference.Options) {
			now := o.Clock.Now
			o.Faults.Delay = func(a reference.AttemptInfo, _ reference.Outcome, usual time.Duration) time.Duration {
				return max(usual-now().Sub(a.Began), 0)
			}
		}, []string{retrySchedule}},
		{"no jitter", func(o *reference.Options) {
			schedule := o.Profile.Schedule
			o.Faults.Delay = func(a reference.AttemptInfo, _ reference.Outcome, usual time.Duration) time.Duration {
				if a.Number < len(schedule) {
					return schedule[a.Number]
				}
				return usual
			}
		}, []string{retryJitter}},
		{"nine attempts", faulty(reference.Faults{Update: func(a reference.AttemptInfo, _ reference.Outcome, u reference.Update) reference.Update {
			if a.Number == 9 && u.Status == reference.MessagePending {
				u.Status, u.Next = reference.MessageFailed, time.Time{}
			}
			return u
		}}), []string{retryAttempts}},
		{"a failed message is called delivered", faulty(reference.Faults{Update: func(_ reference.AttemptInfo, _ reference.Outcome, u reference.Update) reference.Update {
			if u.Status == reference.MessageFailed {
				u.Status = reference.MessageDelivered
			}
			return u
		}}), []string{retryMarked}},
		{"a new id for each attempt", faulty(reference.Faults{ID: func(a reference.AttemptInfo, id string) string { return id + strconv.Itoa(a.Number) }}), []string{"sender.retry.same-id"}},
		{"other bytes on a retry", faulty(reference.Faults{Body: func(a reference.AttemptInfo, stored []byte) []byte {
			if a.Number > 1 {
				return append(slices.Clone(stored), ' ')
			}
			return stored
		}}), []string{"sender.retry.same-bytes"}},
		{"the timestamp of the first attempt", faulty(reference.Faults{Signing: func(a reference.AttemptInfo, in signature.Input, keys []signature.Key) (signature.Input, []signature.Key) {
			in.Time = times.first(a.MessageID, in.Time)
			return in, keys
		}}), []string{"sender.retry.fresh-timestamp"}},
		{"the signature of the first attempt", faulty(reference.Faults{Request: func(a reference.AttemptInfo, r reference.Request) reference.Request {
			if text, ok := wire.Get(r.Headers, "webhook-signature"); ok {
				r.Headers = wire.Set(r.Headers, "webhook-signature", signatures.first(a.MessageID, text))
			}
			return r
		}}), []string{retryFreshSign}},
		{"Retry-After is ignored", outcome(func(_ reference.Result, o *reference.Outcome) { o.RetryAfter = "" }), []string{retryAfterLonger, retryAfterDate}},
		{"Retry-After replaces the schedule", faulty(reference.Faults{Delay: func(_ reference.AttemptInfo, o reference.Outcome, usual time.Duration) time.Duration {
			if n, err := strconv.Atoi(o.RetryAfter); err == nil {
				return max(time.Duration(n)*time.Second, 0)
			}
			return usual
		}}), []string{retryAfterShorter, retryAfterNonsense}},
		{"Retry-After in words ends the message", faulty(reference.Faults{Update: func(_ reference.AttemptInfo, o reference.Outcome, u reference.Update) reference.Update {
			if strings.Contains(o.RetryAfter, "while") {
				u.Status, u.Next = reference.MessageFailed, time.Time{}
			}
			return u
		}}), []string{retryAfterNonsense}},
		{"ten times the timeout", faulty(reference.Faults{Bounds: func(timeout, connect time.Duration) (time.Duration, time.Duration) { return 10 * timeout, connect }}), []string{timeoutGivesUp, timeoutRange, timeoutTotal}},
		{"half the timeout", faulty(reference.Faults{Bounds: func(timeout, connect time.Duration) (time.Duration, time.Duration) { return timeout / 2, connect }}), []string{timeoutWaits, timeoutRange}},
		{"connecting has the attempt's timeout", faulty(reference.Faults{Bounds: func(timeout, _ time.Duration) (time.Duration, time.Duration) { return timeout, timeout }}), []string{timeoutConnectFast}},
		{"connecting has no timeout", func(o *reference.Options) {
			transporting(reference.TransportFaults{ConnectingIsFree: true})(o)
			o.Faults.Bounds = func(timeout, _ time.Duration) (time.Duration, time.Duration) { return timeout, time.Hour }
		}, []string{timeoutConnect, timeoutConnectFast}},
		{"publishing to one endpoint takes a second", faulty(reference.Faults{Publish: func(_ reference.Event, to reference.Endpoint, subscribed bool) bool {
			if subscribed && strings.HasSuffix(to.URL, "/3") { // the third that the scenario makes
				time.Sleep(time.Second)
			}
			return subscribed
		}}), []string{timeoutPublish}},
		{"an interim answer is the answer", roundTrips(func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
			early := false
			trace := &httptrace.ClientTrace{Got1xxResponse: func(int, textproto.MIMEHeader) error { early = true; return nil }}
			answer, err := next.RoundTrip(r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
			if err == nil && early {
				answer.StatusCode = http.StatusEarlyHints
			}
			return answer, err
		}), []string{retryInterim}},
		{"one attempt at a time", func(o *reference.Options) { o.Policy.AtOnce, o.Policy.PerEndpoint = 1, 1 }, []string{timeoutIsolation}},
		{"bodies are read whole", roundTrips(func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
			answer, err := next.RoundTrip(r)
			if err == nil {
				_, err = io.Copy(io.Discard, io.LimitReader(answer.Body, 32<<20))
			}
			return answer, err
		}), []string{responseHuge}},
		{"headers of 64 MiB are read", transporting(reference.TransportFaults{Pool: func(t *http.Transport) { t.MaxResponseHeaderBytes = 64 << 20 }}), []string{responseHeaders}},
		{"the log keeps 64 KiB", faulty(reference.Faults{Log: func(line reference.Attempt) (reference.Attempt, bool) {
			if line.Status >= 500 {
				line.Body = []byte(strings.Repeat("x", 64<<10))
			}
			return line, true
		}}), []string{responseStored}},
		{"410 is a failure like others", outcome(func(_ reference.Result, o *reference.Outcome) { o.Gone = false }), []string{disableGone, disableGoneStatus}},
		{"what waits is sent to disabled endpoints", faulty(reference.Faults{IgnoreStatus: true}), []string{disableGone, disableByOwner}},
		{"404 disables", outcome(func(r reference.Result, o *reference.Outcome) { o.Gone = o.Gone || r.Status == 404 }), []string{disableOnlyGone}},
		{"nothing disables", faulty(reference.Faults{Update: func(_ reference.AttemptInfo, _ reference.Outcome, u reference.Update) reference.Update {
			u.Disable = ""
			return u
		}}), []string{disableAfterDays, disableGone}},
		{"the third failure of a message disables", faulty(reference.Faults{Update: func(a reference.AttemptInfo, o reference.Outcome, u reference.Update) reference.Update {
			if a.Number == 3 && !o.Delivered {
				u.Disable = "three failures"
			}
			return u
		}}), []string{disableAfterDays}},
		{"nobody is told", faulty(reference.Faults{Notify: func(n reference.Notification) (reference.Notification, bool) { return n, false }}), []string{disableNotifies, disableCredentials}},
		{"once gone, any failure disables", faulty(reference.Faults{Update: func(a reference.AttemptInfo, o reference.Outcome, u reference.Update) reference.Update {
			if !o.Delivered && gone.first(a.EndpointID, o.Gone) {
				u.Disable = "failing for days"
			}
			return u
		}}), []string{disableReEnable}},
		{"any URL is taken", faulty(reference.Faults{URL: func(string, error) error { return nil }}), []string{ssrfHTTPS}},
		{"any URL and any address is taken", func(o *reference.Options) {
			transporting(reference.TransportFaults{Address: func(error) error { return nil }})(o)
			o.Faults.URL = func(string, error) error { return nil }
		}, []string{ssrfHTTPS, ssrfInternal, ssrfResolves}},
		{"addresses are checked as text only", transporting(reference.TransportFaults{Address: func(error) error { return nil }}), []string{ssrfResolves}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, Virtual, "standard-webhooks", tt.change)
			rulings := r.rule(t, func(id string) bool { return slices.Contains(tt.found, id) })
			for _, id := range tt.found {
				if got := rulings[id]; got.outcome != "found" {
					t.Errorf("%s: %s %s", id, got.outcome, got.detail)
				} else if testing.Verbose() {
					t.Logf("%s: %s", id, inWords(got.findings))
				}
			}
		})
	}
}
