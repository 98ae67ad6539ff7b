package drive

import (
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// serveConn answers the questions of one connection, each with its length in
// front (RFC 1035 §4.2.2).
func (s *NameServer) serveConn(c net.Conn) {
	defer func() {
		_ = c.Close()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.conns, c)
	}()
	var length [2]byte
	for {
		_ = c.SetDeadline(time.Now().Add(nameIdle))
		if _, err := io.ReadFull(c, length[:]); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(length[:]))
		if _, err := io.ReadFull(c, query); err != nil {
			return
		}
		answer := s.answer(query, 1<<16-1)
		if answer == nil {
			return
		}
		if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)); err != nil {
			return
		}
	}
}

// answer makes the answer to a message, of most bytes at most; nil to what is no
// question: to answer an answer would begin a conversation of two name servers.
func (s *NameServer) answer(message []byte, most int) []byte {
	var parser dnsmessage.Parser
	asked, err := parser.Start(message)
	if err != nil || asked.Response {
		return nil
	}
	header := dnsmessage.Header{
		ID: asked.ID, Response: true, OpCode: asked.OpCode, Authoritative: true,
		RecursionDesired: asked.RecursionDesired, RecursionAvailable: true,
	}
	questions, err := parser.AllQuestions()
	switch {
	case asked.OpCode != 0:
		header.RCode = dnsmessage.RCodeNotImplemented
		return build(header, nil, nil)
	case err != nil || len(questions) != 1:
		header.RCode = dnsmessage.RCodeFormatError
		return build(header, nil, nil)
	}
	q := questions[0]
	if q.Class != dnsmessage.ClassINET {
		header.RCode = dnsmessage.RCodeRefused
		return build(header, questions, nil)
	}
	addrs, exists := s.lookup(q.Name.String(), uint16(q.Type))
	if !exists {
		header.RCode = dnsmessage.RCodeNameError
	}
	answer := build(header, questions, records(q, addrs))
	if len(answer) > most || answer == nil && len(addrs) > 0 {
		header.Truncated = true
		answer = build(header, questions, nil)
	}
	return answer
}

// records are the addresses that are of the kind asked for.
func records(q dnsmessage.Question, addrs []netip.Addr) []dnsmessage.Resource {
	var out []dnsmessage.Resource
	for _, a := range addrs {
		var body dnsmessage.ResourceBody
		switch {
		case q.Type == dnsmessage.TypeA && a.Is4():
			body = &dnsmessage.AResource{A: a.As4()}
		case q.Type == dnsmessage.TypeAAAA && a.Is6(): // an IPv4 address in IPv6's form among them
			body = &dnsmessage.AAAAResource{AAAA: a.As16()}
		default:
			continue
		}
		out = append(out, dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}, Body: body})
	}
	return out
}

// build writes a message; nil if that cannot be.
func build(h dnsmessage.Header, questions []dnsmessage.Question, answers []dnsmessage.Resource) []byte {
	out, err := (&dnsmessage.Message{Header: h, Questions: questions, Answers: answers}).Pack()
	if err != nil {
		return nil
	}
	return out
}
