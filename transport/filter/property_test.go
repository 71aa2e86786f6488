package filter

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/itchyny/gojq"
)

func FuzzNumbersKeepTheirSpelling(f *testing.F) {
	for _, s := range []string{"0", "-0", "1.0", "1e400", "9007199254740993", "-9223372036854775808", "9223372036854775808", "1E+2", "0.10"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !json.Valid([]byte(s)) || !strings.ContainsAny(s[:1], "-0123456789") || strings.TrimSpace(s) != s {
			return
		}
		err := each(strings.NewReader(s), func(v any) error {
			got, err := gojq.Marshal(v)
			if string(got) != s {
				t.Errorf("%s became %s", s, got)
			}
			return err
		})
		if err != nil {
			t.Error(s, err)
		}
	})
}

func FuzzHintsAreBoundedAndNeverPanic(f *testing.F) {
	f.Add(".a.b[0].c", `{"a":{"b":[{"d":1}]}}`)
	f.Add(`.items | map(select(.x == 1)) | sort_by(.y)[1:2].z`, `{"items":[{"x":1}]}`)
	f.Add(`{a, "b": .c, (.d): .["e"], "\(.f)": .g?} | .[]."h"`, `[{"a":null}]`)
	f.Add(`. as {a: $x} | def f(g): g | .q; try f(.b) catch .c // .d`, `{}`)
	f.Fuzz(func(t *testing.T, program, doc string) {
		query, err := gojq.Parse(program)
		if err != nil {
			return
		}
		_ = each(strings.NewReader(doc), func(v any) error {
			if h := hint(query, v); len(h) > maxMessage/2+200 {
				t.Errorf("%d bytes: %s", len(h), h)
			}
			return nil
		})
	})
}
