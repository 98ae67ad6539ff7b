package catalogue

import "slices"

// Capabilities of a subject: what it offers beside a URL, so that more of the
// catalogue can be observed. [NeedText] says what each is and how to offer it.
const (
	NeedManaged             = "managed"
	NeedObserve             = "observe"
	NeedObserveByID         = "observe-by-id"
	NeedObserveState        = "observe-state"
	NeedProviderAPI         = "provider-api"
	NeedFail                = "fail"
	NeedClock               = "clock"
	NeedInstances           = "instances"
	NeedTwoSecrets          = "two-secrets"
	NeedSecondConfiguration = "second-configuration"
	NeedEd25519             = "ed25519"
	NeedLoad                = "load"

	NeedRotate        = "rotate"
	NeedResend        = "resend"
	NeedAttempts      = "attempts"
	NeedList          = "list"
	NeedStatus        = "status"
	NeedDisable       = "disable"
	NeedSchedule      = "schedule"
	NeedTransaction   = "transaction"
	NeedMutate        = "mutate"
	NeedResolver      = "resolver"
	NeedNotifications = "notifications"
	NeedVersions      = "versions"
	NeedOwnEvents     = "own-events"

	NeedSign   = "sign"
	NeedVerify = "verify"
)

// Labels of a requirement: how it is tried.
const (
	LabelSlow      = "slow"
	LabelAlone     = "alone"
	LabelOnRequest = "on-request"
	LabelLoad      = "load"
)

// term is a word that rows may use, with the sentence shown to users.
type term struct {
	name, text string
	parts      []string // the parts whose rows may use it; none: all
}

// sources is the table behind SourceText.
func sources() []term {
	return []term{
		{name: "07", text: "Sending webhooks (document 07)"},
		{name: "08", text: "Receiving webhooks (document 08)"},
		{name: "P", text: "Designing webhooks (the patterns page)"},
		{name: "SW", text: "Standard Webhooks 1.0.0"},
		{name: "RFC", text: "HTTP, RFC 9110 and RFC 9112"},
		{name: "F", text: "a fault met in the field"},
	}
}

