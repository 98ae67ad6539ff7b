package sender

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/whconform/whconform/conformance/drive"
)

// payload is an ordinary event. mark tells a reader of the wire what it is for.
func (s *session) payload(eventType, mark string) json.RawMessage {
	return s.envelope(eventType, s.now(), fmt.Sprintf(`{"for":%q,"amount":4200,"currency":"EUR"}`, mark))
}

// envelope puts data, which is JSON, into what the sender takes as a payload: it
// alone where the sender builds the payload itself, and a whole payload in the
// shape of Standard Webhooks where it passes on what it is given.
func (s *session) envelope(eventType string, at time.Time, data string) json.RawMessage {
	if s.Subject.Has(drive.OwnEvents) {
		return json.RawMessage(data)
	}
	return finished(eventType, at, data)
}

func finished(eventType string, at time.Time, data string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"type":%q,"timestamp":%q,"data":%s}`, eventType, at.UTC().Format(time.RFC3339), data))
}
