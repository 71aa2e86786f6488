package config

import (
	"errors"
	"math/big"
	"strconv"
	"strings"
)

// Size is a number of bytes. 0 means unlimited, or never, as the setting says.
type Size int64

// The units, all powers of 1024; KB and KiB are the same.
const (
	B  Size = 1
	KB      = 1024 * B
	MB      = 1024 * KB
	GB      = 1024 * MB
)

var units = map[string]Size{
	"": B, "B": B,
	"KB": KB, "KIB": KB,
	"MB": MB, "MIB": MB,
	"GB": GB, "GIB": GB,
}

// maxSizeText bounds what ParseSize looks at, so that no text costs more than
// a moment.
const maxSizeText = 64

// ParseSize reads digits with an optional fraction and a unit in any case:
// "32KB", "1.5 GiB", "512". Digits alone count bytes. A part of a byte is
// dropped, but what is written as more than nothing never becomes 0, because 0
// means unlimited.
func ParseSize(text string) (Size, error) {
	text = strings.TrimSpace(text)
	if len(text) > maxSizeText {
		return 0, errors.New("too long for a size")
	}
	number, unit := splitSize(text)
	switch {
	case strings.HasPrefix(text, "-"):
		return 0, errors.New("a size cannot be negative")
	case !isDecimal(number):
		return 0, errors.New("a size starts with digits")
	}
	scale, ok := units[strings.ToUpper(unit)]
	if !ok {
		return 0, errors.New("the unit is none of B, KB, MB, GB")
	}
	if unit == "" && strings.Contains(number, ".") {
		return 0, errors.New("a fraction needs a unit")
	}
	exact, _ := new(big.Rat).SetString(number)
	exact.Mul(exact, new(big.Rat).SetInt64(int64(scale)))
	whole := new(big.Int).Quo(exact.Num(), exact.Denom())
	switch {
	case !whole.IsInt64():
		return 0, errors.New("too large")
	case whole.Sign() == 0 && exact.Sign() != 0:
		return 0, errors.New("less than one byte")
	}
	return Size(whole.Int64()), nil
}

// splitSize cuts text behind its last digit or point.
func splitSize(text string) (number, unit string) {
	end := strings.LastIndexAny(text, "0123456789.") + 1
	return text[:end], strings.TrimSpace(text[end:])
}

// isDecimal reports whether s is digits, with digits on both sides of a point
// if there is one.
func isDecimal(s string) bool {
	whole, part, point := strings.Cut(s, ".")
	return isDigits(whole) && (!point || isDigits(part))
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// String is the shortest exact form; ParseSize reads it back unchanged.
func (s Size) String() string {
	switch {
	case s == 0:
		return "0"
	case s%GB == 0:
		return strconv.FormatInt(int64(s/GB), 10) + "GB"
	case s%MB == 0:
		return strconv.FormatInt(int64(s/MB), 10) + "MB"
	case s%KB == 0:
		return strconv.FormatInt(int64(s/KB), 10) + "KB"
	}
	return strconv.FormatInt(int64(s), 10) + "B"
}

// MarshalText writes String.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what ParseSize reads.
func (s *Size) UnmarshalText(text []byte) (err error) {
	*s, err = ParseSize(string(text))
	return err
}
