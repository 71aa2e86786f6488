package test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	key "mcphubd/test/answers"
	"mcphubd/test/mcptest"
)

// A riddle asks about a stored result. Its calls are those by which a model finds out: all
// but the last only show it around.
type riddle struct {
	of, text string
	calls    []string // arguments of mcphub_read_result, but for callId
	want     string   // a pattern that the last answer holds
}

// questions is the answer key: what is asked, and what is true by how the payloads are made.
func questions() []riddle {
	issues, tree := key.Issues(), key.Tree()
	order := key.OrderOf(2797)
	good, button, _ := key.Goods(333)
	west := key.Clusters().Clusters["eu/west"]
	last := west.Events[len(west.Events)-1]
	exact := func(s any) string { return regexp.QuoteMeta(fmt.Sprint(s)) }
	return []riddle{
		{"issues", `Who is the user that reported issue number 1287?`,
			[]string{`"jq":".items[]|select(.number==1287)|.user.login"`}, `(?m)^"` + exact(issues.Reporter(1287)) + `"$`},
		{"issues", `How many issues in state open have the label bug?`,
			[]string{`"jq":"[.items[]|select(.state==\"open\" and any(.labels[];.name==\"bug\"))]|length"`}, `(?m)^` + exact(issues.Count("open", "bug")) + `$`},
		{"log", `What was logged last?`,
			[]string{`"lines":"-3"`}, exact(key.LastWords) + `\n?$`},
		{"log", `Which request ran into "deadline exceeded", and on which shard?`,
			[]string{`"grep":"deadline exceeded","around":2`}, exact(key.TheRequest + " goes to " + key.TheShard)},
		{"tree", `Which directory has the file ` + key.TheFile + `?`,
			[]string{`"jq":"..|objects|select(any(.children[]?;.name==\"` + key.TheFile + `\"))|.name"`}, `(?m)^"` + key.Home + `"$`},
		{"tree", `How many files are there whose name ends in .md?`,
			[]string{`"jq":"[..|objects|select(.type==\"file\" and (.name|endswith(\".md\")))]|length"`}, `(?m)^` + exact(key.Files(tree, ".md")) + `$`},
		{"orders", `What did order ` + order.ID + ` cost?`,
			[]string{`"grep":"` + order.ID + `"`}, exact(order.ID) + `.*,` + exact(order.Total()) + `\n`},
		{"orders", `How many orders were refunded?`,
			[]string{`"grep":",refunded,","limit":3`}, `matching lines 1-3 of ` + exact(key.OrdersThat("refunded")) + `,`},
		{"snapshot", `Which ref has the button "Add to cart" of "` + good + `"?`,
			[]string{`"grep":"heading \"` + good + `\"","around":7`}, `button "Add to cart" \[ref=` + button + `\]`},
		{"snapshot", `Of what problem does an alert tell?`,
			[]string{`"grep":"(?i)alert"`}, exact(key.TheProblem)},
		{"clusters", `Which image does the container audit-proxy-77 run?`,
			[]string{`"jq":"..|objects|select(.name==\"audit-proxy-77\")|.image"`}, `(?m)^"` + exact(west.Deployments[17].Containers[1].Image) + `"$`},
		{"clusters", `What was the last event of eu/west?`,
			[]string{``, `"records":"/clusters/eu~1west/events","offset":59`}, exact(last.Message)},
	}
}

const (
	mostCalls  = 2
	mostTokens = 1000 // arguments and answers of one question
)

