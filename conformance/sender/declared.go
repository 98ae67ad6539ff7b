package sender

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/reference/profile"
)

// What counts where neither the sender nor the profile says anything.
const (
	defaultGranularity     = time.Second // source: requirements §2, "granularity is 1 s if undeclared"
	defaultTimeout         = 15 * time.Second
	defaultConnectTimeout  = 5 * time.Second
	defaultRetryAfterCap   = 24 * time.Hour
	defaultRotationOverlap = 24 * time.Hour
	defaultDisableAfter    = 5 * 24 * time.Hour
	defaultErrorBody       = 1 << 10 // source: 07 "the first KiB"
	defaultFailedKept      = 30 * 24 * time.Hour
	defaultPerEndpoint     = 2
)

// Declared are the numbers that a sender is held to: what it declares, and the
// profile's where it declares nothing.
type Declared struct {
	// Schedule is the delay before each attempt, the first included; Default the
	// one that the sender is shipped with.
	Schedule, Default       []time.Duration
	JitterLow, JitterHigh   float64
	Granularity             time.Duration
	Timeout, ConnectTimeout time.Duration
	RetryAfterCap           time.Duration
	PerEndpoint             int
	RotationOverlap         time.Duration
	DisableAfter            time.Duration
	NotifyAfter             []time.Duration
	FinalStatuses           []int
	ErrorBody               int
	FailedKept              time.Duration
	// Own are the names of the facts that the sender declared itself.
	Own []string
}

// Declare takes what a sender declares, and the profile's numbers for the rest.
func Declare(a drive.About, p *profile.Profile) Declared {
	d := Declared{
		Schedule: a.Schedule, Default: a.Default, JitterLow: p.JitterLow, JitterHigh: p.JitterHigh, Granularity: defaultGranularity,
		Timeout: first(p.AttemptTimeout, defaultTimeout), ConnectTimeout: first(p.ConnectTimeout, defaultConnectTimeout),
		RetryAfterCap: first(p.RetryAfterCap, defaultRetryAfterCap), PerEndpoint: defaultPerEndpoint,
		RotationOverlap: first(p.RotationOverlap, defaultRotationOverlap), DisableAfter: first(p.DisableAfter, defaultDisableAfter),
		NotifyAfter: p.NotifyAfter, FinalStatuses: a.FinalStatuses, ErrorBody: defaultErrorBody, FailedKept: first(p.RetainFailed, defaultFailedKept),
	}
	own := func(fact string, told bool) bool {
		if told {
			d.Own = append(d.Own, fact)
		}
		return told
	}
	if !own(factSchedule, len(a.Schedule) > 0) {
		d.Schedule = p.Schedule
	}
	if !own(factDefault, len(a.Default) > 0) {
		d.Default = d.Schedule
	}
	if own(factJitter, a.JitterLow != nil && a.JitterHigh != nil) {
		d.JitterLow, d.JitterHigh = *a.JitterLow, *a.JitterHigh
	}
	for _, n := range []struct {
		fact string
		told *time.Duration
		to   *time.Duration
	}{
		{factGranularity, a.Granularity, &d.Granularity}, {factTimeout, a.Timeout, &d.Timeout}, {factConnect, a.ConnectTimeout, &d.ConnectTimeout},
		{factRetryAfterCap, a.RetryAfterCap, &d.RetryAfterCap}, {factOverlap, a.RotationOverlap, &d.RotationOverlap},
		{factDisableAfter, a.DisableAfter, &d.DisableAfter}, {factFailedKept, a.FailedKept, &d.FailedKept},
	} {
		if own(n.fact, n.told != nil) {
			*n.to = *n.told
		}
	}
	if own(factPerEndpoint, a.PerEndpointLimit != nil) {
		d.PerEndpoint = *a.PerEndpointLimit
	}
	if own(factErrorBody, a.ErrorBodyKept != nil) {
		d.ErrorBody = *a.ErrorBodyKept
	}
	if own(factNotifyAfter, len(a.NotifyAfter) > 0) {
		d.NotifyAfter = a.NotifyAfter
	}
	own(factFinal, len(a.FinalStatuses) > 0)
	return d
}

func first(d, fallback time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return fallback
}

