package mutant

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/whconform/whconform/reference/sender"
	"github.com/whconform/whconform/reference/signature"
	"github.com/whconform/whconform/reference/wire"
)

// retrySenders break sender.retry.*.
func retrySenders() []SenderMutant {
	return slices.Concat(outcomeSenders(), scheduleSenders(), sameSenders())
}

// onFailureStatus is a row that the mutants of several groups break.
const onFailureStatus = "sender.retry.on-failure-status"

// delivered takes some results for successes.
func delivered(when func(sender.Result) bool) optionsChange {
	return judging(func(_ sender.AttemptInfo, r sender.Result, o sender.Outcome) sender.Outcome {
		if when(r) {
			return sender.Outcome{Delivered: true}
		}
		return o
	})
}

// given gives a message up after some results.
func given(up func(sender.Result) bool) optionsChange {
	return func(o *sender.Options) {
		var results memory[bool]
		o.Faults.Outcome = func(a sender.AttemptInfo, r sender.Result, right sender.Outcome) sender.Outcome {
			results.change(a.MessageID, func(bool) bool { return up(r) })
			return right
		}
		o.Faults.Update = func(a sender.AttemptInfo, _ sender.Outcome, u sender.Update) sender.Update {
			if results.keep(a.MessageID, false) && u.Status == sender.MessagePending {
				u.Status, u.Next = sender.MessageFailed, time.Time{}
			}
			return u
		}
	}
}

// outcomeSenders mistake what an answer means.
func outcomeSenders() []SenderMutant {
	return []SenderMutant{
		{
			Name: "not-modified-is-success", Doc: "304 is taken for a success.",
			Fails:  []string{onFailureStatus},
			Change: delivered(func(r sender.Result) bool { return r.Status == http.StatusNotModified }),
		},
		{
			Name: "below-400-is-success", Doc: "Every status below 400 is taken for a success.",
			Fails:  []string{onFailureStatus, "sender.redirect.counts-as-failure"},
			Change: delivered(func(r sender.Result) bool { return r.Status >= 200 && r.Status < 400 }),
		},
		{
			Name: "4xx-is-final", Doc: "A 4xx ends the message, unless it says \"later\".",
			Fails: []string{onFailureStatus},
			Change: given(func(r sender.Result) bool {
				return r.Status >= 400 && r.Status < 500 && r.Status != 408 && r.Status != 425 && r.Status != 429
			}),
		},
		{
			Name: "404-is-final", Doc: "A 404 ends the message, as it says itself.",
			Fails:  []string{"sender.retry.on-failure-status.final"},
			Change: given(func(r sender.Result) bool { return r.Status == http.StatusNotFound }),
			Wrap:   declaring("finalStatuses", []int{http.StatusNotFound}),
		},
		{
			Name: "loses-on-reset", Doc: "A connection that is reset throws where nothing catches it, and the message is given up.",
			Fails:  []string{"sender.retry.on-transport-failure"},
			Change: given(func(r sender.Result) bool { return r.Fault == wire.FaultReset }),
		},
		{
			Name: "trusts-any-certificate", Doc: "Certificates are not verified, a setting from a test environment.",
			Fails:  []string{"sender.retry.on-transport-failure"},
			Change: network(func(t *sender.TransportOptions) { t.Faults.AnyCertificate = true }),
		},
		{
			Name: "loses-on-dns", Doc: "A name that does not resolve ends the message.",
			Fails: []string{"sender.retry.on-transport-failure.dns"}, Needs: []string{Names},
			Change: given(func(r sender.Result) bool { return r.Fault == wire.FaultDNS }),
		},
		{
			Name: "wants-exactly-200", Doc: "Only 200 counts as a success.",
			Fails: []string{"sender.retry.success-is-2xx", "sender.retry.informational"},
			Change: judging(func(_ sender.AttemptInfo, r sender.Result, o sender.Outcome) sender.Outcome {
				o.Delivered = r.Status == http.StatusOK
				return o
			}),
		},
		{
			Name: "takes-interim-for-final", Doc: "It takes the first status line for the final one, also 100 and 103.",
			Fails: []string{"sender.retry.informational"},
			Change: answeringBy(func(next http.RoundTripper, req *http.Request) (*http.Response, error) {
				var first atomic.Int64
				traced := httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{Got1xxResponse: func(code int, _ textproto.MIMEHeader) error {
					first.CompareAndSwap(0, int64(code))
					return nil
				}})
				answer, err := next.RoundTrip(req.WithContext(traced))
				if code := first.Load(); err == nil && code != 0 {
					answer.StatusCode = int(code)
				}
				return answer, err
			}),
		},
	}
}

