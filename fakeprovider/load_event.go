package fakeprovider

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/whconform/whconform/reference/profile"
	"github.com/whconform/whconform/reference/signature"
	"github.com/whconform/whconform/reference/wire"
)

// The bounds of what is kept of events, so that they can be sent again as
// duplicates.
const (
	recentEvents = 1000
	recentBytes  = 8 << 20
)

// parcels makes the requests of a load, each when it is sent.
type parcels struct {
	provider *Provider
	config   *LoadConfig
	url      string
	wrong    []signature.Key // nobody else has them
	head     []byte          // request line and the lines that all deliveries share

	events atomic.Int64 // genuine ones so far

	mu     sync.Mutex
	shared map[int64]*parcel // events of which copies are yet to be sent
	recent []loadEvent
	size   int // of the bodies in recent
}

// loadEvent is what stays the same when an event is sent again.
type loadEvent struct {
	id   string
	body []byte
}

// parcel is an event with several copies. They are taken by different workers,
// mostly at the same time: whoever comes first makes it.
type parcel struct {
	once    sync.Once
	left    int // copies that were not taken yet; guarded by parcels.mu
	request []byte
	kind    loadKind
	err     error
}

func (p *Provider) newParcels(addr *address, to Target, c *LoadConfig) (*parcels, error) {
	out := &parcels{provider: p, config: c, url: to.URL, shared: map[int64]*parcel{}}
	if c.Event == nil {
		c.Event = p.exampleEvent()
	}
	if c.Forged > 0 {
		for _, key := range c.Keys {
			wrong, err := p.wrongKey(key)
			if err != nil {
				return nil, fmt.Errorf("making a key to forge with: %w", err)
			}
			out.wrong = append(out.wrong, wrong)
		}
	}
	// What all share is what a draft begins with; the length comes with each.
	none := ""
	draft := p.begin(Delivery{Type: c.Type})
	draft.Request.Method, draft.Wire.Length = draft.Input.Method, &none
	out.head = append(out.head, draft.Request.Method+" "+addr.target+" HTTP/1.1\r\n"...)
	lines, _ := headLines(addr, to, draft, 0)
	out.head = appendLines(out.head, lines)
	// A mistake is told before anything is sent.
	if _, err := out.write(nil, c.Keys, loadEvent{id: p.NewID()}); err != nil {
		return nil, err
	}
	return out, nil
}

// exampleEvent is the profile's own payload.
func (p *Provider) exampleEvent() func(id, eventType string) ([]byte, error) {
	var seq atomic.Int64
	return func(id, eventType string) ([]byte, error) {
		n := int(seq.Add(1))
		return p.profile.NewPayload(profile.PayloadData{ID: id, Type: eventType, Time: p.clock.Now(), Seq: n, Random: "r" + strconv.Itoa(n)})
	}
}

// wrongKey is a new key of the kind of another one.
func (p *Provider) wrongKey(like signature.Key) (signature.Key, error) {
	p.mu.Lock() // of the random source
	defer p.mu.Unlock()
	if like.Kind() == signature.Ed25519Private {
		return signature.NewEd25519Key("forged", p.rand)
	}
	return signature.NewKey(p.scheme, "forged", p.rand)
}

// dice are the choices about event e: the same ones whoever asks, whenever.
func (s *parcels) dice(e int64) *rand.Rand { return rand.New(rand.NewPCG(s.config.Seed, uint64(e))) }

// kind is what delivery n is to be.
func (s *parcels) kind(n int64) loadKind {
	if s.config.Forged == 0 && s.config.Duplicates == 0 {
		return genuine
	}
	return s.choose(s.dice(n / int64(s.config.Copies)))
}

func (s *parcels) choose(dice *rand.Rand) loadKind {
	switch at := dice.Float64(); {
	case at < s.config.Forged:
		return forged
	case at < s.config.Forged+s.config.Duplicates:
		return duplicate
	}
	return genuine
}

