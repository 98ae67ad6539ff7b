package sender

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/whconform/whconform/conformance/evidence"
)

// judgeGone looks for requests that began when a 410 had been answered.
func judgeGone(t *evidence.Transcript) []evidence.Finding {
	got := attempts(t, goneName)
	i := slices.IndexFunc(got, func(a attempt) bool { return a.Response != nil && a.Response.Status == http.StatusGone })
	if i < 0 {
		return nil // the scenario has said why
	}
	gone := &got[i]
	byCause := map[string][]attempt{}
	var causes []string
	for n := i + 1; n < len(got); n++ {
		if got[n].Began.Before(gone.Ended) {
			continue // on the wire already
		}
		cause := causeAfterGone(t, gone, &got[n])
		if byCause[cause] == nil {
			causes = append(causes, cause)
		}
		byCause[cause] = append(byCause[cause], got[n])
	}
	var findings []evidence.Finding
	for _, cause := range causes {
		after := byCause[cause]
		findings = append(findings, finding("events for an endpoint that has answered 410", "no attempt after that, of this message, of those that waited, or of later ones",
			fmt.Sprintf("%s, the first %v after the 410", came(len(after)), shown(after[0].Began.Sub(gone.Ended))), cause, append([]attempt{*gone}, after[:min(len(after), 8)]...)...))
	}
	if len(published(t, besideGone)) > 0 && len(attempts(t, besideGone)) == 0 {
		findings = append(findings, finding("an event for another endpoint, after the 410", "an attempt", "none came", "The 410 stops more than the endpoint that answered it.", *gone))
	}
	return findings
}

func causeAfterGone(t *evidence.Transcript, gone, a *attempt) string {
	if a.ID == gone.ID {
		return "410 counts as any other failure: the message itself is tried again."
	}
	for i, p := range published(t, goneName) {
		if i >= goneRequest && slices.Contains(p.IDs, a.ID) {
			return "Publishing does not look at the endpoint's state: a later event is sent."
		}
	}
	return "The state of the endpoint is looked at on publishing only: messages that waited for a retry are sent."
}

func judgeGoneStatus(t *evidence.Transcript) []evidence.Finding {
	status, looked := t.Facts[statusFact+goneName]
	if !looked || !strings.HasPrefix(status, "enabled") {
		return nil
	}
	return []evidence.Finding{finding("the state of an endpoint that has answered 410", "disabled", "enabled", "The 410 ends the message only, or the state is kept where it cannot be read.", attempts(t, goneName)...)}
}

func judgeOnlyGone(t *evidence.Transcript) []evidence.Finding {
	var findings []evidence.Finding
	for _, status := range onlyGoneStatuses() {
		name := answering(status)
		got := attempts(t, name)
		if len(got) == 0 || len(published(t, name)) < 2 {
			continue
		}
		sent := fmt.Sprintf("an event for an endpoint that has answered %d once", status)
		second := len(byMessage(got)) > 1 || got[0].ID == "" && len(got) > 1
		switch stands := t.Facts[statusFact+name]; {
		case !second:
			findings = append(findings, finding(sent, "an attempt: the endpoint stays enabled", "none came", fmt.Sprintf("The endpoint is disabled, or held back for long, by a single %d.", status), got...))
		case strings.HasPrefix(stands, "disabled"):
			findings = append(findings, finding(sent, "the endpoint stays enabled", "its state is disabled: "+strings.TrimPrefix(stands, "disabled "), fmt.Sprintf("A single %d disables it.", status), got...))
		}
	}
	return append(findings, judgeUnserved(t, "an attempt at each")...)
}

func judgeByOwner(t *evidence.Transcript) []evidence.Finding {
	var findings []evidence.Finding
	for _, name := range []string{disabledName, deletedName} {
		text, acted := t.Facts[actedFact+name]
		if !acted {
			continue
		}
		at := timeFact(text)
		var after []attempt
		for _, a := range attempts(t, name) {
			if a.Number > 1 && !a.Began.Before(at) {
				after = append(after, a)
			}
		}
		if len(after) > 0 {
			findings = append(findings, finding("a message that waits for a retry, at an endpoint that "+name, "no request", came(len(after)),
				"The state of the endpoint is looked at on publishing only, not when a message is claimed.", after[:min(len(after), 8)]...))
		}
	}
	return findings
}

func timeFact(text string) time.Time {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		panic(fmt.Sprintf("a time of the transcript cannot be read: %v", err))
	}
	return at
}

