package npm

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"mcphubd/test/mcptest"
)

// A witness stands between a client and the daemon and notes which methods the
// client sent, so that a test can tell which era it really spoke.
type witness struct {
	url string

	mu      sync.Mutex
	methods []string
}

func watch(t *testing.T, d *mcptest.Daemon) *witness {
	t.Helper()
	w := &witness{}
	to := &url.URL{Scheme: "http", Host: d.Addr()}
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		w.note(body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(rw, r)
	}))
	t.Cleanup(s.Close)
	w.url = s.URL + "/mcp/inspector"
	return w
}

func (w *witness) note(body []byte) {
	var m struct{ Method string }
	if json.Unmarshal(body, &m) == nil && m.Method != "" {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.methods = append(w.methods, m.Method)
	}
}

func (w *witness) saw(method string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Contains(w.methods, method)
}

// inspect runs the Inspector's command line and returns what it printed.
func inspect(t *testing.T, npm, url, era string, args ...string) []byte {
	t.Helper()
	args = append([]string{script(npm, "@modelcontextprotocol/inspector/clients/launcher/build/index.js"),
		"--cli", url, "--transport", "http", "--protocol-era", era}, args...)
	cmd := exec.CommandContext(t.Context(), node(npm), args...)
	home := t.TempDir()
	cmd.Env = append(cmd.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("inspector %q: %v\n%s", args[1:], err, stderr.Bytes())
	}
	return out
}

func TestTheInspectorListsAndCallsInBothEras(t *testing.T) {
	npm := need(t)
	files := folder(t)
	command := filesystem(npm, files)
	d := mcptest.StartReady(t, table("fs", command))
	server := dial(t, command)
	for era, handshake := range map[string]bool{"legacy": true, "modern": false} {
		t.Run(era, func(t *testing.T) {
			w := watch(t, d)
			if got, want := names(t, inspect(t, npm, w.url, era, "--method", "tools/list")), listed(t, d); !slices.Equal(got, want) {
				t.Errorf("it lists %q, not %q", got, want)
			}
			read := func(name string) []byte {
				return inspect(t, npm, w.url, era, "--method", "tools/call", "--tool-name", "fs__read_text_file",
					"--tool-arg", "path="+filepath.Join(files, name))
			}
			want := server.call("read_text_file", map[string]any{"path": filepath.Join(files, "small.txt")})
			if got := mcptest.Text(read("small.txt")); got == "" || got != mcptest.Text(want) {
				t.Errorf("a small file reads %q, not %q", got, mcptest.Text(want))
			}
			r, ok := mcptest.ReceiptOf(read("big.txt"))
			if !ok {
				t.Fatal("a large file gives no receipt")
			}
			page := inspect(t, npm, w.url, era, "--method", "tools/call", "--tool-name", mcptest.GetTool,
				"--tool-arg", "callId="+r.CallID, "--tool-arg", "cursor=0")
			var p mcptest.Page
			if err := json.Unmarshal([]byte(mcptest.Text(page)), &p); err != nil || p.Status != "ok" || p.TotalBytes != r.OriginalBytes {
				t.Errorf("the first page: %v: %.300s", err, page)
			}
			if w.saw("initialize") != handshake || w.saw("server/discover") == handshake {
				t.Errorf("as %s it sent %q", era, w.methods)
			}
		})
	}
}

// names are the sorted names in a tools/list result.
func names(t *testing.T, result []byte) (all []string) {
	t.Helper()
	var v struct{ Tools []struct{ Name string } }
	if err := json.Unmarshal(result, &v); err != nil || len(v.Tools) == 0 {
		t.Fatalf("a tool list: %v: %.300s", err, result)
	}
	for _, tool := range v.Tools {
		all = append(all, tool.Name)
	}
	slices.Sort(all)
	return all
}

// listed are the names that a raw agent sees.
func listed(t *testing.T, d *mcptest.Daemon) []string {
	t.Helper()
	r, err := d.Agent("inspector").RPC(t.Context(), "tools/list", "{}")
	if err != nil {
		t.Fatal(err)
	}
	return names(t, r.Result())
}
