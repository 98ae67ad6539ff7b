// Package receiver is a webhook receiver, whole, and written to be read: it
// takes deliveries from the network to a durable inbox, answers, and processes
// them after the answer. A 2xx is a promise: what was acknowledged is processed,
// once, also when the process is killed in between.
//
// # The front
//
// Read [Receiver.ServeHTTP] first. It is the pattern of receiving, in the order
// that makes each step safe:
//
//  1. The method, then the declared length: both are known before a byte of the
//     body is read, so refusing costs nothing.
//  2. The raw body, in chunks, counted as it comes and under a deadline. A
//     length header is a claim; only bytes that arrived count.
//  3. The signature over exactly these bytes, before anything parses them. What
//     does not verify is answered alike, whatever was wrong with it.
//  4. The store, with the message's id as the key. A copy is not an error.
//  5. A 2xx, at once. Work on the event comes after the answer.
//
// Then read body.go (the bounded read), throttle.go (why a flood of forgeries
// never costs an authentic delivery its answer) and server.go (the limits of
// the HTTP server around it, each with its reason).
//
// The statuses, all with an empty body:
//
//	200  authentic and in the store, whether new or a copy
//	400  the body ended before its declared length
//	401  does not verify (403 or another where the profile demands it)
//	405  not POST, with Allow
//	408  the body did not arrive within the body timeout
//	413  larger than the bound, declared or counted; the connection closes
//	429  does not verify, and too many others did not either
//	500  a fault of the receiver itself, logged with its stack
//	503  the store failed or every slot is taken: the provider tries again
//
// # The inbox
//
// [OpenSQLite] and [OpenPostgres] open an [Inbox], the [Store] to use; [Memory]
// is for trying things out. Its pattern, and where to read it:
//
//  1. Insert, commit, then answer: writer.go, where messages that arrive
//     together share a commit, and sqlite.go or postgres.go.
//  2. Process in the background, so that every step can run twice: processor.go.
//     The note that a message is processed and the effect are one transaction.
//     A message on which somebody works is not marked: a mark would outlive the
//     process that made it. So what waits at a start is simply what waits.
//  3. Ask before acting, and move forward only: payment.go and lookup.go, the
//     example business.
//  4. Keep what fails, tell of it, and try it again when asked: state.go.
//  5. Remember ids for as long as copies may come, and no longer: retention.go.
//  6. Tell the operator: health.go (one line when the database stops to work,
//     one when it works again), metrics.go, and, for tests, observe.go, control.go
//     and movable.go.
//
// The schema is in migrations/, the same for both databases.
//
// source: 08 receiving webhooks; Standard Webhooks 1.0.0.
package receiver
