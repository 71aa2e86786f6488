package config_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"mcphubd/config"
)

// The five secrets of case C44, and three more ways in.
const withSecrets = `
[servers.child]
command = "npx"
args = ["-e", "KEY=sk-test-BBBB", "--api-key", "sk-test-FFFF", "-H", "Authorization: Bearer sk-test-GGGG"]
env = { TOKEN = "sk-test-AAAA", DSN = "postgres://u:sk-test-HHHH@db/x", LEVEL = "warn" }

[servers.remote]
url = "https://u:sk-test-DDDD@h/p?api_key=sk-test-EEEE"
headers = { Authorization = "Bearer sk-test-CCCC" }

[servers.other]
command = "${file:/etc/secret}"

[agents.a]
token = "sk-test-IIII"
`

func TestC44NoSecretIsShown(t *testing.T) {
	env := world(nil, map[string]string{"/etc/secret": "sk-test-JJJJ\n"})
	c, err := config.Parse("c.toml", []byte(withSecrets), env)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := config.Write(&text, c.Settings(), true); err != nil {
		t.Fatal(err)
	}
	tree, err := json.Marshal(config.Tree(c.Settings()))
	if err != nil {
		t.Fatal(err)
	}
	for _, shown := range []string{text.String(), string(tree)} {
		if strings.Contains(shown, "sk-test") {
			t.Errorf("shown:\n%s", shown)
		}
		for _, name := range []string{"TOKEN", "LEVEL", "Authorization", "token"} {
			if !strings.Contains(shown, name) {
				t.Errorf("the name %s is not shown:\n%s", name, shown)
			}
		}
	}
}

func TestC44MaskHidesEverySecretInAnyText(t *testing.T) {
	env := world(nil, map[string]string{"/etc/secret": "sk-test-JJJJ\n"})
	c, err := config.Parse("c.toml", []byte(withSecrets), env)
	if err != nil {
		t.Fatal(err)
	}
	masked := config.Mask(withSecrets+" sk-test-JJJJ", c.Secrets())
	if strings.Contains(masked, "sk-test") {
		t.Errorf("left over:\n%s", masked)
	}
	if !strings.Contains(masked, `LEVEL = "warn"`) {
		t.Errorf("hides what is no secret:\n%s", masked)
	}
}

func TestMessagesHoldNoSecret(t *testing.T) {
	for _, text := range []string{
		"[agents.a]\ntoken = sk-test-AAAA\n",
		"[agents.a]\ntoken = \"sk-test-AAAA\n",
		"[agents.a]\ntoken = \"sk-test-AAAA\" sk-test-BBBB\n",
		"[agents.a]\ntoken = ['sk-test-AAAA']\n",
		"[agents.a]\ntoken = 'sk-test AAAA'\n",
		"[servers.a]\nurl = 'ftp://u:sk-test-AAAA@h'\n",
		"[servers.a]\nurl = 'http://h/%zzsk-test-AAAA'\nheaders = { 'X Y' = 'sk-test-BBBB' }\n",
		"[servers.a]\ncommand = 'x'\nenv = { TOKEN = ['sk-test-AAAA'] }\n",
		"[servers.a]\ncommand = 'x'\nenv = { TOKEN = \"\\qsk-test-AAAA\" }\n",
		"[servers.a]\ncommand = 'x'\nenv = { TOKEN = '${X-sk-test-AAAA}' }\n",
		"[servers.a]\ncommand = 'x'\ncall_timeout = '${file:~/.config/mcphubd/codex.token}'\n",
		"response_budget = '${DOCS_TOKEN}'\n",
		"output_schema = '${DOCS_TOKEN}'\n",
		"listen = '${DOCS_TOKEN}'\n",
		"listen = '${DOCS_TOKEN}:1'\n",
		"[servers.a]\ncommand='a'\n[agents.a]\nservers = ['${DOCS_TOKEN}']\n",
		"[servers.a]\ncommand='a'\ntools.allow = ['[${DOCS_TOKEN}']\n",
	} {
		_, err := config.Parse("c.toml", []byte(text), testWorld())
		var invalid *config.Error
		if !errors.As(err, &invalid) {
			t.Errorf("%q: %v", text, err)
		} else if strings.Contains(err.Error(), "sk-test") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