// needs is the table behind NeedText. Where receivers and senders share a name,
// the sentence speaks of both.
func needs() []term {
	receiver, sender, library := []string{Receiver}, []string{Sender}, []string{Library}
	both := []string{Receiver, Sender}
	return []term{
		{NeedManaged, "The suite starts the process itself, so that it may kill and restart it: --exec CMD for a receiver, a sender's adapter command that declares managed and keeps its data in the state directory it is given.", both},
		{NeedObserve, "An observer tells how often an event has been processed: --observe URL with {id} in it, --observe-exec CMD, or --observe-log REGEX over what --exec CMD prints.", receiver},
		{NeedObserveByID, "The observer counts each event id separately: {id} stands in the address given to --observe URL, in --observe-exec CMD or in --observe-log REGEX.", receiver},
		{NeedObserveState, "The current state of the record an event speaks of can be read: the method receiver.state at --control URL or on the standard streams of --exec CMD.", receiver},
		{NeedProviderAPI, "The receiver asks the provider for the current state, and does so at the address in WHCONFORM_PROVIDER_URL, which the suite sets for --exec CMD and answers itself.", receiver},
		{NeedFail, "The processing of the next event can be made to fail once: the method receiver.failOnce at --control URL or on the standard streams of --exec CMD.", receiver},
		{NeedClock, "The subject's clock can be moved from outside: the method clock.advance, at --control URL or on the standard streams of --exec CMD for a receiver, in the adapter of a sender.", both},
		{NeedInstances, "Several processes share one store: --exec CMD for a receiver, a sender's adapter that declares instances, each started again on the same WHCONFORM_STATE_DIR.", both},
		{NeedTwoSecrets, "The receiver accepts two secrets at a time, as during a rotation: a second --secret, newest first, or --rotation with --exec CMD.", receiver},
		{NeedSecondConfiguration, "The receiver can be started again with other secrets: --exec CMD, which reads WEBHOOK_SECRET and WEBHOOK_SECRET_PREVIOUS.", receiver},
		{NeedEd25519, "The subject knows the v1a scheme of Standard Webhooks: --secret whsk_… for a receiver that holds the matching whpk_ key, an adapter that declares ed25519 for a sender or a library.", nil},
		{NeedLoad, "You allow the suite to send as much as one core can make: nothing on loopback, --allow-load for any other host.", receiver},

		{NeedRotate, "The secret of an endpoint can be rotated: the adapter's method endpoint.rotateSecret.", sender},
		{NeedResend, "A message can be sent again by hand: the adapter's method message.resend.", sender},
		{NeedAttempts, "The delivery log of a message can be read: the adapter's method message.attempts.", sender},
		{NeedList, "Messages can be listed by status and endpoint: the adapter's method messages.list.", sender},
		{NeedStatus, "The state of an endpoint, enabled or disabled, can be read: the adapter's method endpoint.get.", sender},
		{NeedDisable, "An endpoint can be disabled, enabled and deleted by its owner: the adapter's methods endpoint.disable, endpoint.enable and endpoint.delete.", sender},
		{NeedSchedule, "The sender can be run with a shorter retry schedule, which its adapter declares when it is initialised.", sender},
		{NeedTransaction, "Publishing takes part in a transaction of the caller's that can be committed or rolled back: the member transaction of the adapter's method event.publish.", sender},
		{NeedMutate, "The record an event was made from can be changed after publishing: the adapter's method event.mutate.", sender},
		{NeedResolver, "The sender asks the name server that the suite names in initialize, so that names can change their address while it runs.", sender},
		{NeedNotifications, "What the owner of an endpoint has been told can be read: the adapter's method notifications.list.", sender},
		{NeedVersions, "An endpoint can be pinned to a version of the payload: the member apiVersion of the adapter's method endpoint.create.", sender},
		{NeedOwnEvents, "The sender builds the payload itself instead of passing on the bytes it is given; its adapter declares own-events.", sender},

		{NeedSign, "The library signs: the adapter's method sign.", library},
		{NeedVerify, "The library verifies: the adapter's method verify.", library},
	}
}

// labels is the table behind LabelText.
func labels() []term {
	return []term{
		{name: LabelSlow, text: "Waits for seconds or minutes, longer than the rest of a run takes; runs only with --slow."},
		{name: LabelAlone, text: "Runs after the others and by itself, so that neither disturbs the other's measurement."},
		{name: LabelOnRequest, text: "Runs only when it is named with --run."},
		{name: LabelLoad, text: "Sends as much as one core can make."},
	}
}

// SourceText returns the full name of a source code; empty where there is none
// of that code.
func SourceText(code string) string { return textOf(sources(), code) }

// NeedText returns one sentence on a capability and on the flag or the adapter's
// method that offers it; empty where there is no such capability.
func NeedText(capability string) string { return textOf(needs(), capability) }

// LabelText returns one sentence on a label; empty where there is no such label.
func LabelText(label string) string { return textOf(labels(), label) }

// Sources returns all source codes.
func Sources() []string { return namesOf(sources(), "") }

// Needs returns the capabilities that rows of a part may need: receiver, sender
// or library; all for an empty part.
func Needs(part string) []string { return namesOf(needs(), part) }

// Labels returns all labels.
func Labels() []string { return namesOf(labels(), "") }

func textOf(terms []term, name string) string {
	for _, t := range terms {
		if t.name == name {
			return t.text
		}
	}
	return ""
}

func namesOf(terms []term, part string) []string {
	var names []string
	for _, t := range terms {
		if part == "" || t.parts == nil || slices.Contains(t.parts, part) {
			names = append(names, t.name)
		}
	}
	return names
}
