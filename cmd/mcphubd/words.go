package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// bytesText is a number of bytes for people, in the units of the configuration.
func bytesText(n int64) string {
	value, units := float64(n), []string{"B", "KB", "MB", "GB", "TB"}
	for value >= 1024 && len(units) > 1 {
		value, units = value/1024, units[1:]
	}
	if units[0] == "B" || value >= 100 {
		return fmt.Sprintf("%.0f %s", value, units[0])
	}
	return fmt.Sprintf("%.1f %s", value, units[0])
}

// countText is a whole number for people: exact below 100,000, then rounded.
func countText(n int64) string {
	switch {
	case n < 100_000:
		return strconv.FormatInt(n, 10)
	case n < 100_000_000:
		return fmt.Sprintf("%.1fk", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1fM", float64(n)/1e6)
}

// count is a number of things.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// oneLine is the beginning of s on one line.
func oneLine(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

// span is a time for people: its two largest parts.
func span(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
}

// ms is a time in the milliseconds of JSON.
func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// ago is how long ago t was, "" when it never was.
func ago(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	d := time.Since(t)
	if d < 10*time.Second {
		return fmt.Sprintf("%ds", max(int(d.Seconds()), 0))
	}
	return span(d)
}

// left is how long it takes until t, "" when there is no such time.
func left(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return span(time.Until(t))
}

// sinceFlag is a moment in the past, given as how long ago it was, or as a date.
type sinceFlag struct{ time.Time }

// UnmarshalText reads 90m, 24h, 7d, 2w, 2026-03-01 or a whole time of RFC 3339.
func (f *sinceFlag) UnmarshalText(b []byte) error {
	given := string(b)
	for unit, hours := range map[string]float64{"d": 24, "w": 7 * 24} {
		if n, ok := strings.CutSuffix(given, unit); ok {
			if days, err := strconv.ParseFloat(n, 64); err == nil && days > 0 && days < 1e5 {
				f.Time = time.Now().Add(-time.Duration(days * hours * float64(time.Hour)))
				return nil
			}
		}
	}
	if d, err := time.ParseDuration(given); err == nil && d > 0 {
		f.Time = time.Now().Add(-d)
		return nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, given, time.Local); err == nil {
			f.Time = t
			return nil
		}
	}
	return fmt.Errorf("%q is no time; write it like 90m, 24h, 7d or 2026-03-01", given)
}

// sorted sorts names in place.
func sorted(names []string) []string {
	slices.Sort(names)
	return names
}
