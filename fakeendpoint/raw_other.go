//go:build !unix

package fakeendpoint

// tryRead is never called where rawReads is false.
func (c *conn) tryRead(uintptr) bool { return true }

// rawReads tells whether tryRead works on this system.
const rawReads = false
