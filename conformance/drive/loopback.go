package drive

import "net"

// Loopback tells whether a host is this machine. A name is only if it is
// localhost: others would have to be resolved to know.
func Loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
