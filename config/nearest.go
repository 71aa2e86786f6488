package config

import "strings"

// nearest is the candidate that word most likely meant, or "". Separators and
// case count for nothing, since that is how keys are usually misremembered; a
// part of a candidate is better than no idea.
func nearest(word string, candidates []string) string {
	best, least := "", 1+len(word)/3
	if least > 3 {
		least = 3
	}
	for _, c := range candidates {
		d := distance(plain(word), plain(c))
		if d < least || d == least && best == "" {
			best, least = c, d
		}
	}
	for _, c := range candidates {
		part, whole := plain(word), plain(c)
		if best == "" && len(part) > 3 && strings.Contains(whole, part) {
			best = c
		}
	}
	return best
}

func plain(s string) string {
	return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(s))
}

// distance counts the letters to insert, remove, replace or swap with their
// neighbour to get from a to b.
func distance(a, b string) int {
	s, t := []rune(a), []rune(b)
	var before, last []int
	row := make([]int, len(t)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(s); i++ {
		before, last, row = last, row, make([]int, len(t)+1)
		row[0] = i
		for j := 1; j <= len(t); j++ {
			replace := last[j-1]
			if s[i-1] != t[j-1] {
				replace++
			}
			row[j] = min(replace, last[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && s[i-1] == t[j-2] && s[i-2] == t[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(t)]
}
