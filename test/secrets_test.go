package test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mcphubd/test/mcptest"
)

// secrets are what no text of the daemon may hold.
var secrets = []string{"sk-test-AAAA", "sk-test-BBBB", "sk-test-CCCC", "sk-test-DDDD", "sk-test-EEEE", "sk-test-FFFF", "sk-test-GGGG"}

// TestC44NoSecretIsInAnyTextOfTheDaemon: servers that fail at the start, in a call and
// with an answer that echoes their credentials, looked at from all sides.
func TestC44NoSecretIsInAnyTextOfTheDaemon(t *testing.T) {
	t.Parallel()
	said := "TOKEN=sk-test-AAAA KEY=sk-test-BBBB file sk-test-FFFF\n"
	dies := mcptest.NewServer(t, mcptest.Script{Start: []mcptest.Step{{Stderr: mcptest.Bytes(said)}, mcptest.Exit(3)}})
	crashes := mcptest.NewServer(t, mcptest.Script{Rules: []mcptest.Rule{{Method: "tools/call", Tool: "sleep", Do: []mcptest.Step{
		{Stderr: mcptest.Bytes(said)}, {Write: mcptest.Bytes("noise " + said)}, mcptest.Exit(4)}}}})
	echo := `{"error":"no entry for Bearer sk-test-CCCC at sk-test-DDDD with sk-test-EEEE"}`
	unauthorized := &mcptest.Reply{Status: 401, Header: map[string]string{"Www-Authenticate": `Bearer realm="sk-test-CCCC"`}, Body: mcptest.Bytes(echo)}
	remote := func(method string) string {
		r := mcptest.NewRemote(t, mcptest.Script{Rules: []mcptest.Rule{{Method: method, Do: []mcptest.Step{{HTTP: unauthorized}}}}})
		return fmt.Sprintf("url = \"http://u:sk-test-DDDD@%s/mcp?api_key=sk-test-EEEE\"\nheaders = { Authorization = \"Bearer sk-test-CCCC\" }\n",
			strings.TrimPrefix(r.URL, "http://"))
	}
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("sk-test-FFFF\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	conf := "[log]\nlevel = \"debug\"\n[agents.default]\n[agents.other]\ntoken = \"sk-test-GGGG\"\n"
	for name, s := range map[string]mcptest.Server{"dies": dies, "crashes": crashes} {
		s.Env = maps.Clone(s.Env)
		s.Env["TOKEN"], s.Env["PLAIN"] = "sk-test-AAAA", "${file:"+file+"}"
		s.Args = append(slices.Clone(s.Args), "-e", "KEY=sk-test-BBBB")
		conf += s.TOML(name)
	}
	conf += "[servers.none]\ncommand = \"no-such-program\"\nargs = [\"-e\", \"KEY=sk-test-BBBB\"]\nenv = { TOKEN = \"sk-test-AAAA\" }\n"
	conf += "[servers.closed]\n" + remote("initialize") + "[servers.shuts]\n" + remote("tools/call")
	h := hub{mcptest.StartDaemon(t, conf), nil}
	texts := map[string]string{}
	a := h.Agent("default")
	for _, tool := range []string{"dies__echo", "crashes__sleep", "none__echo", "closed__echo", "shuts__echo"} {
		r, err := a.Call(background(t), tool, "{}")
		if err != nil {
			t.Fatal(err)
		}
		texts["the answer of "+tool] = string(r.Body)
	}
	wrong := authorised(h.Daemon, "/mcp/other", "sk-test-CCCC")
	r, _ := wrong.Init(background(t), "2025-06-18")
	texts["a refusal"] = string(r.Body)
	for _, path := range []string{"/debug/state", "/debug/actors", "/debug/calls", "/debug/", "/metrics", "/debug/pprof/cmdline", "/debug/pprof/goroutine?debug=2"} {
		_, b, err := h.Get(path)
		if err != nil {
			t.Fatal(err)
		}
		texts[path] = string(b)
	}
	for _, args := range [][]string{{"status", "--json"}, {"ps"}, {"server", "ls", "--json"}, {"server", "show", "crashes", "--json"}, {"server", "show", "closed"},
		{"call", "ls", "--json"}, {"config", "show", "--sources"}, {"config", "check"}, {"doctor"}, {"stats", "--json"}} {
		out, _ := h.Command(args...).CombinedOutput()
		texts[strings.Join(args, " ")] = string(out)
	}
	h.Stop()
	texts["the log"] = h.Log()
	files, err := filepath.Glob(filepath.Join(h.Data, "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil {
			texts[filepath.Base(f)] = string(b)
		}
	}
	for where, text := range texts {
		if text == "" && !strings.Contains(where, "lock") && !strings.Contains(where, "cmdline") {
			t.Logf("%s is empty", where)
		}
		for _, secret := range secrets {
			if i := strings.Index(text, secret); i >= 0 {
				t.Errorf("%s is in %s: …%s…", secret, where, text[max(0, i-150):min(len(text), i+50)])
			}
		}
	}
	for where, want := range map[string]string{"the answer of dies__echo": "exit status 3", "the answer of crashes__sleep": "exit status 4", "the answer of closed__echo": "401", "the answer of shuts__echo": "401", "the log": "***"} {
		if !strings.Contains(texts[where], want) {
			t.Errorf("%s does not say %q: %.500s", where, want, texts[where])
		}
	}
}

// TestC43AChildGetsASmallEnvironmentAndNoDescriptors: nothing of the daemon's secrets,
// nothing of another server's, but what is needed to work in a company's network.
func TestC43AChildGetsASmallEnvironmentAndNoDescriptors(t *testing.T) {
	t.Parallel()
	conf, _ := tables(t, "[servers.other]\ncommand = \"true\"\nenv = { OTHER_SECRET = \"sk-other\" }\n", map[string]mcptest.Script{"d": {}})
	conf = strings.Replace(conf, "env = { MCP", "env = { LANG = \"xx_YY\", MCP", 1)
	d := mcptest.NewDaemon(t, conf)
	d.Env = append(d.Env, "GITHUB_TOKEN=gh-1", "MCPHUBD_SECRET=s-1", "AWS_SECRET_ACCESS_KEY=aws-1", "HTTPS_PROXY=http://proxy:1", "NO_PROXY=localhost",
		"SSL_CERT_FILE=/etc/c.pem", "NODE_EXTRA_CA_CERTS=/etc/n.pem", "LANG=de_DE.UTF-8", "LC_ALL=C.UTF-8")
	if err := d.Start(); err != nil {
		t.Fatal(err)
	}
	a := d.Agent("a")
	env := strings.Split(call(t, a, "d__env", "{}").Text(), "\n")
	for _, want := range []string{"HTTPS_PROXY=http://proxy:1", "NO_PROXY=localhost", "SSL_CERT_FILE=/etc/c.pem", "NODE_EXTRA_CA_CERTS=/etc/n.pem", "LC_ALL=C.UTF-8"} {
		if !slices.Contains(env, want) {
			t.Errorf("the child lacks %s: %q", want, env)
		}
	}
	for _, line := range env {
		name, _, _ := strings.Cut(line, "=")
		switch name {
		case "GITHUB_TOKEN", "MCPHUBD_SECRET", "AWS_SECRET_ACCESS_KEY", "OTHER_SECRET", "MCPHUBD_CONFIG", "MCPHUBD_DATA":
			t.Errorf("the child has %s", line)
		}
	}
	for _, name := range []string{"PATH=", "HOME="} {
		if !slices.ContainsFunc(env, func(line string) bool { return strings.HasPrefix(line, name) }) {
			t.Errorf("the child lacks %s", name)
		}
	}
	for _, fd := range strings.Split(strings.TrimSpace(call(t, a, "d__fds", "{}").Text()), "\n") {
		n, to, _ := strings.Cut(fd, " ")
		if ours := strings.HasPrefix(to, "socket:") || strings.HasPrefix(to, "pipe:") || strings.HasPrefix(to, d.Data); ours && (len(n) > 1 || n > "2") {
			t.Errorf("the child inherited descriptor %s", fd)
		}
	}
}

// TestC109APathThatIsTooShortIsNamed, with the command and where it was looked for.
func TestC109APathThatIsTooShortIsNamed(t *testing.T) {
	t.Parallel()
	script := mcptest.NewServer(t, mcptest.Script{})
	conf := "[servers.x]\ncommand = \"npx-of-nvm\"\nenv = { X = \"1\" }\n" +
		"[servers.gone]\ncommand = \"sh\"\ncwd = \"/no/such/folder\"\n" +
		strings.Replace(script.TOML("d"), "env = {", "env = { KEPT = \"${HOME}|$5|~|$$\",", 1)
	d := mcptest.NewDaemon(t, conf)
	d.Env = append(d.Env, "PATH=/usr/bin:/bin")
	if err := d.Start(); err != nil {
		t.Fatal(err)
	}
	a := d.Agent("a")
	for tool, wants := range map[string][]string{"x__echo": {"npx-of-nvm", "PATH", "/usr/bin:/bin"}, "gone__echo": {"/no/such/folder"}} {
		r := call(t, a, tool, "{}")
		for _, want := range wants {
			if !strings.Contains(r.Text(), want) {
				t.Errorf("%s does not name %s: %s", tool, want, r.Text())
			}
		}
	}
	if env := call(t, a, "d__env", "{}").Text(); !strings.Contains(env, "KEPT="+d.Home+"|$5|~|$$\n") || !strings.Contains(env, "PATH=/usr/bin:/bin") {
		t.Errorf("the child has %s", env)
	}
}
