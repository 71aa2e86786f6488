package config_test

import (
	"math"
	"strings"
	"testing"

	"mcphubd/config"
)

func TestSizesAreReadAsWritten(t *testing.T) {
	for text, want := range map[string]config.Size{
		"0":                   0,
		"0KB":                 0,
		"0.0MB":               0,
		"512":                 512,
		"512B":                512,
		"1b":                  1,
		"32KB":                32 << 10,
		"32kib":               32 << 10,
		" 32 KB ":             32 << 10,
		"1.5MB":               3 << 19,
		"2GiB":                2 << 30,
		"0.001KB":             1,
		"8589934591GB":        8589934591 << 30,
		"9223372036854775807": math.MaxInt64,
	} {
		if got, err := config.ParseSize(text); err != nil || got != want {
			t.Errorf("ParseSize(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
}

func TestWhatIsNoSizeIsRefused(t *testing.T) {
	for _, text := range []string{
		"", " ", "KB", "-1KB", "-0", "+1KB", "1.5", "1.KB", ".5KB", "1..5KB", "1,5KB", "1e3", "1_000",
		"0x10", "32K", "1TB", "1KBB", "1 K B", "1KB2", "0.0001KB", "8589934592GB", "9223372036854775808",
		"٣KB", "1KB\x00", strings.Repeat("9", 65),
	} {
		if got, err := config.ParseSize(text); err == nil {
			t.Errorf("ParseSize(%q) = %d, want an error", text, got)
		}
	}
}

func TestSizesAreShownInTheirLargestWholeUnit(t *testing.T) {
	for size, want := range map[config.Size]string{
		0: "0", 1: "1B", 1000: "1000B", 1024: "1KB", 1536: "1536B", 128 << 10: "128KB", 5 << 30: "5GB", 1 << 50: "1048576GB",
	} {
		if got := size.String(); got != want {
			t.Errorf("%d is shown as %s, want %s", int64(size), got, want)
		}
	}
}

func FuzzSizeRoundTrips(f *testing.F) {
	for _, text := range []string{"0", "32KB", "1.5GiB", "9223372036854775807", "0.0001KB", "-1", "1e9", "00.10mb"} {
		f.Add(text, int64(len(text))*1023)
	}
	f.Fuzz(func(t *testing.T, text string, bytes int64) {
		if bytes >= 0 {
			s := config.Size(bytes)
			if got, err := config.ParseSize(s.String()); err != nil || got != s {
				t.Errorf("%d is written %q and read %d, %v", bytes, s, got, err)
			}
		}
		s, err := config.ParseSize(text)
		if err != nil {
			return
		}
		if s < 0 {
			t.Errorf("ParseSize(%q) = %d, negative", text, s)
		}
		if s == 0 && strings.ContainsAny(text, "123456789") {
			t.Errorf("ParseSize(%q) = 0, which means unlimited", text)
		}
		if again, err := config.ParseSize(s.String()); err != nil || again != s {
			t.Errorf("%q reads %d, is written %q and read %d, %v", text, s, s, again, err)
		}
	})
}