// Facts of the declared numbers, in every transcript. Durations are Go's.
const (
	factSchedule      = "schedule"
	factDefault       = "default schedule"
	factJitter        = "jitter" // low and high share
	factGranularity   = "granularity"
	factTimeout       = "timeout"
	factConnect       = "connect timeout"
	factRetryAfterCap = "cap of Retry-After"
	factPerEndpoint   = "in flight per endpoint"
	factOverlap       = "rotation overlap"
	factDisableAfter  = "disabled after"
	factNotifyAfter   = "notified after"
	factFinal         = "final statuses"
	factErrorBody     = "error body kept" // bytes
	factFailedKept    = "failed kept"
	factOwn           = "declared by the sender" // names of facts, with ";" between them
	factMode          = "clock mode"
)

// Facts are the numbers as they stand in a transcript.
func (d Declared) Facts() map[string]string {
	return map[string]string{
		factSchedule: durations(d.Schedule), factDefault: durations(d.Default), factJitter: fmt.Sprintf("%g %g", d.JitterLow, d.JitterHigh),
		factGranularity: d.Granularity.String(), factTimeout: d.Timeout.String(), factConnect: d.ConnectTimeout.String(),
		factRetryAfterCap: d.RetryAfterCap.String(), factPerEndpoint: strconv.Itoa(d.PerEndpoint), factOverlap: d.RotationOverlap.String(),
		factDisableAfter: d.DisableAfter.String(), factNotifyAfter: durations(d.NotifyAfter), factFinal: strings.Trim(fmt.Sprint(d.FinalStatuses), "[]"),
		factErrorBody: strconv.Itoa(d.ErrorBody), factFailedKept: d.FailedKept.String(), factOwn: strings.Join(d.Own, ";"),
	}
}

func durations(list []time.Duration) string {
	words := make([]string, len(list))
	for i, d := range list {
		words[i] = d.String()
	}
	return strings.Join(words, " ")
}

// declaredOf reads the numbers from a transcript. It panics where a fact is
// missing or no number: the suite itself has written it.
func declaredOf(t *evidence.Transcript) Declared {
	d := Declared{
		Schedule: durationsFact(t, factSchedule), Default: durationsFact(t, factDefault), NotifyAfter: durationsFact(t, factNotifyAfter),
		Granularity: durationFact(t, factGranularity), Timeout: durationFact(t, factTimeout), ConnectTimeout: durationFact(t, factConnect),
		RetryAfterCap: durationFact(t, factRetryAfterCap), PerEndpoint: numberFact(t, factPerEndpoint), RotationOverlap: durationFact(t, factOverlap),
		DisableAfter: durationFact(t, factDisableAfter), ErrorBody: numberFact(t, factErrorBody), FailedKept: durationFact(t, factFailedKept),
	}
	if _, err := fmt.Sscan(t.Facts[factJitter], &d.JitterLow, &d.JitterHigh); err != nil {
		panic(fmt.Sprintf("the fact %q of the transcript cannot be read: %v", factJitter, err))
	}
	for _, word := range t.SplitFact(factFinal) {
		status, err := strconv.Atoi(word)
		if err != nil {
			panic(fmt.Sprintf("the fact %q of the transcript cannot be read: %v", factFinal, err))
		}
		d.FinalStatuses = append(d.FinalStatuses, status)
	}
	if own := t.Facts[factOwn]; own != "" {
		d.Own = strings.Split(own, ";")
	}
	return d
}

// Declares tells whether the sender itself declared a number, by its fact.
func (d Declared) declares(fact string) bool { return slices.Contains(d.Own, fact) }

func durationFact(t *evidence.Transcript, name string) time.Duration {
	d, err := time.ParseDuration(t.Facts[name])
	if err != nil {
		panic(fmt.Sprintf("the fact %q of the transcript cannot be read: %v", name, err))
	}
	return d
}

func durationsFact(t *evidence.Transcript, name string) []time.Duration {
	var out []time.Duration
	for _, word := range t.SplitFact(name) {
		d, err := time.ParseDuration(word)
		if err != nil {
			panic(fmt.Sprintf("the fact %q of the transcript cannot be read: %v", name, err))
		}
		out = append(out, d)
	}
	return out
}

func numberFact(t *evidence.Transcript, name string) int {
	n, err := strconv.Atoi(t.Facts[name])
	if err != nil {
		panic(fmt.Sprintf("the fact %q of the transcript cannot be read: %v", name, err))
	}
	return n
}
