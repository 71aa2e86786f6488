package main

import "fmt"

// scenario is one thing measured: how, and which of its numbers are shown.
type scenario struct {
	id, what string
	servers  int  // 0 = one
	noFloor  bool // the relay cannot do it
	// childOnly says that it is about a server that the gateway starts.
	childOnly bool
	run       func(g *gateway, o options, c *cell) error
	show      []measure
}

// measure is one number of a scenario and what SPEC 6 wants of it.
type measure struct {
	key, name string
	goal      goal
}

// goal bounds a number, or its ratio to the relay's in the same run.
type goal struct {
	ratio   bool
	atLeast bool
	limit   float64
}

var none goal

func atMost(limit float64) goal  { return goal{limit: limit} }
func times(limit float64) goal   { return goal{ratio: true, limit: limit} }
func atLeast(limit float64) goal { return goal{ratio: true, atLeast: true, limit: limit} }

const (
	kb = 1 << 10
	mb = 1 << 20
	gb = 1 << 30
)

// echoArgs make a result of about 200 bytes.
const echoArgs = `{"v":"hello from an agent: this is the text of a small echo, long enough that the whole result has about two hundred bytes on the wire, envelope included ......."}`

func blob(kind string, size int64) string { return fmt.Sprintf(`{"bytes":%d,"kind":%q}`, size, kind) }

var (
	rate  = measure{"calls_s", "calls/s", none}
	p50   = measure{"p50_ms", "p50, ms", none}
	p99   = measure{"p99_ms", "p99, ms", none}
	cpu   = measure{"cpu_us", "CPU per call, µs", none}
	peak  = measure{"peak_mb", "peak RSS, MB", none}
	first = measure{"list_ms", "first list, ms", none}
	ready = measure{"ready_ms", "every server answers, ms", none}
)

func (m measure) want(g goal) measure {
	m.goal = g
	return m
}

var scenarios = []scenario{
	{id: "echo-1", what: "200 B echo, 1 agent", run: load(1, 20000, "echo", echoArgs, 0),
		show: []measure{cpu.want(times(1.25)), p50, p99, rate, peak}},
	{id: "echo-16", what: "200 B echo, 16 agents", run: load(16, 2000, "echo", echoArgs, 0),
		show: []measure{rate.want(atLeast(0.85)), p99.want(times(1.25)), cpu, peak}},
	{id: "echo-64", what: "200 B echo, 64 agents", run: load(64, 600, "echo", echoArgs, 0),
		show: []measure{rate.want(atLeast(0.85)), p99.want(times(1.25)), cpu, peak}},
	{id: "echo-256", what: "200 B echo, 256 agents", run: load(256, 200, "echo", echoArgs, 0),
		show: []measure{rate.want(atLeast(0.85)), p99, cpu, peak.want(atMost(64))}},
	{id: "31k", what: "31 KB, under the budget", run: load(1, 5000, "blob", blob("json", 31*kb), 31*kb),
		show: []measure{cpu.want(times(1.25)), p50, p99, rate}},
	{id: "1m", what: "1 MiB stored, until the receipt", run: load(1, 160, "blob", blob("json", mb), mb),
		show: []measure{p50.want(times(3)), p99, cpu, peak}},
	{id: "16m", what: "16 MiB stored, until the receipt", run: load(1, 12, "blob", blob("json", 16*mb), 16*mb),
		show: []measure{p50.want(times(4)), cpu, peak.want(atMost(64))}},
	{id: "1g", what: "1 GiB stored, until the receipt", noFloor: true, run: huge, show: []measure{
		{"seconds", "seconds", none}, {"mb_s", "MB/s", none}, {"grown_mb", "RSS grown by, MB", atMost(64)},
		{"start_p50_ms", "page at the start: p50, ms", none}, {"start_p99_ms", "page at the start: p99, ms", atMost(5)},
		{"middle_p99_ms", "page in the middle: p99, ms", atMost(5)}, {"end_p99_ms", "page at the end: p99, ms", atMost(5)}}},
	{id: "page-json", what: "1 MB of JSON read back in exact pages", noFloor: true, run: paging("json"), show: pagingShow},
	{id: "page-text", what: "1 MB of log read back in exact pages", noFloor: true, run: paging("text"), show: pagingShow},
	{id: "read-grep", what: "one match in 100 MB of log", noFloor: true, run: reading(grepErrand), show: besideTool("grep -n")},
	{id: "read-lines", what: "20 lines near the end of 100 MB", noFloor: true, run: reading(linesErrand), show: besideTool("sed -n")},
	{id: "read-records", what: "5 records at 900,000 of 1,000,000", noFloor: true, run: reading(recordsErrand), show: besideTool("jq -c")},
	{id: "read-outline", what: "outline of 100 MB of JSON", noFloor: true, run: reading(outlineErrand), show: besideTool("jq -c")},
	{id: "one-answer", what: "one answer out of 184 KB of JSON", noFloor: true, run: oneAnswer, show: []measure{
		{"tokens", "tokens of the query and its answer", atMost(400)}, {"turns", "turns, the tool's own call included", atMost(2)},
		{"receipt_tokens", "tokens of the receipt", none}, {"page_tokens", "tokens of all exact pages", none}, {"page_turns", "turns for all exact pages", none}}},
	{id: "line-sleep", what: "echo beside a long call", run: besideSleep,
		show: []measure{p50, p99.want(times(1.25))}},
	{id: "line-4m", what: "echo beside a loop of 4 MB results", run: besideLoop,
		show: []measure{p50, p99.want(times(1.25)), {"loops", "4 MB results meanwhile", none}, peak}},
	{id: "start", what: "start, 1 server", run: nothing, show: []measure{first, ready}},
	{id: "idle", what: "10 servers", servers: 10, run: idle, show: []measure{first.want(atMost(100)), ready,
		{"rss_mb", "idle RSS, MB", atMost(30)}, {"idle_cpu", "idle CPU, ms per s", atMost(0.5)}, {"threads", "threads", none}}},
	{id: "crash", what: "server killed in a call", noFloor: true, childOnly: true, run: crash,
		show: []measure{{"again_ms", "usable again after, ms", atMost(50)}, {"told_ms", "caller told after, ms", none}}},
}

var pagingShow = []measure{{"total_ms", "call and all pages, ms", atMost(300)}, {"trips", "round trips", none}, {"wire_kb", "KB on the wire", none}, cpu}

func nothing(*gateway, options, *cell) error { return nil }
