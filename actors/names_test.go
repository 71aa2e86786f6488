package actors

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"mcphubd/actors/catalog"
)

// TestC53TheStateTellsWhichToolANameMeans where the name does not tell by itself.
func TestC53TheStateTellsWhichToolANameMeans(t *testing.T) {
	d := fixed(`{"content":[]}`)
	d.tools = `[{"name":"plain","inputSchema":{"type":"object"}},{"name":"calendar.read","inputSchema":{"type":"object"}},{"name":"Create Share Now","inputSchema":{"type":"object"}}]`
	r := newRig(t, oneServer, map[string]*fakeServer{"d": d})
	r.ready("d")
	lines := r.Snapshot().Names
	for _, tool := range []string{"calendar.read", "Create Share Now"} {
		i := slices.IndexFunc(lines, func(l NameLine) bool { return l.Tool == tool && l.Server == "d" })
		if i < 0 {
			t.Fatalf("%s is not in %v", tool, lines)
		}
		r.must("a", lines[i].Exposed) // it leads there
	}
	if len(lines) != 2 {
		t.Errorf("the table is %v", lines)
	}
}

const agentsOfAllLengths = oneServer + `
[agents.usual]
[agents.short]
max_tool_name = 20
[agents.tiny]
max_tool_name = 16
tools = ["d__a_tool_with_a_long_name"]
`

// listedNames are the names in a list.
func listedNames(t *testing.T, list []byte) (names []string) {
	t.Helper()
	var tools []struct{ Name string }
	if err := json.Unmarshal(list, &tools); err != nil {
		t.Fatal(err)
	}
	for _, l := range tools {
		names = append(names, l.Name)
	}
	return names
}

// TestC29AnAgentSeesNamesThatItsClientCanBear, calls by them, is told of the tools to
// read with by them, and has the scope that the usual names say.
func TestC29AnAgentSeesNamesThatItsClientCanBear(t *testing.T) {
	d := fixed(text(100_000))
	d.tools = `[{"name":"a_tool_with_a_long_name","description":"Does it.","inputSchema":{"type":"object"}},{"name":"another_tool_with_a_long_name","inputSchema":{"type":"object"}},{"name":"brief","inputSchema":{"type":"object"}}]`
	r := newRig(t, agentsOfAllLengths, map[string]*fakeServer{"d": d})
	r.ready("d")
	for agent, want := range map[string]struct {
		longest, servers int
		read, get        string
	}{
		"usual": {64, 3, "mcphub_read_result", "mcphub_get_result"},
		"short": {20, 3, "mcphub_read_result", "mcphub_get_result"},
		"tiny":  {16, 1, "read_result", "get_result"},
	} {
		all := listedNames(t, r.session(agent).Tools(t.Context()))
		if n := len(all) - 2; n != want.servers || !slices.Equal(all[n:], []string{want.read, want.get}) {
			t.Errorf("%s sees %v", agent, all)
			continue
		}
		for _, name := range all[:len(all)-2] {
			if len(name) > want.longest {
				t.Errorf("%s sees %s", agent, name)
			}
			receipt := receiptOf(t, r.must(agent, name))
			next := receipt["nextAction"].(string)
			if receipt["namespaced"] != name || !strings.Contains(next, " "+want.read+" ") || !strings.Contains(next, " "+want.get+" ") {
				t.Errorf("%s: the receipt for %s says %v: %s", agent, name, receipt["namespaced"], next)
			}
			args := `{"callId":"` + receipt["callId"].(string) + `"}`
			if outline, err := r.call(t.Context(), agent, want.read, args); err != nil || !strings.Contains(outline, "of "+name+",") {
				t.Errorf("%s: the outline does not call it %s: %v %.300s", agent, name, err, outline)
			}
			if page, err := r.call(t.Context(), agent, want.get, args); err != nil || receiptOf(t, page)["status"] != "ok" {
				t.Errorf("%s: %v %.300s", agent, err, page)
			}
		}
	}
}

// TestC29ShortNamesStandInTheState, with the limit that makes them.
func TestC29ShortNamesStandInTheState(t *testing.T) {
	d := fixed(`{"content":[]}`)
	d.tools = `[{"name":"a_tool_with_a_long_name","inputSchema":{"type":"object"}}]`
	r := newRig(t, agentsOfAllLengths, map[string]*fakeServer{"d": d})
	r.ready("d")
	lines := r.Snapshot().Names
	for i, agent := range []string{"tiny", "short"} {
		want := NameLine{listedNames(t, r.session(agent).Tools(t.Context()))[0], []int{16, 20}[i], "d", "a_tool_with_a_long_name"}
		if len(lines) != 2 || lines[i] != want {
			t.Errorf("the table is %v, want %v in it", lines, want)
		}
	}
}

// TestC29AShortNameOfAServerThatConnectsIsWaitedFor: what is left of the prefix in it
// says whom to wait for.
func TestC29AShortNameOfAServerThatConnectsIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := make(chan struct{})
		d := fixed(`{"content":[]}`)
		d.tools = `[{"name":"a_tool_with_a_long_name","inputSchema":{"type":"object"}}]`
		d.connect = func(int) error { <-up; return nil }
		long := strings.ReplaceAll(agentsOfAllLengths, "servers.d", "servers.enterprise")
		r := newRig(t, strings.ReplaceAll(long, "d__", "enterprise__"), map[string]*fakeServer{"enterprise": d})
		name := catalog.Build([]catalog.Server{{Name: "enterprise", Tools: parsedTools(t, d.tools)}}).Within(16).Entries()[0].Shown
		got := make(chan error, 1)
		go func() {
			_, err := r.call(t.Context(), "tiny", name, "{}")
			got <- err
		}()
		synctest.Wait()
		select {
		case err := <-got:
			t.Fatalf("%s was answered before its server was up: %v", name, err)
		default:
		}
		close(up)
		if err := <-got; err != nil {
			t.Error(err)
		}
	})
}

func parsedTools(t *testing.T, list string) []catalog.Tool {
	t.Helper()
	tools, bad := catalog.ParseTools([][]byte{[]byte(`{"tools":` + list + `}`)})
	if len(bad) > 0 {
		t.Fatal(bad)
	}
	return tools
}

// TestC29ANewLimitHoldsForLiveSessions, which are told; the common names go on working
// for who still has them in mind.
func TestC29ANewLimitHoldsForLiveSessions(t *testing.T) {
	d := fixed(`{"content":[]}`)
	d.tools = `[{"name":"a_tool_with_a_long_name","inputSchema":{"type":"object"}}]`
	r := newRig(t, oneServer+"[agents.a]\n", map[string]*fakeServer{"d": d})
	r.ready("d")
	s := r.session("a")
	common := listedNames(t, s.Tools(t.Context()))[0]
	told := s.Changed()
	if _, err := r.Hub.Reload(t.Context(), parse(t, oneServer+"[agents.a]\nmax_tool_name = 16\n")); err != nil {
		t.Fatal(err)
	}
	select {
	case <-told:
	default:
		t.Error("the session was not told")
	}
	short := listedNames(t, s.Tools(t.Context()))[0]
	if common != "d__a_tool_with_a_long_name" || len(short) != 16 {
		t.Errorf("%s became %s", common, short)
	}
	r.must("a", short)
	r.must("a", common)
	if len(d.started()) != 1 {
		t.Error("the server was restarted")
	}
	if _, err := r.call(t.Context(), "b", short, "{}"); err == nil {
		t.Error("somebody else calls by that name")
	}
}