// make appends the request of delivery n to buffer.
func (s *parcels) make(n int64, buffer []byte) ([]byte, loadKind, error) {
	e := n / int64(s.config.Copies)
	if s.config.Copies == 1 {
		return s.build(e, buffer)
	}
	parcel := s.take(e)
	parcel.once.Do(func() { parcel.request, parcel.kind, parcel.err = s.build(e, nil) })
	return append(buffer, parcel.request...), parcel.kind, parcel.err
}

// take is the parcel of event e, one copy less of it.
func (s *parcels) take(e int64) *parcel {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.shared[e]
	if p == nil {
		p = &parcel{left: s.config.Copies}
		s.shared[e] = p
	}
	if p.left--; p.left == 0 {
		delete(s.shared, e)
	}
	return p
}

// drop forgets a copy that will not be sent.
func (s *parcels) drop(n int64) {
	if s.config.Copies > 1 {
		s.take(n / int64(s.config.Copies))
	}
}

// build makes an event and its request.
func (s *parcels) build(e int64, buffer []byte) ([]byte, loadKind, error) {
	what, keys := genuine, s.config.Keys
	var event loadEvent
	if s.config.Forged > 0 || s.config.Duplicates > 0 {
		dice := s.dice(e)
		if what = s.choose(dice); what == duplicate {
			var ok bool
			if event, ok = s.earlier(dice); !ok {
				what = genuine // there is none yet
			}
		}
	}
	if what == forged {
		keys = s.wrong
	}
	if what != duplicate {
		event.id = s.provider.NewID()
		var err error
		if event.body, err = s.config.Event(event.id, s.config.Type); err != nil {
			return nil, what, fmt.Errorf("making the event %s: %w", event.id, err)
		}
	}
	if what == genuine {
		s.events.Add(1)
		s.remember(event)
	}
	request, err := s.write(buffer, keys, event)
	return request, what, err
}

// earlier is an event that was sent before.
func (s *parcels) earlier(dice *rand.Rand) (loadEvent, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.recent) == 0 {
		return loadEvent{}, false
	}
	return s.recent[dice.IntN(len(s.recent))], true
}

// remember keeps an event to be sent again, and forgets older ones.
func (s *parcels) remember(event loadEvent) {
	if s.config.Duplicates == 0 || len(event.body) > recentBytes {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recent, s.size = append(s.recent, event), s.size+len(event.body)
	for len(s.recent) > recentEvents || s.size > recentBytes {
		s.size -= len(s.recent[0].body)
		s.recent[0] = loadEvent{} // the array lives on
		s.recent = s.recent[1:]
	}
}

// write signs an event now and appends its request.
func (s *parcels) write(buffer []byte, keys []signature.Key, event loadEvent) ([]byte, error) {
	p := s.provider
	draft := Draft{
		Input:  signature.Input{ID: event.id, Method: "POST", URL: s.url, Time: p.clock.Now(), Body: event.body},
		Keys:   keys,
		Type:   s.config.Type,
		scheme: p.scheme,
	}
	if err := draft.sign(); err != nil {
		return nil, err
	}
	buffer = append(buffer, s.head...)
	if len(p.profile.Headers) > 0 {
		buffer = appendLines(buffer, p.extras(&draft))
	}
	buffer = appendLines(buffer, draft.headers(draft.Input, false))
	buffer = append(buffer, "Content-Length: "...)
	buffer = strconv.AppendInt(buffer, int64(len(event.body)), 10)
	buffer = append(buffer, "\r\n\r\n"...)
	return append(buffer, event.body...), nil
}

// appendLines appends header lines as they go over the wire.
func appendLines(out []byte, lines []wire.Header) []byte {
	for _, h := range lines {
		out = append(out, h.Name...)
		out = append(out, ": "...)
		out = append(out, h.Value...)
		out = append(out, "\r\n"...)
	}
	return out
}