// delays is the schedule that a sender keeps to.
func delays(o *sender.Options) []time.Duration {
	if o.Policy.Schedule != nil {
		return o.Policy.Schedule
	}
	return o.Profile.Schedule
}

// scheduleSenders come too early, too late, too often or not often enough.
func scheduleSenders() []SenderMutant {
	const schedule, attempts = "sender.retry.schedule", "sender.retry.attempts"
	const markedFailed = "sender.retry.attempts.marked-failed"
	return []SenderMutant{
		{
			Name: "retries-early", Doc: "The third delay is half of what it declares.",
			Fails: []string{schedule},
			Change: waiting(func(a sender.AttemptInfo, _ sender.Outcome, usual time.Duration) time.Duration {
				if a.Number == 3 {
					return usual / 2
				}
				return usual
			}),
		},
		{
			Name: "counts-from-the-beginning", Doc: "Delays count from the beginning of the attempt that failed.",
			Fails: []string{schedule},
			Change: func(o *sender.Options) {
				var usual memory[time.Duration]
				o.Faults.Delay = func(a sender.AttemptInfo, _ sender.Outcome, d time.Duration) time.Duration {
					return usual.change(a.MessageID, func(time.Duration) time.Duration { return d })
				}
				o.Faults.Update = func(a sender.AttemptInfo, _ sender.Outcome, u sender.Update) sender.Update {
					if !u.Next.IsZero() && !a.Manual {
						u.Next = a.Began.Add(usual.keep(a.MessageID, 0))
					}
					return u
				}
			},
		},
		{
			Name: "gives-up-early", Doc: "It counts the first attempt twice, and gives up one attempt before the end.",
			Fails: []string{attempts},
			Change: func(o *sender.Options) {
				last := len(delays(o)) - 1
				o.Faults.Update = func(a sender.AttemptInfo, _ sender.Outcome, u sender.Update) sender.Update {
					if a.Number >= last && u.Status == sender.MessagePending && !a.Manual {
						u.Status, u.Next = sender.MessageFailed, time.Time{}
					}
					return u
				}
			},
		},
		{
			Name: "never-gives-up", Doc: "After the end of the schedule it goes on with its last delay.",
			Fails: []string{attempts, markedFailed},
			Change: func(o *sender.Options) {
				all := delays(o)
				var ended memory[time.Time]
				o.Faults.Update = func(a sender.AttemptInfo, _ sender.Outcome, u sender.Update) sender.Update {
					beyond := a.Number - len(all)
					if u.Status == sender.MessageFailed && !a.Manual && beyond >= 0 && beyond < 20 { // a run ends some time
						u.Status, u.Next = sender.MessagePending, ended.keep(a.MessageID, a.Began).Add(time.Duration(beyond+1)*all[len(all)-1])
					}
					return u
				}
			},
		},
		{
			Name: "leaves-it-pending", Doc: "A message whose attempts are used up stays pending for ever.",
			Fails: []string{markedFailed},
			Change: updating(func(_ sender.AttemptInfo, _ sender.Outcome, u sender.Update) sender.Update {
				if u.Status == sender.MessageFailed {
					u.Status = sender.MessagePending
				}
				return u
			}),
		},
		{
			Name: "gives-up-within-an-hour", Doc: "Its schedule ends after half an hour.",
			Fails: []string{"sender.retry.spans-days"},
			Change: policy(func(p *sender.Policy) {
				if p.Schedule == nil { // not where the run asks for a short one
					p.Schedule = halfAnHour()
				}
			}),
			Wrap: declaring("defaultSchedule", inSeconds(halfAnHour())),
		},
		{
			Name: "no-jitter", Doc: "Delays have no random part.",
			Fails: []string{"sender.retry.jitter"},
			Change: func(o *sender.Options) {
				all := delays(o)
				o.Faults.Delay = func(a sender.AttemptInfo, out sender.Outcome, usual time.Duration) time.Duration {
					if out.RetryAfter != "" || a.Number >= len(all) {
						return usual
					}
					return all[a.Number]
				}
			},
		},
		{
			Name: "loses-the-claim", Doc: "A second attempt that takes longer than eight seconds is taken for abandoned and made again beside itself.",
			Fails:  []string{"sender.retry.no-overlap", schedule, attempts},
			Change: prepared(unclaimed),
		},
		{
			Name: "wakes-by-traffic", Doc: "Where nothing else was published for a day, a first retry comes a quarter of an hour late.",
			Fails: []string{"sender.retry.alone"}, Needs: []string{Virtual},
			Change: func(o *sender.Options) {
				var s *sender.Sender
				opened(func(made *sender.Sender) { s = made })(o)
				o.Faults.Delay = func(a sender.AttemptInfo, _ sender.Outcome, usual time.Duration) time.Duration {
					if a.Number == 1 && !traffic(s, a) {
						return usual + 15*time.Minute
					}
					return usual
				}
			},
		},
	}
}

