package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
)

// This file is the kinds of values that a key may hold. Each checks the type,
// says what to write instead, and leaves the default where the value is wrong.

// text is the expanded string in data; what is wrong with it is noted under key.
func (r *reader) text(key toml.Key, data any, example string) (string, bool) {
	written, ok := data.(string)
	if !ok {
		r.wrong(key, "is a text, not "+kind(data), "write it as "+example)
		return "", false
	}
	value, err := r.expander.expand(written)
	var nowhere expandError
	if errors.As(err, &nowhere) {
		r.wrong(key, nowhere.message, nowhere.fix)
		return "", false
	}
	if strings.ContainsRune(value, 0) {
		r.wrong(key, "holds a NUL character", "take it out")
		return "", false
	}
	return value, true
}

// textTo is a text.
func (r *reader) textTo(to *string) field {
	return field{value: func(n node) {
		if value, ok := r.text(n.key, n.data, `"text"`); ok {
			*to = value
		}
	}}
}

// pathTo is a text in which a leading ~ is the home directory.
func (r *reader) pathTo(to *string) field {
	return field{value: func(n node) {
		value, ok := r.text(n.key, n.data, `"/path/to/it"`)
		if !ok {
			return
		}
		path, err := r.expander.env.tilde(value)
		if err != nil {
			r.wrong(n.key, err.Error(), "write the whole path")
			return
		}
		*to = path
	}}
}

// choiceTo is one of the texts in of.
func (r *reader) choiceTo(to *string, of ...string) field {
	return field{value: func(n node) {
		value, ok := r.text(n.key, n.data, `"`+of[0]+`"`)
		switch {
		case !ok:
		case slices.Contains(of, value):
			*to = value
		default:
			fix := "write one of " + strings.Join(of, ", ")
			if near := nearest(value, of); near != "" {
				fix = fmt.Sprintf("did you mean %q?", near)
			}
			r.wrong(n.key, fmt.Sprintf("%q is none of %s", n.data, strings.Join(of, ", ")), fix)
		}
	}}
}

// boolTo is true or false.
func (r *reader) boolTo(to *bool) field {
	return field{value: func(n node) {
		value, ok := n.data.(bool)
		if !ok {
			r.wrong(n.key, "is true or false, not "+kind(n.data), "write true or false, without quotes")
			return
		}
		*to = value
	}}
}

// countTo is a whole number from low to high, or 0.
func (r *reader) countTo(to *int, low, high int64) field {
	return field{value: func(n node) {
		value, ok := n.data.(int64)
		switch {
		case !ok:
			r.wrong(n.key, "is a whole number, not "+kind(n.data), "write digits without quotes; 0 = no bound of its own")
		case value != 0 && (value < low || value > high):
			r.wrong(n.key, fmt.Sprintf("%d is out of range", value), fmt.Sprintf("write 0, or a number from %d to %d", low, high))
		default:
			*to = int(value)
		}
	}}
}

// durationTo is a time that is longer than nothing.
func (r *reader) durationTo(to *time.Duration) field { return r.timeTo(to, false) }

// durationOrNoneTo takes "0" for no bound at all.
func (r *reader) durationOrNoneTo(to *time.Duration) field { return r.timeTo(to, true) }

func (r *reader) timeTo(to *time.Duration, none bool) field {
	return field{value: func(n node) {
		const fix = `write it like "90s", "10m" or "1h30m"`
		text, ok := r.text(n.key, n.data, `"30s"`)
		if !ok {
			return
		}
		value, err := time.ParseDuration(text)
		switch {
		case err != nil:
			r.wrong(n.key, fmt.Sprintf("%q is not a time", n.data), fix)
		case value < 0 || value == 0 && !none:
			r.wrong(n.key, "a time is longer than zero", fix)
		default:
			*to = value
		}
	}}
}

// sizeTo is a size that check accepts; check says why not, and what to write.
func (r *reader) sizeTo(to *Size, check func(Size) (fault, fix string)) field {
	return field{value: func(n node) {
		value, ok := r.size(n)
		if !ok {
			return
		}
		if fault, fix := check(value); fault != "" {
			r.wrong(n.key, fault, fix)
			return
		}
		*to = value
	}}
}

// optionalSizeTo is sizeTo for a setting that may be absent.
func (r *reader) optionalSizeTo(to **Size, check func(Size) (fault, fix string)) field {
	return field{value: func(n node) {
		value := Size(-1)
		r.sizeTo(&value, check).value(n)
		if value >= 0 {
			*to = &value
		}
	}}
}

func (r *reader) size(n node) (Size, bool) {
	const fix = `write it like "32KB" or "1.5MB"`
	if bytes, ok := n.data.(int64); ok {
		if bytes < 0 {
			r.wrong(n.key, "a size cannot be negative", fix)
		}
		return Size(bytes), bytes >= 0
	}
	if _, ok := n.data.(string); !ok {
		r.wrong(n.key, "is a size, not "+kind(n.data), fix)
		return 0, false
	}
	text, ok := r.text(n.key, n.data, `"32KB"`)
	if !ok {
		return 0, false
	}
	size, err := ParseSize(text)
	if err != nil {
		r.wrong(n.key, fmt.Sprintf("%q is not a size: %v", n.data, err), fix)
		return 0, false
	}
	return size, true
}

// listTo is a list of texts; [] is an empty list and not the same as absent.
func (r *reader) listTo(to *[]string) field {
	return field{value: func(n node) {
		list, ok := n.data.([]any)
		if !ok {
			r.wrong(n.key, "is a list of texts, not "+kind(n.data), `write it as ["one", "two"]`)
			return
		}
		texts := make([]string, 0, len(list))
		for _, item := range list {
			if text, ok := r.text(n.key, item, `["one", "two"]`); ok {
				texts = append(texts, text)
			}
		}
		*to = texts
	}}
}

// textsTo is a table of texts under names of the user's choice.
func (r *reader) textsTo(to *map[string]string) field {
	return field{value: func(n node) {
		if !n.isTable {
			r.wrong(n.key, "is a table of texts, not "+kind(n.data), `write it as { NAME = "text" }`)
			return
		}
		texts := make(map[string]string, len(n.children))
		for _, child := range n.children {
			r.lines[child.dotted()] = child.line
			r.sources[child.dotted()] = r.source(child)
			if text, ok := r.text(child.key, child.data, `"text"`); ok {
				texts[child.name()] = text
			}
		}
		*to = texts
	}}
}

// kind names the type of a TOML value.
func kind(data any) string {
	switch data.(type) {
	case string:
		return "a text"
	case bool:
		return "true or false"
	case int64:
		return "a whole number"
	case float64:
		return "a number with a fraction"
	case time.Time:
		return "a date"
	case []any:
		return "a list"
	case []map[string]any:
		return "a list of tables ([[…]])"
	case map[string]any:
		return "a table"
	}
	return "this"
}
