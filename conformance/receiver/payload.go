package receiver

import (
	"encoding/json"
	"fmt"
	"sync/atomic"

	"github.com/benbjohnson/clock"

	fp "github.com/whconform/whconform/fakeprovider"
	"github.com/whconform/whconform/reference/profile"
)

// ProfileEvent renders the profile's own payload.
func ProfileEvent(p *profile.Profile, c clock.Clock) func(id, eventType string) ([]byte, error) {
	return rendered(p.NewPayload, c)
}

// TemplateEvent renders a payload template of the user's.
func TemplateEvent(t *profile.Payload, c clock.Clock) func(id, eventType string) ([]byte, error) {
	return rendered(t.Render, c)
}

func rendered(render func(profile.PayloadData) ([]byte, error), c clock.Clock) func(id, eventType string) ([]byte, error) {
	var seq atomic.Int64
	return func(id, eventType string) ([]byte, error) {
		n := int(seq.Add(1))
		return render(profile.PayloadData{ID: id, Type: eventType, Time: c.Now(), Seq: n, Random: fmt.Sprintf("r%06d", n)})
	}
}

// eventHas tells whether the run's events are JSON objects with all the named
// members at their top.
func (s *session) eventHas(names ...string) bool {
	var event map[string]any
	if json.Unmarshal(s.event().Body, &event) != nil {
		return false
	}
	for _, name := range names {
		if _, ok := event[name]; !ok {
			return false
		}
	}
	return true
}

// editJSON changes the event, a JSON object, before signing.
func editJSON(name string, edit func(event map[string]any)) fp.Alteration {
	return fp.EditBody(name, func(body []byte) ([]byte, error) {
		var event map[string]any
		if err := json.Unmarshal(body, &event); err != nil {
			return nil, fmt.Errorf("changing the event (%s): %w", name, err)
		}
		edit(event)
		return json.Marshal(event)
	})
}
