package excerpt

// Selectors are all that Request.Selector can return.
var Selectors = []string{"list", "next", "lines", "grep", "records", "jq", "outline"}

// Selector names the way in which a request chooses.
func (q Request) Selector() string {
	switch {
	case q.CallID == "":
		return "list"
	case q.Next != "":
		return "next"
	case q.lines != "":
		return "lines"
	case q.grep != "":
		return "grep"
	case q.records != nil:
		return "records"
	case q.JQ != "":
		return "jq"
	}
	return "outline"
}