// failing is how an endpoint that fails for days came to its end.
type failing struct {
	since time.Time     // the end of the first failure since the last success
	until *attempt      // the first failure past the time without a success; nil: none came
	after []attempt     // what began behind it
	last  *attempt      // of all
	fresh bool          // since lies behind a success
	slack time.Duration // how near to the end of the time both answers are right
}

// failingOf follows an endpoint's attempts in the order in which they ended.
// What lies so near to the end of the time that both answers are right counts as
// neither.
func failingOf(d Declared, list []attempt) failing {
	f := failing{slack: max(d.Granularity, time.Second)}
	for i := range list {
		f.slack = max(f.slack, list[i].Window)
	}
	ended := slices.SortedStableFunc(slices.Values(list), func(a, b attempt) int { return a.Ended.Compare(b.Ended) })
	for i := range ended {
		a := &ended[i]
		f.last = a
		switch {
		case a.OK():
			f.fresh = true
			f.since = time.Time{}
		case f.since.IsZero():
			f.since = a.Ended
		case f.until != nil:
			if a.Began.After(f.until.Ended) {
				f.after = append(f.after, *a)
			}
		case a.Ended.Sub(f.since) >= d.DisableAfter+f.slack:
			f.until = a
		}
	}
	return f
}

// early tells whether an endpoint was left alone before its time.
func (f failing) early(d Declared) bool {
	return f.until == nil && f.last != nil && !f.since.IsZero() && f.last.Ended.Sub(f.since) < d.DisableAfter-f.slack
}

func judgeAfterDays(t *evidence.Transcript) []evidence.Finding {
	d := declaredOf(t)
	var findings []evidence.Finding
	for _, name := range []string{onlyFails, failsAgain} {
		got := attempts(t, name)
		if len(got) == 0 {
			continue
		}
		f := failingOf(d, got)
		sent := "an endpoint that " + name
		expected := fmt.Sprintf("disabled at the first failure past %v without a success", shown(d.DisableAfter))
		switch {
		case len(f.after) > 0:
			findings = append(findings, finding(sent, expected, fmt.Sprintf("%s after that failure, the last %v after the first failure", came(len(f.after)), shown(f.last.Ended.Sub(f.since))),
				"Nothing disables it, or the count is of something else than time without a success.", append([]attempt{*f.until}, f.after[:min(len(f.after), 4)]...)...))
		case f.early(d):
			cause := "The count of failures, or a shorter time, disables it."
			if f.fresh {
				cause = "A success does not start the count anew."
			}
			findings = append(findings, finding(sent, expected+", not before", fmt.Sprintf("the last attempt came %v after the first failure, and none of later events", shown(f.last.Ended.Sub(f.since))), cause, *f.last))
		case f.since.IsZero() && f.last != nil:
			findings = append(findings, finding(sent, expected+", not before", "no attempt came after the one that succeeded", "A success does not start the count anew.", *f.last))
		}
	}
	return append(findings, judgeUnserved(t, "attempts")...)
}

// toldWithin is how long after its cause a notification may come: jobs that look
// for what is to be told run each hour.
const toldWithin = time.Hour

func judgeNotifies(t *evidence.Transcript) []evidence.Finding {
	list, looked := toldOf(t, onlyFails)
	got := attempts(t, onlyFails)
	if !looked || len(got) == 0 {
		return nil
	}
	f := failingOf(declaredOf(t), got)
	if hasTold(list, f.last.Ended, f.last.Ended.Add(toldWithin)) {
		return nil
	}
	return []evidence.Finding{finding("an endpoint that "+onlyFails+", until it is disabled", "the owner is told", "nothing was told when it was disabled: "+notices(list, f.since),
		"Disabling changes a field, and nobody hears of it.", *f.last)}
}

// hasTold tells whether something was told in a span, to the second.
func hasTold(list []told, from, to time.Time) bool {
	return slices.ContainsFunc(list, func(n told) bool {
		return !n.At.Before(from.Add(-time.Second)) && !n.At.After(to.Add(time.Second))
	})
}

func notices(list []told, since time.Time) string {
	if len(list) == 0 {
		return "there are no notifications"
	}
	var words []string
	for _, n := range list[:min(len(list), 8)] {
		words = append(words, fmt.Sprintf("%s %v after the first failure", n.Kind, shown(n.At.Sub(since))))
	}
	return "there were " + strings.Join(words, ", ")
}

// notifyDefault is when the owner is told of an endpoint that goes on failing,
// where neither the sender nor the profile says it.
// source: P, delivery failures.
func notifyDefault() []time.Duration { return []time.Duration{24 * time.Hour, 72 * time.Hour} }

