package downstream

import (
	"os"
	"slices"
	"strings"

	"mcphubd/config"
)

// passed are the variables of the daemon that a child inherits: where things are,
// how to show text, and how to reach the network. Everything else must be configured.
var passed = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "LANG", "TZ", "TERM",
	"XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_DIRS", "XDG_DATA_DIRS",
	"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
}

// environ is the environment of a child: a small base and what is configured, which wins.
func environ(set map[string]string) []string {
	env := []string{}
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if _, ours := set[name]; !ours && (slices.Contains(passed, name) || strings.HasPrefix(name, "LC_")) {
			env = append(env, kv)
		}
	}
	for name, value := range set {
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	return env
}

// lookup returns the value of name in env.
func lookup(env []string, name string) string {
	for _, kv := range env {
		if k, v, _ := strings.Cut(kv, "="); k == name {
			return v
		}
	}
	return ""
}

// masker hides configured values in text that leaves the daemon.
type masker struct {
	secrets []string        // longest first
	more    func() []string // those that come and go; may be nil
}

// minSecret is the shortest value worth hiding: shorter ones are switches and numbers.
const minSecret = 6

// maskerOf hides what is configured for a server and belongs in no text about it.
func maskerOf(s config.Server) masker {
	m := newMasker(s.Env, s.Headers)
	m.secrets = append(m.secrets, s.Secrets...)
	slices.SortFunc(m.secrets, func(a, b string) int { return len(b) - len(a) })
	return m
}

func newMasker(sets ...map[string]string) masker {
	var m masker
	for _, set := range sets {
		for _, value := range set {
			m.secrets = append(m.secrets, value)
			m.secrets = append(m.secrets, strings.FieldsFunc(value, func(r rune) bool { return r == '\n' || r == '\r' })...)
			if _, token, ok := strings.Cut(value, " "); ok { // "Bearer x"
				m.secrets = append(m.secrets, token)
			}
		}
	}
	m.secrets = slices.DeleteFunc(m.secrets, func(s string) bool { return len(s) < minSecret })
	slices.SortFunc(m.secrets, func(a, b string) int { return len(b) - len(a) })
	return m
}

func (m masker) mask(s string) string {
	for _, secret := range m.secrets {
		s = strings.ReplaceAll(s, secret, "***")
	}
	if m.more != nil {
		s = config.Mask(s, m.more())
	}
	return s
}

func (m masker) longest() int {
	if len(m.secrets) == 0 {
		return 0
	}
	return len(m.secrets[0])
}
