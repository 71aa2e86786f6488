package budget

import "testing"

func TestLimitIsTheBudgetUnderTheAgentsCeiling(t *testing.T) {
	for _, c := range []struct {
		base, ceiling int64
		verbatim      bool
		want          int64
	}{
		{32768, 0, false, 32768},
		{32768, 10240, false, 10240},
		{8192, 10240, false, 8192},
		{0, 10240, false, 10240},
		{0, 0, false, 0},
		{32768, 10240, true, 0},
	} {
		if got := Limit(c.base, c.ceiling, c.verbatim); got != c.want {
			t.Errorf("Limit(%d, %d, %v) = %d, want %d", c.base, c.ceiling, c.verbatim, got, c.want)
		}
	}
}

func TestAResultAsLargeAsTheLimitPasses(t *testing.T) {
	if Exceeds(512, 512) || !Exceeds(513, 512) || Exceeds(1<<40, 0) {
		t.Error("the limit is not the largest size that passes")
	}
}
