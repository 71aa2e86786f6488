package budget

// MinBudget is the smallest budget that is not unlimited: every receipt fits it.
const MinBudget = 512

// Limit returns how many bytes one result may have before it is stored; 0 is no
// limit. base is the tool's, else the server's, else the global budget, ceiling
// the agent's own bound (0 = none). Verbatim passes everything.
func Limit(base, ceiling int64, verbatim bool) int64 {
	switch {
	case verbatim:
		return 0
	case ceiling == 0:
		return base
	case base == 0:
		return ceiling
	default:
		return min(base, ceiling)
	}
}

// Exceeds reports whether a result of size bytes has to be stored under limit.
func Exceeds(size, limit int64) bool { return limit > 0 && size > limit }
