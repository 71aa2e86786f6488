package budget

import (
	"encoding/json"
	"strings"
	"testing"
)

// FuzzNoticeFitsBudget: what stands for a stored resource or prompt is valid, names
// the callId and is within the budget, for any uri and the longest server name.
func FuzzNoticeFitsBudget(f *testing.F) {
	f.Add("file:///a", "d", int64(1<<40), int64(512-24))
	f.Add(strings.Repeat("\x00\"ü", 400), strings.Repeat("s", 40), int64(1<<62), int64(4096))
	f.Fuzz(func(t *testing.T, subject, server string, size, limit int64) {
		if limit < MinBudget-24 || len(server) > 40 || strings.ContainsFunc(server, func(r rune) bool { return r < '0' || r > 'z' || r == '\\' }) {
			return
		}
		id := strings.Repeat("0123456789abcdef", 2)
		n := Notice{CallID: id, Server: server, Subject: subject, Limit: limit, ReadTool: "mcphub_read_result", GetTool: "mcphub_get_result",
			Facts: Facts{Bytes: max(size, 0), SHA256: strings.Repeat("f", 64)}}
		for _, b := range [][]byte{n.Resource(), n.Prompt()} {
			if int64(len(b)) > limit || !json.Valid(b) || strings.Count(string(b), id) < 2 {
				t.Fatalf("%d bytes for %d: %s", len(b), limit, b)
			}
		}
	})
}
