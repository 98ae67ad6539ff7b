package receiver

import (
	"time"

	fp "github.com/whconform/whconform/fakeprovider"
)

// receiver.order: events come in any order. Here stands the row that the wire
// alone shows.
func orderRules() []rule {
	return []rule{{
		id: "receiver.order.accepts-out-of-order",
		record: func(s *session) {
			if !s.control() {
				return
			}
			earlier := s.event() // its payload tells the earlier time
			later := s.event()
			s.send("the later event first", later)
			s.send("the earlier event after it, a minute old", earlier, fp.Age(min(time.Minute, max(s.tolerance()/2, time.Second))))
		},
		judge: accepted("Events are taken only in the order in which they happened. Retries and parallel delivery mix them up every day."),
	}}
}
