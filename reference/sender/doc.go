// Package sender is a webhook sender, whole, and written to be read: what is
// published is on the disk when publishing returns, and is delivered, once a
// receiver says so, or stands on a list of what failed. Also when the process is
// killed in between, when a receiver hangs, lies or asks for patience, and when
// two processes send from one outbox.
//
// # The pattern
//
// An event becomes a message for each endpoint that has subscribed to its type,
// and a message gets attempts until one succeeds. Where to read how:
//
//  1. Publish in the transaction of what is told: publish.go. The payload is
//     rendered once, and these bytes are what every attempt sends.
//  2. Choose fairly: queue.go. Endpoints stand in a line, not messages; one that
//     does not answer gets one slot. A message is marked before it is sent, and
//     process.go tells what becomes of the mark when its process dies.
//  3. Wake when something is due, and not before: dispatch.go. No loop polls for
//     this process's own messages.
//  4. Build each attempt anew: attempt.go. Id and bytes stay, the timestamp, the
//     signatures and the secrets are those of the moment. transport.go makes the
//     request: bounded, without redirects, and never twice.
//  5. Write down how it came out, in one transaction: settle.go. schedule.go has
//     the delays, retryafter.go what an endpoint may ask for.
//  6. Know when to stop: disable.go (410, or days without a success) and notify.go
//     (whom to tell before).
//  7. What people do by hand: rotate.go (two secrets sign for a while), resend.go
//     (one attempt more, the schedule goes on untouched), log.go (what happened).
//  8. Never call inside: guard.go and address.go, asked when an endpoint is
//     created and again about the address that is connected to.
//  9. Keep no more than needed: retention.go.
//
// The schema is in migrations/. store.go and its neighbours open the database and
// write to it: changes that come together share a commit.
//
// [Open] gives a [Sender], [Sender.Run] sends, [Sender.Publish] and
// [Sender.PublishTx] take events.
//
// # Time
//
// All time is that of Options.Clock, of which only Now, Timer and AfterFunc are
// used, so that three days of retries take a second in a test: somebody moves the
// clock to what [Sender.State] says is next. [Control] lets a conformance run do
// so.
//
// source: 07 sending webhooks; Patterns, Designing Webhooks; Standard Webhooks
// 1.0.0.
package sender
