package profile

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

const (
	// maxList bounds the lists of a profile: the longest schedule known has 60
	// attempts.
	maxList = 1000

	// maxText bounds a text that is no template, in bytes.
	maxText = 8 << 10

	// maxDuration is longer than anything a provider does, and far from where
	// sums of durations overflow.
	maxDuration = 10 * 366 * 24 * time.Hour
)

// text reads a text that is not empty.
func text(into *string) reader {
	return func(d *decoder, n *yaml.Node, path string) {
		s, ok := d.scalar(n, path, "text")
		switch {
		case !ok:
		case s == "":
			d.fault(n, path, "must not be empty")
		case len(s) > maxText:
			d.fault(n, path, "%d bytes, at most %d are allowed", len(s), maxText)
		default:
			*into = s
		}
	}
}

// longText reads a text of any length that is not empty: a template.
func longText(into *string) reader {
	return func(d *decoder, n *yaml.Node, path string) {
		s, ok := d.scalar(n, path, "text")
		if ok && s == "" {
			d.fault(n, path, "must not be empty")
		}
		*into = s
	}
}

// oneOf reads one of the words.
func oneOf(into *string, words []string) reader {
	return func(d *decoder, n *yaml.Node, path string) {
		want := "one of " + strings.Join(words, ", ")
		s, ok := d.scalar(n, path, want)
		if !ok {
			return
		}
		if !slices.Contains(words, s) {
			d.fault(n, path, "want %s, got %s%s", want, shorten(s), didYouMean(s, words))
			return
		}
		*into = s
	}
}

// texts reads a list of texts.
func texts(into *[]string) reader {
	return func(d *decoder, n *yaml.Node, path string) {
		d.items(n, path, maxList, func(item *yaml.Node, at string) {
			var s string
			text(&s)(d, item, at)
			*into = append(*into, s)
		})
	}
}

// yesNo reads true or false, and none of YAML 1.1's other words for them.
func yesNo(into *bool) reader {
	return func(d *decoder, n *yaml.Node, path string) {
		s, ok := d.scalar(n, path, "true or false")
		switch {
		case !ok:
		case s == "true" || s == "false":
			*into = s == "true"
		default:
			d.fault(n, path, "want true or false, got %s", shorten(s))
		}
	}
}

// whole reads a whole number within bounds.
func whole(into *int, low, high int) reader {
	return func(d *decoder, n *yaml.Node, path string) {
		want := fmt.Sprintf("a whole number from %d to %d", low, high)
		s, ok := d.scalar(n, path, want)
		if !ok {
			return
		}
		v, err := strconv.Atoi(s)
		if err != nil || v < low || v > high {
			d.fault(n, path, "want %s, got %s", want, shorten(s))
			return
		}
		*into = v
	}
}

// fraction reads a number within bounds: 0.1 is ten in a hundred.
func fraction(into *float64, low, high float64) reader {
	return func(d *decoder, n *yaml.Node, path string) {
		want := fmt.Sprintf("a number from %v to %v", low, high)
		s, ok := d.scalar(n, path, want)
		if !ok {
			return
		}
		v, err := strconv.ParseFloat(s, 64)
		if err != nil || math.IsNaN(v) || v < low || v > high {
			d.fault(n, path, "want %s, got %s", want, shorten(s))
			return
		}
		*into = v
	}
}

// statuses reads a list of HTTP statuses from 400 to 599.
func statuses(into *[]int) reader {
	return func(d *decoder, n *yaml.Node, path string) {
		d.items(n, path, 20, func(item *yaml.Node, at string) {
			var s int
			whole(&s, 400, 599)(d, item, at)
			if s != 0 && slices.Contains(*into, s) {
				d.fault(item, at, "%d stands in the list twice", s)
			}
			*into = append(*into, s)
		})
	}
}

// duration reads a length of time. zero tells whether 0s is one.
func duration(into *time.Duration, zero bool) reader {
	return func(d *decoder, n *yaml.Node, path string) {
		s, ok := d.scalar(n, path, "a duration such as 5m or 24h")
		if !ok {
			return
		}
		v, err := parseDuration(s)
		switch {
		case err != nil:
			d.fault(n, path, "want a duration such as 30s, 5m, 24h or 5d, got %s", shorten(s))
		case v < 0 || v == 0 && !zero:
			d.fault(n, path, "want a duration above 0, got %s", shorten(s))
		case v > maxDuration:
			d.fault(n, path, "want at most ten years, got %s", shorten(s))
		default:
			*into = v
		}
	}
}

// tolerance reads a duration, or none.
func tolerance(into *time.Duration) reader {
	return func(d *decoder, n *yaml.Node, path string) {
		if n.Kind == yaml.ScalarNode && n.Value == "none" {
			*into = 0
			return
		}
		before := len(d.faults)
		duration(into, false)(d, n, path)
		if len(d.faults) == before && *into%time.Second != 0 {
			d.fault(n, path, "want whole seconds, got %s", shorten(n.Value))
		}
	}
}

// durations reads a list of durations. zero tells whether 0s is one.
func durations(into *[]time.Duration, zero bool) reader {
	return func(d *decoder, n *yaml.Node, path string) {
		d.items(n, path, maxList, func(item *yaml.Node, at string) {
			var v time.Duration
			duration(&v, zero)(d, item, at)
			*into = append(*into, v)
		})
	}
}

// parseDuration is time.ParseDuration with days: "5d" is 120 hours.
func parseDuration(s string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		if err != nil {
			return 0, fmt.Errorf("days of %q: %w", s, err)
		}
		return time.Duration(n) * 24 * time.Hour, nil
	}
	return time.ParseDuration(s)
}

// size reads a number of bytes: 64KiB, 25MB.
func size(into *int64) reader {
	return func(d *decoder, n *yaml.Node, path string) {
		s, ok := d.scalar(n, path, "a size such as 64KiB or 25MB")
		if !ok {
			return
		}
		v, ok := parseSize(s)
		if !ok {
			d.fault(n, path, "want a size above 0 such as 500B, 64KiB, 1MiB or 25MB, at most 1GiB, got %s", shorten(s))
			return
		}
		*into = v
	}
}

// maxBytes is the largest size in a profile.
const maxBytes = 1 << 30

// parseSize reads a size: KiB, MiB and GiB count in 1024s, kB, MB and GB in 1000s.
func parseSize(s string) (int64, bool) {
	units := []struct {
		name  string
		bytes int64
	}{
		{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30},
		{"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1},
	}
	for _, u := range units {
		digits, ok := strings.CutSuffix(s, u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(digits, 10, 31)
		if err != nil || n == 0 || int64(n) > maxBytes/u.bytes {
			return 0, false
		}
		return int64(n) * u.bytes, true
	}
	return 0, false
}

// dictionary reads a mapping of any keys; check looks at each pair.
func dictionary(into *map[string]string, check func(d *decoder, key, value *yaml.Node, path string)) reader {
	return func(d *decoder, n *yaml.Node, path string) {
		out := map[string]string{}
		d.pairs(n, path, func(key, value *yaml.Node) {
			at := join(path, key.Value)
			if len(out) >= maxList {
				d.fault(key, at, "at most %d pairs are allowed", maxList)
				return
			}
			s, ok := d.scalar(value, at, "text")
			if !ok {
				return
			}
			check(d, key, value, at)
			out[key.Value] = s
		})
		*into = out
	}
}
