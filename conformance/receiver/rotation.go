package receiver

import (
	"context"
	"errors"
	"fmt"

	"github.com/whconform/whconform/conformance/drive"
	fp "github.com/whconform/whconform/fakeprovider"
)

// receiver.rotation: two secrets while one replaces the other.
func rotationRules() []rule {
	return []rule{
		{
			id: "receiver.rotation.accepts-old-and-new",
			probes: func(s *session) []probe {
				probes := []probe{
					one("signed with the new secret", fp.WithKeys(s.Keys.Current)),
					one("signed with the old secret", fp.WithKeys(*s.Keys.Previous)),
				}
				if s.Profile.Signature.Signature.Join != "" {
					probes = append(probes,
						one("signed with both, the new one first", fp.WithKeys(s.Keys.Current, *s.Keys.Previous)),
						one("signed with both, the old one first", fp.WithKeys(*s.Keys.Previous, s.Keys.Current)))
				}
				return append(probes, one(thirdLabel, fp.WithKeys(s.Keys.Third)))
			},
			judge: all(
				but(accepted("Only one secret is configured or tried, so every rotation loses the deliveries of its overlap."), thirdLabel),
				only(rejected("The result of the comparison is not used."), thirdLabel)),
		},
		{
			id:     "receiver.rotation.drops-retired",
			record: recordRetired,
			judge:  rejected("The old secret stays configured after the overlap: whoever leaked it can still sign."),
		},
	}
}

const thirdLabel = "signed with a third secret"

// recordRetired starts the receiver a second time as it is after the overlap,
// with the new secret alone.
func recordRetired(s *session) {
	if s.over() {
		return
	}
	after, err := s.Subject.Variant(s.ctx, drive.Secrets{Current: s.Keys.Texts.Current, Public: s.Keys.Texts.Public})
	if err != nil {
		if !errors.Is(err, context.Canceled) {
			s.fail(fmt.Errorf("starting a receiver with the new secret alone: %w", err))
		}
		return
	}
	defer func() { s.fail(after.Close(context.WithoutCancel(s.ctx))) }()
	to := s.targetOf(after.Target(0))
	s.rec.Control(controlLabel)
	if draft, ok := s.draft(s.event()); ok {
		if x := s.sendTo(to, controlLabel, draft); !x.OK() {
			return
		}
	}
	if draft, ok := s.draft(s.event(), fp.WithKeys(*s.Keys.Previous)); ok {
		s.sendTo(to, "signed with the retired secret, after the overlap", draft)
	}
}
