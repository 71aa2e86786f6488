package npm

import (
	"bytes"
	"path/filepath"
	"slices"
	"testing"

	"mcphubd/test/mcptest"
)

// mcp-remote is the stdio end that many clients have configured for servers at a url.
func TestMcpRemoteIsAClientLikeAnyOther(t *testing.T) {
	npm := need(t)
	files := folder(t)
	command := filesystem(npm, files)
	server := dial(t, command)
	d := mcptest.StartReady(t, table("fs", command))
	agent := dial(t, with("MCP_REMOTE_CONFIG_DIR="+t.TempDir(), node(npm), script(npm, "mcp-remote/dist/proxy.js"), d.URL("remote")))
	if got, want := names(t, agent.request("tools/list", "{}")), listed(t, d); !slices.Equal(got, want) {
		t.Errorf("it lists %q, not %q", got, want)
	}
	small := map[string]any{"path": filepath.Join(files, "small.txt")}
	if got, want := agent.call("fs__read_text_file", small), server.call("read_text_file", small); !mcptest.SameButWhiteSpace(got, want) {
		t.Errorf("a small file reads %.500s, not %.500s", got, want)
	}
	big := map[string]any{"path": filepath.Join(files, "big.txt")}
	r, ok := mcptest.ReceiptOf(agent.call("fs__read_text_file", big))
	if !ok {
		t.Fatal("a large file gives no receipt")
	}
	got, err := d.Agent("another").ReadBack(t.Context(), r.CallID)
	if err != nil {
		t.Fatal(err)
	}
	if want := server.call("read_text_file", big); !bytes.Equal(got, want) {
		t.Errorf("%d bytes came back, and they are not the %d that the server wrote", len(got), len(want))
	}
}
