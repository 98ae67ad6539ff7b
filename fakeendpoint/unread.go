package fakeendpoint

// Unread is how many of the held requests have something on their connection
// that nobody has read yet: mostly its end, of a peer that has just given up. Such
// a one still counts as held, in the place of one that is on its way. Who moves a
// virtual clock looks at it beside [Server.Held]. Always 0 on systems where it
// cannot be seen.
func (s *Server) Unread() int {
	s.heldMu.Lock()
	held := make([]*conn, 0, len(s.held))
	for c := range s.held {
		held = append(held, c)
	}
	s.heldMu.Unlock()
	n := 0
	for _, c := range held {
		if c.hasUnread() {
			n++
		}
	}
	return n
}

// hasUnread looks without reading. Where a goroutine waits for the peer, whatever
// has come will wake it; one that writes does not read, and meets a reset alone.
func (c *conn) hasUnread() bool {
	if c.tcp == nil {
		return false
	}
	raw, err := c.tcp.SyscallConn()
	if err != nil {
		return true // closed: its goroutine is about to say so
	}
	some, broken := false, false
	if raw.Control(func(fd uintptr) { some, broken = peek(fd) }) != nil {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return broken || some && c.holding
}