// judgeNotifiesEarly expects a notice for each time, by the next failure behind
// it: a sender may look at the time when an attempt fails.
func judgeNotifiesEarly(t *evidence.Transcript) []evidence.Finding {
	d := declaredOf(t)
	list, looked := toldOf(t, onlyFails)
	got := attempts(t, onlyFails)
	if !looked || len(got) == 0 {
		return nil
	}
	times := d.NotifyAfter
	if len(times) == 0 {
		times = notifyDefault()
	}
	f := failingOf(d, got)
	var findings []evidence.Finding
	for _, after := range times {
		if after >= d.DisableAfter {
			continue
		}
		from := f.since.Add(after)
		to := from
		for i := range got {
			if got[i].Ended.After(from) {
				to = got[i].Ended
				break
			}
		}
		if !hasTold(list, from, to.Add(toldWithin)) {
			findings = append(findings, finding("an endpoint that "+onlyFails, fmt.Sprintf("the owner is told when it has failed for %v", shown(after)), "nothing was told then: "+notices(list, f.since), "Only disabling is told, or nothing.", got[0]))
		}
	}
	return findings
}

func judgeCredentials(t *evidence.Transcript) []evidence.Finding {
	d := declaredOf(t)
	var findings []evidence.Finding
	for _, status := range []int{401, 403} {
		name := answering(status)
		got := attempts(t, name)
		list, looked := toldOf(t, name)
		if !looked || len(got) < 2 {
			continue
		}
		sent := fmt.Sprintf("an event for an endpoint that has worked and now answers %d", status)
		failed := &got[1]
		if !hasTold(list, failed.Began, got[len(got)-1].Ended.Add(alertWatched)) {
			findings = append(findings, finding(sent, "the owner is told", "nothing was told", "A secret that was changed on one side looks like any other failure.", *failed))
		}
		if len(got) > 2 && got[2].ID == failed.ID {
			low, _ := d.window(1)
			if _, most := delay(failed, &got[2]); most < low-early {
				findings = append(findings, finding(sent, "attempts that keep to the schedule", fmt.Sprintf("the next came after %v", shown(gap(failed, &got[2]))), "Failures of credentials are tried again at once.", got[1:3]...))
			}
		}
	}
	return append(findings, judgeUnserved(t, "attempts")...)
}

func judgeReEnable(t *evidence.Transcript) []evidence.Finding {
	var findings []evidence.Finding
	for _, name := range []string{goneOnce, failedDays} {
		sent := "events for an endpoint that " + name
		if why, failed := t.Facts[enableFact+name]; failed {
			findings = append(findings, finding(sent, "it can be enabled again", "the sender refuses: "+why, "", attempts(t, name)...))
			continue
		}
		words := t.SplitFact(enabledFact + name)
		if len(words) != 2 {
			continue
		}
		before, err := strconv.Atoi(words[1])
		if err != nil {
			panic(fmt.Sprintf("the fact %q of the transcript cannot be read: %v", enabledFact+name, err))
		}
		findings = append(findings, judgeEnabled(t, name, sent, timeFact(words[0]), before)...)
	}
	return findings
}

// judgeEnabled expects that what was published after an endpoint was enabled is
// delivered in the end, with a failure in between. Before is how many events had
// been published until then.
func judgeEnabled(t *evidence.Transcript, name, sent string, at time.Time, before int) []evidence.Finding {
	var after []attempt
	for _, a := range attempts(t, name) {
		if !a.Began.Before(at) && !(a.Response != nil && a.Response.Status == http.StatusGone) {
			after = append(after, a)
		}
	}
	if len(after) == 0 {
		return []evidence.Finding{finding(sent, "new events are delivered", "no attempt came", "Enabling changes what is shown, and not what is claimed.", attempts(t, name)...)}
	}
	delivered := slices.DeleteFunc(slices.Clone(after), func(a attempt) bool { return !a.OK() })
	missing, unknown := 0, delivered
	for i, p := range published(t, name) {
		here := func(a attempt) bool { return slices.Contains(p.IDs, a.ID) }
		if i >= before && len(p.IDs) > 0 && !slices.ContainsFunc(delivered, here) {
			missing++
		}
		unknown = slices.DeleteFunc(slices.Clone(unknown), here)
	}
	// An id that publishing did not tell is another row's; it may be of any event.
	if missing <= len(unknown) && after[len(after)-1].OK() {
		return nil
	}
	return []evidence.Finding{finding(sent, "new events are delivered, and the single failure among them does not disable it",
		fmt.Sprintf("%s, and nothing was delivered after the failure", came(len(after))), "The time of the first failure is kept when the endpoint is enabled, so that the next failure is past the limit.", after[:min(len(after), 8)]...)}
}
