package fakeendpoint

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// unit is one of a size.
type unit struct {
	name  string
	bytes int64
}

// units are those that sizes are read in. Printed are the binary ones.
func units() []unit {
	return []unit{
		{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
		{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"B", 1},
	}
}

// parseSize reads "1GiB", "16 MiB" or a plain number of bytes.
func parseSize(text string) (int64, error) {
	name := strings.TrimLeft(text, "0123456789")
	digits := text[:len(text)-len(name)]
	name = strings.TrimSpace(name)
	n, err := strconv.ParseUint(digits, 10, 41)
	if err != nil {
		return 0, fmt.Errorf("%q is no size; write 512B, 16KiB, 1MiB or 1GiB", text)
	}
	factor := int64(1)
	if name != "" {
		factor = 0
		for _, u := range units() {
			if strings.EqualFold(u.name, name) {
				factor = u.bytes
			}
		}
	}
	switch {
	case factor == 0:
		return 0, fmt.Errorf("%q has no unit that is known; B, KiB, MiB, GiB and TiB are", text)
	case n == 0 || int64(n) > MaxSize/factor:
		return 0, fmt.Errorf("%q is out of range; 1 B to %s are possible", text, sizeText(MaxSize))
	}
	return int64(n) * factor, nil
}

// sizeText is a size in the largest binary unit that divides it.
func sizeText(n int64) string {
	for _, u := range units()[:4] {
		if n >= u.bytes && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10) + "B"
}

// parseWait reads a duration as Go writes it, with d for days beside.
func parseWait(text string) (time.Duration, error) {
	days, rest := int64(0), text
	if before, after, ok := strings.Cut(text, "d"); ok {
		n, err := strconv.ParseUint(before, 10, 16)
		if err != nil {
			return 0, badWait(text)
		}
		days, rest = int64(n), after
	}
	var d time.Duration
	if rest != "" || days == 0 {
		var err error
		if d, err = time.ParseDuration(rest); err != nil || rest != text && strings.ContainsAny(rest[:1], "+-") {
			return 0, badWait(text)
		}
	}
	if days > int64(MaxWait/(24*time.Hour)) {
		return 0, badWait(text)
	}
	if d += time.Duration(days) * 24 * time.Hour; d <= 0 || d > MaxWait {
		return 0, fmt.Errorf("%q is out of range; up to %s are possible", text, durationText(MaxWait))
	}
	return d, nil
}

func badWait(text string) error {
	return fmt.Errorf("%q is no duration; write 500ms, 20s, 5m, 2h or 3d", text)
}

// durationText is a duration without the zeros that Go adds: 1h, not 1h0m0s.
func durationText(d time.Duration) string {
	if d >= 24*time.Hour && d%(24*time.Hour) == 0 {
		return strconv.FormatInt(int64(d/(24*time.Hour)), 10) + "d"
	}
	text := strings.Replace(d.String(), "µ", "u", 1) // ASCII, so that a script is
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
