package budget

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

func TestOnlyAPositiveIntegerAsks(t *testing.T) {
	for value, want := range map[string]int64{
		`65536`:                  65536,
		` 65536 `:                65536,
		`1`:                      1,
		`9223372036854775807`:    math.MaxInt64,
		`0`:                      0,
		`-0`:                     0,
		`-1`:                     0,
		`65536.0`:                0,
		`65536.5`:                0,
		`6.5536e4`:               0,
		`65536e0`:                0,
		`1E5`:                    0,
		`9223372036854775808`:    0,
		`18446744073709551617`:   0,
		`99999999999999999999`:   0,
		`1e400`:                  0,
		`true`:                   0,
		`false`:                  0,
		`null`:                   0,
		`"65536"`:                0,
		`""`:                     0,
		`[65536]`:                0,
		`{"v":65536}`:            0,
		`065536`:                 0,
		`+65536`:                 0,
		`0x10000`:                0,
		strings.Repeat("9", 400): 0,
	} {
		for _, key := range askKeys {
			if got := Asked([]byte(`{"x":1,"` + key + `":` + value + `,"y":[2]}`)); got != want {
				t.Errorf("%s: %s asks for %d, want %d", key, value, got, want)
			}
		}
	}
}

func TestOfSeveralKeysTheMostCounts(t *testing.T) {
	for meta, want := range map[string]int64{
		``:                                  0,
		`{}`:                                0,
		`null`:                              0,
		`[{"mcphub/maxResultSizeChars":9}]`: 0,
		`{"maxResultSizeChars":9,"other/maxResultSizeChars":9,"MCPHUB/maxResultSizeChars":9}`:                       0,
		`{"deep":{"mcphub/maxResultSizeChars":9}}`:                                                                  0,
		`{"mcphub/maxResultSizeChars":9,"anthropic/maxResultSizeChars":7,"zeph/maxResultSizeChars":8}`:              9,
		`{"mcphub/maxResultSizeChars":7,"anthropic/maxResultSizeChars":9,"zeph/maxResultSizeChars":8}`:              9,
		`{"mcphub/maxResultSizeChars":7,"anthropic/maxResultSizeChars":8,"zeph/maxResultSizeChars":9}`:              9,
		`{"mcphub/maxResultSizeChars":"7","anthropic/maxResultSizeChars":-8,"zeph/maxResultSizeChars":5}`:           5,
		`{"mcphub/maxResultSizeChars":9,"mcphub/maxResultSizeChars":7}`:                                             7,
		`{"mcphub\u002fmaxResultSizeChars":9}`:                                                                      9,
		`{"mcphub/maxResultSizeChars":9`:                                                                            0,
		`{"mcphub/maxResultSizeChars":9,}`:                                                                          0,
		"{ \"mcphub/maxResultSizeChars\"\n:\t9 }":                                                                   9,
		`{"` + strings.Repeat("x", 10000) + `":1,"zeph/maxResultSizeChars":9,"y":"` + strings.Repeat("z", 9) + `"}`: 9,
	} {
		if got := Asked([]byte(meta)); got != want {
			t.Errorf("%.120s asks for %d, want %d", meta, got, want)
		}
	}
}

func TestAskingRaisesUpToTheOverrideAndUnderTheCeiling(t *testing.T) {
	const kb = 1 << 10
	for _, c := range []struct {
		Rule
		asked, want int64
	}{
		{Rule{Base: 32 * kb, Override: 128 * kb}, 0, 32 * kb},
		{Rule{Base: 32 * kb, Override: 128 * kb}, 1, 32 * kb},
		{Rule{Base: 32 * kb, Override: 128 * kb}, 32*kb - 1, 32 * kb},
		{Rule{Base: 32 * kb, Override: 128 * kb}, 32*kb + 1, 32*kb + 1},
		{Rule{Base: 32 * kb, Override: 128 * kb}, 128*kb + 1, 128 * kb},
		{Rule{Base: 32 * kb, Override: 128 * kb}, math.MaxInt64, 128 * kb},
		{Rule{Base: 32 * kb, Override: 0}, math.MaxInt64, 32 * kb},
		{Rule{Base: 32 * kb, Override: 16 * kb}, math.MaxInt64, 32 * kb},
		{Rule{Base: 32 * kb, Override: 128 * kb, Ceiling: 10 * kb}, 64 * kb, 10 * kb},
		{Rule{Base: 8 * kb, Override: 128 * kb, Ceiling: 10 * kb}, 64 * kb, 10 * kb},
		{Rule{Base: 32 * kb, Override: 128 * kb, Ceiling: 48 * kb}, 40 * kb, 40 * kb},
		{Rule{Base: 0, Override: 128 * kb}, 64 * kb, 0},
		{Rule{Base: 0, Override: 128 * kb, Ceiling: 10 * kb}, 64 * kb, 10 * kb},
		{Rule{Base: 32 * kb, Override: 128 * kb, Ceiling: 10 * kb, Verbatim: true}, 64 * kb, 0},
	} {
		if got := c.Limit(c.asked); got != c.want {
			t.Errorf("%+v asked for %d gives %d, want %d", c.Rule, c.asked, got, c.want)
		}
	}
}

// FuzzOverrideOnlyRaises: whatever a _meta says, the limit is never below the one
// without it, never above what is held in memory while the result arrives, and
// never above the agent's ceiling.
func FuzzOverrideOnlyRaises(f *testing.F) {
	f.Add([]byte(`{"mcphub/maxResultSizeChars":65536}`), int64(32768), int64(0), int64(131072))
	f.Add([]byte(`{"zeph/maxResultSizeChars":1.0,"anthropic/maxResultSizeChars":9223372036854775807}`), int64(512), int64(600), int64(0))
	f.Add([]byte("{\"mcphub/maxResultSizeChars\":7,\xff"), int64(0), int64(9), int64(1))
	f.Fuzz(func(t *testing.T, meta []byte, base, ceiling, override int64) {
		if base < 0 || ceiling < 0 || override < 0 {
			return
		}
		r := Rule{Base: base, Ceiling: ceiling, Override: override}
		asked := Asked(meta)
		got, without := r.Limit(asked), r.Limit(0)
		switch {
		case asked < 0:
			t.Fatalf("%q asks for %d", meta, asked)
		case without == 0 && got != 0 || got < without:
			t.Fatalf("%q lowers %d to %d", meta, without, got)
		case got > r.Highest() || (got == 0) != (r.Highest() == 0):
			t.Fatalf("%q reaches %d above %d", meta, got, r.Highest())
		case ceiling > 0 && (got > ceiling || got == 0):
			t.Fatalf("%q passes the ceiling %d: %d", meta, ceiling, got)
		case base > 0 && got > max(base, override):
			t.Fatalf("%q raises %d to %d, allowed is %d", meta, base, got, override)
		}
	})
}

func ExampleAsked() {
	fmt.Println(Asked([]byte(`{"anthropic/maxResultSizeChars":200000,"mcphub/maxResultSizeChars":"lots"}`)))
	// Output: 200000
}
