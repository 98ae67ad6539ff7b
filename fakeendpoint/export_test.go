package fakeendpoint

import "net"

// ServeConn serves a connection that no listener has accepted.
func (s *Server) ServeConn(nc net.Conn) { s.serve(nc, s.door) }
