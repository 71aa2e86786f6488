package debug

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"mcphubd/actors"
)

// metrics serves /metrics from a registry of its own. All figures of the daemon come
// from one snapshot, taken when somebody asks; nothing is counted twice.
func metrics(src Source) http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(collector{src}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
}

// collector turns a snapshot into metrics. Its labels are the names of servers, which
// the ledger bounds, and words of the program.
type collector struct{ src Source }

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("mcphubd_"+name, help, labels, nil)
}

var (
	buildInfo   = desc("build_info", "The build that runs; always 1.", "version")
	callsTotal  = desc("calls_total", "Calls that ended, by server and outcome.", "server", "outcome")
	callErrors  = desc("call_errors_total", "Calls that ended with another outcome than ok and cancelled.", "server")
	callSeconds = desc("call_duration_seconds", "How long calls took.", "server")
	argBytes    = desc("argument_bytes_total", "Bytes of arguments that agents sent.", "server")
	bytesIn     = desc("result_bytes_total", "Bytes of results that servers gave.", "server")
	keptOut     = desc("kept_out_bytes_total", "Bytes of results that were stored instead of given to an agent's context.", "server")
	receipts    = desc("receipts_total", "Results that were answered with a receipt.", "server")
	inFlight    = desc("calls_in_flight", "Calls that run now.")
	reads       = desc("reads_total", "Looks at stored results, by the way that was chosen.", "selector")
	stored      = desc("stored_results_total", "Results that were stored.")
	storedBytes = desc("stored_bytes_total", "Bytes of results that were stored.")
	refused     = desc("spool_failures_total", "Writes that the store refused.")
	failOpens   = desc("fail_opens_total", "Results that were given whole because the store refused them.")
	spoolBytes  = desc("spool_bytes", "Size of the store: what results have, pages in use, the file and its log.", "part")
	spoolBound  = desc("spool_limit_bytes", "What the store may use; 0 is no bound.")
	spoolRows   = desc("spool_results", "Results in the store.")
	restarts    = desc("actor_restarts_total", "Actors that crashed and were started anew, by kind.", "kind")
	inbox       = desc("inbox_depth", "Messages that wait, by kind of actor.", "kind")
	inboxAge    = desc("inbox_oldest_seconds", "How long the oldest of them has waited.", "kind")
	sessions    = desc("sessions", "Agents that attached since the start.")
	servers     = desc("servers", "Configured servers by state.", "state")
	problems    = desc("problems", "Things that are wrong now.")
	deadLetters = desc("dead_letters_total", "Messages that reached no actor.")
)

// Describe implements prometheus.Collector: what is collected depends on the servers,
// so the registry checks it when it comes.
func (collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c collector) Collect(to chan<- prometheus.Metric) {
	s, out := c.src.Snapshot(), metric(to)
	out.gauge(buildInfo, 1, c.src.Version())
	for name, t := range s.ByServer {
		out.calls(name, t)
	}
	for selector, n := range s.Totals.Reads {
		out.count(reads, n, selector)
	}
	out.gauge(inFlight, float64(s.Totals.InFlight))
	out.spool(s.Spool)
	for kind, n := range s.Totals.Restarts {
		out.count(restarts, n, kind)
	}
	out.inboxes(s.Actors)
	out.gauge(sessions, float64(len(s.Sessions)))
	out.servers(s.Servers)
	out.gauge(problems, float64(len(s.Problems)))
	out.count(deadLetters, s.DeadLetters)
}

// metric is where metrics go.
type metric chan<- prometheus.Metric

func (to metric) count(d *prometheus.Desc, v int64, labels ...string) {
	to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
}

func (to metric) gauge(d *prometheus.Desc, v float64, labels ...string) {
	to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func (to metric) calls(server string, t actors.Tally) {
	for outcome, n := range t.Outcomes {
		to.count(callsTotal, n, server, outcome)
	}
	to.count(callErrors, t.Errors, server)
	to.count(argBytes, t.ArgBytes, server)
	to.count(bytesIn, t.ResultBytes, server)
	to.count(keptOut, t.KeptOutBytes, server)
	to.count(receipts, t.Receipts, server)
	buckets, sum := map[float64]uint64{}, uint64(0)
	for i, bound := range actors.CallSeconds {
		sum += uint64(t.Within[i])
		buckets[bound] = sum
	}
	to <- prometheus.MustNewConstHistogram(callSeconds, uint64(t.Calls), t.Seconds, buckets, server)
}

func (to metric) spool(s actors.SpoolLine) {
	to.count(stored, s.Stored)
	to.count(storedBytes, s.StoredBytes)
	to.count(refused, s.Failures)
	to.count(failOpens, s.FailedOpen)
	to.gauge(spoolBytes, float64(s.RawBytes), "results")
	to.gauge(spoolBytes, float64(s.UsedBytes), "pages")
	to.gauge(spoolBytes, float64(s.FileBytes), "file")
	to.gauge(spoolBytes, float64(s.WALBytes), "log")
	to.gauge(spoolBound, float64(s.MaxBytes))
	to.gauge(spoolRows, float64(s.Results))
}

func (to metric) inboxes(all []actors.Vitals) {
	depth, oldest := map[string]int{}, map[string]float64{}
	for _, a := range all {
		depth[a.Kind] += a.Depth
		oldest[a.Kind] = max(oldest[a.Kind], a.Oldest.Seconds())
	}
	for kind, n := range depth {
		to.gauge(inbox, float64(n), kind)
		to.gauge(inboxAge, oldest[kind], kind)
	}
}

func (to metric) servers(all []actors.ServerLine) {
	n := map[actors.State]int{}
	for _, v := range all {
		n[v.State]++
	}
	for _, state := range []actors.State{actors.Connecting, actors.Ready, actors.BackingOff, actors.Draining, actors.Stopped} {
		to.gauge(servers, float64(n[state]), string(state))
	}
}
