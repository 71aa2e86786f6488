package config

import (
	"regexp"
	"strings"
)

const (
	maxServerName = 40 // leaves room for a tool's name within 64 characters
	maxAgentName  = 64
)

var (
	serverName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]*$`)
	notInName  = regexp.MustCompile(`[^A-Za-z0-9_-]+`)
	underlines = regexp.MustCompile(`_{2,}`)
)

// ValidServerName reports whether tools of a server can be exposed under name.
func ValidServerName(name string) bool { return serverNameFault(name) == "" }

// ValidAgentName reports whether name can stand in the path /mcp/NAME.
func ValidAgentName(name string) bool { return agentNameFault(name) == "" }

// serverNameFault says why name cannot be a server's, or "". A tool is exposed
// as server__tool: with no __ in the server and no _ at its end, the first __
// always ends the server's name, so that no two pairs of server and tool ever
// look the same and no server can pose as another.
func serverNameFault(name string) string {
	switch {
	case len(name) > maxServerName:
		return "a server name has at most 40 characters"
	case !serverName.MatchString(name):
		return "a server name is letters, digits, _ and -, and begins with a letter or digit"
	case strings.Contains(name, "__"), strings.HasSuffix(name, "_"):
		return "tools are exposed as server__tool, so a server name has no __ in it and no _ at its end"
	case strings.EqualFold(name, "mcphub"):
		return "this name belongs to the gateway's own tools"
	}
	return ""
}

func agentNameFault(name string) string {
	switch {
	case len(name) > maxAgentName:
		return "an agent name has at most 64 characters"
	case !isAgentName(name):
		return "an agent name is letters, digits, ., _ and -, and begins with a letter or digit"
	}
	return ""
}

// isAgentName is written out, because every request of an agent asks.
func isAgentName(name string) bool {
	for i, c := range []byte(name) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case i > 0 && (c == '.' || c == '_' || c == '-'):
		default:
			return false
		}
	}
	return name != ""
}

// LegalServerName is the legal name of a server that resembles name most, or "".
func LegalServerName(name string) string {
	if ValidServerName(name) {
		return name
	}
	return legalName(name)
}

// legalName is the legal name that resembles name most, or "".
func legalName(name string) string {
	name = notInName.ReplaceAllString(name, "-")
	name = underlines.ReplaceAllString(name, "_")
	if len(name) > maxServerName {
		name = name[:maxServerName]
	}
	name = strings.Trim(name, "-_")
	if !ValidServerName(name) {
		return ""
	}
	return name
}