// unclaimed puts a message back into the queue eight seconds after it was claimed
// for its second attempt, whatever has become of that.
const unclaimed = `CREATE TRIGGER IF NOT EXISTS unclaimed AFTER UPDATE OF leased_at ON messages
	WHEN NEW.leased_at IS NOT NULL AND OLD.leased_at IS NULL AND NEW.attempts = 1
	BEGIN UPDATE messages SET queued_at = NEW.leased_at + 8000000000 WHERE id = NEW.id; END`

// traffic tells whether another event was published within a day.
func traffic(s *sender.Sender, besides sender.AttemptInfo) bool {
	messages, err := s.Messages(context.Background(), sender.MessageFilter{Since: besides.Began.Add(-24 * time.Hour), Limit: 2})
	return err != nil || slices.ContainsFunc(messages, func(m sender.Message) bool { return m.ID != besides.MessageID })
}

func halfAnHour() []time.Duration {
	return []time.Duration{0, 5 * time.Second, time.Minute, 5 * time.Minute, 25 * time.Minute}
}

func inSeconds(all []time.Duration) (out []float64) {
	for _, d := range all {
		out = append(out, d.Seconds())
	}
	return out
}

// sameSenders change from one attempt to the next what must not change, or keep
// what must.
func sameSenders() []SenderMutant {
	return []SenderMutant{
		{
			Name: "new-id-on-retry", Doc: "Each attempt has an id of its own.",
			Fails: []string{"sender.retry.same-id"},
			Change: named(func(a sender.AttemptInfo, id string) string {
				if a.Number > 1 && !a.Manual {
					return fmt.Sprintf("%s-%d", id, a.Number)
				}
				return id
			}),
		},
		{
			Name: "rebuilds-the-payload", Doc: "The payload is serialised for each attempt, with the members in another order.",
			Fails: []string{"sender.retry.same-bytes", "sender.retry.same-bytes-after-change"},
			Change: sending(func(a sender.AttemptInfo, stored []byte) []byte {
				var members map[string]json.RawMessage
				if a.Number < 2 || json.Unmarshal(stored, &members) != nil {
					return stored
				}
				sorted, err := plainJSON(members)
				if err != nil {
					return stored
				}
				return sorted
			}),
		},
		{
			Name: "builds-from-the-record", Doc: "The payload is built from the record as it is when it is sent.",
			Fails: []string{"sender.retry.same-bytes-after-change"},
			Change: func(o *sender.Options) {
				var s *sender.Sender
				opened(func(made *sender.Sender) { s = made })(o)
				o.Faults.Body = func(a sender.AttemptInfo, stored []byte) []byte {
					record, err := s.Record(context.Background(), a.MessageID)
					if err != nil || !strings.Contains(string(record), "changed") {
						return stored // the record is what the payload was made from
					}
					return []byte(fmt.Sprintf(`{"type":%q,"timestamp":%q,"data":%s}`, a.Type, a.Began.UTC().Format(time.RFC3339), record))
				}
			},
		},
		{
			Name: "timestamp-once", Doc: "Every attempt carries the timestamp of the first, and a signature over that.",
			Fails: []string{"sender.retry.fresh-timestamp", "sender.resend.same-message"},
			Change: func(o *sender.Options) {
				var first memory[time.Time]
				o.Faults.Signing = func(a sender.AttemptInfo, in signature.Input, keys []signature.Key) (signature.Input, []signature.Key) {
					in.Time = first.keep(a.MessageID, in.Time)
					return in, keys
				}
			},
		},
		{
			Name: "signature-once", Doc: "Every attempt carries the signature of the first, under a timestamp of its own.",
			Fails: retriesDoNotVerify(),
			Change: func(o *sender.Options) {
				var first memory[string]
				o.Faults.Request = func(a sender.AttemptInfo, r sender.Request) sender.Request {
					return withHeader(r, "webhook-signature", first.keep(a.MessageID, header(r, "webhook-signature")))
				}
			},
		},
	}
}
