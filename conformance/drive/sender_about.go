package drive

import (
	"slices"
	"time"

	"github.com/whconform/whconform/conformance/drive/adapter"
)

// offered is what a sender offers, by the catalogue's names, from what its
// adapter declares. Managed tells whether the suite can start it, with a folder
// for its state.
func offered(i adapter.Initialized, managed bool) []string {
	has := func(names ...string) bool {
		return !slices.ContainsFunc(names, func(n string) bool { return !slices.Contains(i.Capabilities, n) })
	}
	var out []string
	for _, c := range []struct {
		name string
		is   bool
	}{
		{Rotate, has(adapter.MethodRotateSecret)},
		{Resend, has(adapter.MethodResend)},
		{AttemptLog, has(adapter.MethodAttempts)},
		{List, has(adapter.MethodMessages)},
		{Status, has(adapter.MethodGetEndpoint)},
		{Disable, has(adapter.MethodEnableEndpoint, adapter.MethodDisableEndpoint, adapter.MethodDeleteEndpoint)},
		{Notifications, has(adapter.MethodNotifications)},
		{Mutate, has(adapter.MethodMutate)},
		{Clock, has(adapter.MethodAdvance)},
		{Schedule, has(Schedule) || i.DefaultSchedule != nil},
		{Managed, managed && has(Managed)},
		{Instances, managed && has(Instances)},
		{Transaction, has(Transaction)},
		{Resolver, has(Resolver)},
		{Versions, has(Versions)},
		{OwnEvents, has(OwnEvents)},
		{Ed25519, has(Ed25519)},
	} {
		if c.is {
			out = append(out, c.name)
		}
	}
	return out
}

// aboutSender is what a sender declares, in the suite's units.
func aboutSender(i adapter.Initialized) About {
	a := About{
		Name: i.Name, Version: i.Version, Capabilities: i.Capabilities,
		Schedule: secondsList(i.RetrySchedule), Default: secondsList(i.DefaultSchedule),
		Granularity: secondsOrNil(i.Granularity), Timeout: secondsOrNil(i.Timeout), ConnectTimeout: secondsOrNil(i.ConnectTimeout),
		RetryAfterCap: secondsOrNil(i.RetryAfterCap), PerEndpointLimit: i.PerEndpointLimit,
		RotationOverlap: secondsOrNil(i.RotationOverlap), DisableAfter: secondsOrNil(i.DisableAfter), NotifyAfter: secondsList(i.NotifyAfter),
		FinalStatuses: i.FinalStatuses, ErrorBodyKept: i.ErrorBodyKept, FailedKept: secondsOrNil(i.FailedKept), EventTypes: i.EventTypes,
		APIVersions: i.APIVersions,
	}
	if i.Jitter != nil {
		a.JitterLow, a.JitterHigh = &i.Jitter.Low, &i.Jitter.High
	}
	return a
}

// seconds rounds to the microsecond: 0.1 is no binary fraction.
func seconds(n float64) time.Duration {
	return time.Duration(n * float64(time.Second)).Round(time.Microsecond)
}

func secondsOrNil(n *float64) *time.Duration {
	if n == nil {
		return nil
	}
	d := seconds(*n)
	return &d
}

func secondsList(list []float64) []time.Duration {
	var out []time.Duration
	for _, n := range list {
		out = append(out, seconds(n))
	}
	return out
}
