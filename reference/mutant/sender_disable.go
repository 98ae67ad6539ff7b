package mutant

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/whconform/whconform/reference/sender"
)

// disableSenders break sender.disable.*.
func disableSenders() []SenderMutant {
	const gone, afterDays = "sender.disable.gone", "sender.disable.after-days"
	return []SenderMutant{
		{
			Name: "retries-410", Doc: "410 is a failure like any other.",
			Fails: []string{gone, "sender.disable.gone.status"},
			Change: judging(func(_ sender.AttemptInfo, _ sender.Result, o sender.Outcome) sender.Outcome {
				o.Gone = false
				return o
			}),
		},
		{
			Name: "disabling-leaves-pending-ones", Doc: "An endpoint's state is looked at on publishing only, and messages that wait for a retry are sent.",
			Fails: []string{gone, "sender.disable.by-owner", afterDays, "sender.disable.notifies"},
			Change: func(o *sender.Options) {
				o.Faults.IgnoreStatus = true
				o.Faults.Publish = func(_ sender.Event, e sender.Endpoint, subscribed bool) bool {
					return subscribed && e.Status == sender.EndpointEnabled
				}
			},
		},
		{
			Name: "ends-the-message-alone", Doc: "A 410, or days without a success, end the message that met them, and the endpoint goes on.",
			Fails: []string{gone, "sender.disable.gone.status", afterDays},
			Change: updating(func(a sender.AttemptInfo, o sender.Outcome, u sender.Update) sender.Update {
				if o.Gone || u.Disable != "" { // this message ends; the endpoint goes on
					u.Disable, u.Status, u.Next = "", sender.MessageFailed, time.Time{}
				}
				return u
			}),
		},
		{
			Name: "shows-the-gone-as-enabled", Doc: "An endpoint that was disabled by a 410 is shown as enabled.",
			Fails: []string{"sender.disable.gone.status"},
			Wrap: wrapping("endpoint.get", func(ctx context.Context, params json.RawMessage, right sender.ControlMethod) (any, error) {
				result, err := right(ctx, params)
				if err != nil {
					return nil, err
				}
				return with(result, "status", sender.EndpointEnabled)
			}),
		},
		{
			Name: "disables-on-404", Doc: "A single 404 disables an endpoint.",
			Fails: []string{"sender.disable.only-gone", onFailureStatus},
			Change: judging(func(_ sender.AttemptInfo, r sender.Result, o sender.Outcome) sender.Outcome {
				o.Gone = o.Gone || r.Status == http.StatusNotFound
				return o
			}),
		},
		{
			Name: "never-disables", Doc: "An endpoint that only fails is never disabled.",
			Fails: []string{afterDays},
			Change: updating(func(_ sender.AttemptInfo, o sender.Outcome, u sender.Update) sender.Update {
				if !o.Gone {
					u.Disable = ""
				}
				return u
			}),
		},
		{
			Name: "success-does-not-count", Doc: "Days without a success are counted from the first failure there ever was.",
			Fails: []string{afterDays, "sender.disable.re-enable"},
			Change: func(o *sender.Options) {
				var since memory[time.Time]
				after := o.Policy.DisableAfter
				if after == 0 {
					after = o.Profile.DisableAfter
				}
				o.Faults.Update = func(a sender.AttemptInfo, out sender.Outcome, u sender.Update) sender.Update {
					if !out.Delivered && after > 0 && a.Began.Sub(since.keep(a.EndpointID, a.Began)) >= after {
						u.Disable = "it has failed for days"
					}
					return u
				}
			},
		},
		{
			Name: "disables-in-silence", Doc: "Nobody is told that an endpoint was disabled.",
			Fails: []string{"sender.disable.notifies"}, Needs: []string{Virtual},
			Change: untold(sender.NotifyDisabled),
		},
		{
			Name: "warns-nobody", Doc: "Nobody is told that an endpoint has been failing for a day.",
			Fails: []string{"sender.disable.notifies.early"}, Profile: DeliveryEnvelope, Needs: []string{Virtual},
			Change: untold(sender.NotifyFailing),
		},
		{
			Name: "credentials-in-silence", Doc: "Nobody is told that an endpoint that has worked answers 401.",
			Fails:  []string{"sender.disable.credentials-alert"},
			Change: untold(sender.NotifyCredentials),
		},
		{
			Name: "old-failures-count", Doc: "After an endpoint is enabled again, its first failure disables it.",
			Fails: []string{"sender.disable.re-enable"},
			Change: func(o *sender.Options) {
				var before memory[bool]
				o.Faults.Update = func(a sender.AttemptInfo, out sender.Outcome, u sender.Update) sender.Update {
					if !out.Delivered && before.keep(a.EndpointID, false) && u.Disable == "" {
						u.Disable = "it was disabled before"
					}
					if u.Disable != "" {
						before.change(a.EndpointID, func(bool) bool { return true })
					}
					return u
				}
			},
		},
	}
}