// TestTheAnswerKey: what is in a large result can be found out as cheaply as in a
// file under a good pager, by calls that nothing but receipt, outline and the
// description of the tool led to.
func TestTheAnswerKey(t *testing.T) {
	t.Parallel()
	results := map[string]string{}
	var names []string
	for _, p := range key.Payloads() {
		results[p.Name] = p.Result
		names = append(names, p.Name)
	}
	h := one(t, "", mcptest.Script{Tools: toolsNamed(names...), Rules: answers(results)})
	a := h.Agent("a")
	tool := described(t, a, readTool)
	receipts := map[string]mcptest.Receipt{}
	for _, name := range names {
		r := call(t, a, "d__"+name, "{}")
		receipts[name] = receiptOf(t, r)
		leads(t, name, receipts[name])
	}
	asked := questions()
	if len(asked) != 12 || len(names) != 6 {
		t.Fatalf("%d questions on %d payloads", len(asked), len(names))
	}
	for _, q := range asked {
		receipt := receipts[q.of]
		known := strings.Join([]string{tool, q.text, receipt.Shape, receipt.Preview, receipt.NextAction, jqWords}, "\n")
		tokens, answer := 0, ""
		for _, args := range q.calls {
			if odd := strangers(args, known); len(odd) > 0 {
				t.Errorf("%s: nothing said so far leads to %q in %s", q.text, odd, args)
			}
			args = strings.TrimSuffix(`{"callId":"`+receipt.CallID+`",`+args, ",") + "}"
			r := call(t, a, readTool, args)
			for try := 0; try < 10 && strings.Contains(r.Text(), "stopped at its limit of 5s"); try++ {
				r = call(t, a, readTool, args) // the machine was busy, and that is not asked here
			}
			answer = r.Text()
			if r.IsError() {
				t.Errorf("%s: %s: %s", q.text, args, answer)
			}
			known += "\n" + answer
			tokens += count(t, args) + count(t, answer)
		}
		if !regexp.MustCompile(q.want).MatchString(answer) {
			t.Errorf("%s: %s is not in the answer to %s:\n%s", q.text, q.want, q.calls, answer)
		}
		if len(q.calls) > mostCalls || tokens > mostTokens {
			t.Errorf("%s: %d calls, %d tokens", q.text, len(q.calls), tokens)
		}
		t.Logf("%5d tokens, %d calls: %s", tokens, len(q.calls), q.text)
	}
}

const readTool = "mcphub_read_result"

// jqWords is what a model knows without being told.
const jqWords = "select objects any length endswith and"

var keyWord = regexp.MustCompile(`[A-Za-z_][A-Za-z_0-9]+`)

// strangers are the words in args that nothing known holds.
func strangers(args, known string) []string {
	have := keyWord.FindAllString(known, -1)
	return slices.DeleteFunc(keyWord.FindAllString(args, -1), func(w string) bool { return slices.Contains(have, w) })
}

// leads checks that a receipt names the tool, with its id and what to add.
func leads(t *testing.T, name string, r mcptest.Receipt) {
	t.Helper()
	if !strings.Contains(r.NextAction, readTool+` with {"callId":"`+r.CallID+`"}`) || !strings.Contains(r.NextAction, `"grep":"`) {
		t.Errorf("%s: nextAction %s", name, r.NextAction)
	}
	isJSON := slices.Contains([]string{"issues", "tree", "clusters"}, name)
	if isJSON != (r.Shape != "") || isJSON != strings.Contains(r.NextAction, `"records":`) {
		t.Errorf("%s: shape %q, nextAction %s", name, r.Shape, r.NextAction)
	}
}

// described is what the agent's list says about a tool.
func described(t *testing.T, a *mcptest.Agent, name string) string {
	t.Helper()
	r, err := a.RPC(background(t), "tools/list", "{}")
	var list struct{ Tools []json.RawMessage }
	if err != nil || json.Unmarshal(r.Result(), &list) != nil {
		t.Fatal(err, r.Status)
	}
	for _, entry := range list.Tools {
		if strings.Contains(string(entry), `"name":"`+name+`"`) {
			return string(entry)
		}
	}
	t.Fatalf("%s is not listed", name)
	return ""
}

func count(t *testing.T, s string) int {
	t.Helper()
	n, err := key.Tokens(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
