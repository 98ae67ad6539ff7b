package profile

import (
	"regexp"
	"slices"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/whconform/whconform/reference/signature"
)

const (
	// defaultMaxBody is what a receiver accepts where the profile does not say:
	// three times the 20 KiB that an event should not exceed.
	defaultMaxBody = 64 << 10

	// defaultRemember is how long a receiver remembers ids where the profile
	// does not say.
	defaultRemember = 24 * time.Hour
)

// root is the whole format, key by key. schema.json says the same for editors;
// a test compares the two.
func (p *Profile) root() reader {
	s := &p.Signature
	return object(
		need("name", name(&p.Name)),
		need("title", text(&p.Title)),
		need("source", text(&p.Source)),
		may("unverified", texts(&p.Unverified)),
		need("signature", object(
			need("in", oneOf(&s.Signature.In, []string{"header", "body"})),
			need("name", text(&s.Signature.Name)),
			may("grammar", text(&s.Signature.Grammar)),
			may("list", object(
				may("repeat", text(&s.Signature.Repeat)),
				need("join", text(&s.Signature.Join)),
			)),
			may("versions", versions(&s.Versions)),
		)),
		may("content", texts(&s.Content)),
		need("mac", oneOf(&s.MAC, signature.MACs())),
		may("encoding", oneOf(&s.Encoding, signature.Encodings())),
		need("key", object(
			need("decode", oneOf(&s.Key.Decode, signature.KeyDecodes())),
			may("strip", texts(&s.Key.Strip)),
			may("min_bytes", whole(&s.Key.MinBytes, 1, 4096)),
			may("max_bytes", whole(&s.Key.MaxBytes, 1, 4096)),
			may("private", text(&s.Key.Private)),
			may("public", text(&s.Key.Public)),
		)),
		need("timestamp", object(
			need("in", oneOf(&s.Timestamp.In, []string{"signature", "header", "body", "none"})),
			may("name", text(&s.Timestamp.Name)),
			may("unit", oneOf(&s.Timestamp.Unit, signature.Units())),
			may("past", tolerance(&s.Timestamp.Past)),
			may("future", tolerance(&s.Timestamp.Future)),
		)),
		need("id", object(
			need("in", oneOf(&s.ID.In, []string{"header", "body", "none"})),
			may("name", text(&s.ID.Name)),
			may("signed", yesNo(&s.ID.Signed)),
			may("prefix", text(&p.IDPrefix)),
		)),
		may("user_agent", text(&p.UserAgent)),
		may("headers", dictionary(&p.Headers, checkHeader)),
		need("body", object(
			need("content_type", text(&p.ContentType)),
			need("template", longText(&p.Payload)),
			need("types", nonEmpty(texts(&p.EventTypes))),
			may("max_bytes", size(&p.EventBytes)),
		)),
		need("receiver", object(
			need("ack_timeout", duration(&p.AckTimeout, false)),
			may("reject", statuses(&p.RejectWith)),
			may("max_body", size(&p.MaxBody)),
			may("remember", duration(&p.Remember, false)),
			may("empty_answer", yesNo(&p.EmptyAnswer)),
			may("no_set_cookie", yesNo(&p.NoSetCookie)),
			may("handshake", oneOf(&p.Handshake, handshakes())),
		)),
		may("retry", object(
			may("schedule", nonEmpty(durations(&p.Schedule, true))),
			may("jitter", object(
				need("low", fraction(&p.JitterLow, -1, 0)),
				need("high", fraction(&p.JitterHigh, 0, 10)),
			)),
			may("retry_after_cap", duration(&p.RetryAfterCap, false)),
		)),
		may("sender", object(
			may("attempt_timeout", duration(&p.AttemptTimeout, false)),
			may("connect_timeout", duration(&p.ConnectTimeout, false)),
			may("disable_after", duration(&p.DisableAfter, false)),
			may("notify_after", durations(&p.NotifyAfter, false)),
			may("rotation_overlap", duration(&p.RotationOverlap, false)),
			may("retain_delivered", duration(&p.RetainDelivered, false)),
			may("retain_failed", duration(&p.RetainFailed, false)),
		)),
		may("levels", dictionary(&p.Levels, checkLevel)),
	)
}

// nameShape is what profiles are called: words that need no quotes in a shell
// and no escapes in a report.
var nameShape = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// name reads the profile's name.
func name(into *string) reader {
	return func(d *decoder, n *yaml.Node, path string) {
		s, ok := d.scalar(n, path, "a name")
		if ok && (!nameShape.MatchString(s) || len(s) > 64) {
			d.fault(n, path, "want lower-case words with hyphens, at most 64 characters, got %s", shorten(s))
			return
		}
		*into = s
	}
}

// nonEmpty refuses an empty list.
func nonEmpty(list reader) reader {
	return func(d *decoder, n *yaml.Node, path string) {
		if n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
			d.fault(n, path, "must have at least one element")
			return
		}
		list(d, n, path)
	}
}

// versions reads the labels of tokens and what they stand for, in their order.
func versions(into *[]signature.Version) reader {
	return func(d *decoder, n *yaml.Node, path string) {
		d.pairs(n, path, func(key, value *yaml.Node) {
			v := signature.Version{Label: key.Value}
			oneOf(&v.MAC, signature.MACs())(d, value, join(path, key.Value))
			if !slices.Contains(*into, v) {
				*into = append(*into, v)
			}
		})
	}
}
