package mutant

import (
	"time"

	"github.com/whconform/whconform/reference/sender"
)

// resendSenders break sender.resend.*.
func resendSenders() []SenderMutant {
	const same, untouched = "sender.resend.same-message", "sender.resend.schedule-untouched"
	return []SenderMutant{
		{
			Name: "resends-as-new", Doc: "A message that is sent again by hand gets a new id.",
			Fails: []string{same},
			Change: named(func(a sender.AttemptInfo, id string) string {
				if a.Manual {
					return id + "-again"
				}
				return id
			}),
		},
		{
			Name: "resends-the-old-headers", Doc: "A resend repeats the stored headers of the first attempt.",
			Fails: []string{same},
			Change: func(o *sender.Options) {
				var first memory[sender.Request]
				o.Faults.Request = func(a sender.AttemptInfo, r sender.Request) sender.Request {
					if kept := first.keep(a.MessageID, r); a.Manual {
						r.Headers = kept.Headers
					}
					return r
				}
			},
		},
		{
			Name: "resend-uses-up-an-attempt", Doc: "An attempt by hand counts as one of the schedule's.",
			Fails: []string{untouched},
			Change: updating(func(a sender.AttemptInfo, _ sender.Outcome, u sender.Update) sender.Update {
				u.Count = true
				return u
			}),
		},
		{
			Name: "resend-moves-the-schedule", Doc: "An attempt by hand sets the time of the next one.",
			Fails: []string{untouched},
			Change: func(o *sender.Options) {
				all := delays(o)
				o.Faults.Update = func(a sender.AttemptInfo, _ sender.Outcome, u sender.Update) sender.Update {
					if a.Manual && !u.Next.IsZero() && a.Number < len(all) {
						u.Next = a.Began.Add(all[a.Number])
					}
					return u
				}
			},
		},
		{
			Name: "resend-takes-the-place", Doc: "An attempt by hand takes the place of those that were to come.",
			Fails: []string{untouched},
			Change: func(o *sender.Options) {
				o.Faults.Resend = func(_ sender.Message, _, _, manual time.Time) (time.Time, time.Time) { return time.Time{}, manual }
			},
		},
	}
}
