package catalog

import "slices"

// Scope is what one agent may see. A nil list means all, an empty one none. An
// entry may be a pattern: "*" stands for any characters, "?" for one.
type Scope struct {
	Servers []string
	Tools   []string // exposed names
}

// Sees reports whether what server exposes under a name is in scope: a tool, a
// prompt, or by its uri a resource, which goes with its server.
func (s Scope) Sees(server, exposed string) bool {
	if IsResourceURI(exposed) {
		return s.Touches(server)
	}
	return s.SeesServer(server) && matches(s.Tools, exposed)
}

// SeesServer reports whether anything of server can be in scope.
func (s Scope) SeesServer(server string) bool { return matches(s.Servers, server) }

// Allowed reports whether a server's filter lets its tool pass: deny wins, and an
// absent allow list allows all. Both hold patterns on the server's own names.
func Allowed(allow, deny []string, tool string) bool {
	return matches(allow, tool) && !(len(deny) > 0 && matches(deny, tool))
}

func matches(patterns []string, name string) bool {
	return patterns == nil || slices.ContainsFunc(patterns, func(p string) bool { return glob(p, name) })
}

// glob matches the whole name. Unlike path.Match it treats "/" as a character like
// others, since tool names may hold it, and knows no malformed pattern.
func glob(pattern, name string) bool {
	p, n := []rune(pattern), []rune(name)
	star, retry := -1, 0 // the last "*", and where its match ends so far
	i, j := 0, 0
	for j < len(n) {
		switch {
		case i < len(p) && p[i] == '*':
			star, retry = i, j
			i++
		case i < len(p) && (p[i] == '?' || p[i] == n[j]):
			i, j = i+1, j+1
		case star >= 0:
			retry++
			i, j = star+1, retry
		default:
			return false
		}
	}
	for i < len(p) && p[i] == '*' {
		i++
	}
	return i == len(p)
}
