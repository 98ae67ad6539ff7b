// Package receiver is the front of a webhook receiver, written to be read: it
// takes a delivery from the network to the store and answers, and does nothing
// else. What an event means is the business of whoever empties the store.
//
// Read [Receiver.ServeHTTP] first. It is the whole pattern, in the order that
// makes each step safe:
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
// source: 08 receiving webhooks; Standard Webhooks 1.0.0.
package receiver
