package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// MaxName is how long a name may be: model APIs refuse more.
const MaxName = 64

// plainName returns server__tool with what may not stand in a name as "_", and
// whether that is the exposed name as it is. It is not when anything had to be
// changed, and not when a reader could take another pair for it: no two pairs
// have the same plain name that is exposed as it is.
func plainName(server, tool string, longest int) (name string, asIs bool) {
	name = mapped(server) + "__" + mapped(tool)
	asIs = name == server+"__"+tool && len(name) <= longest && server != "" && tool != "" &&
		!strings.Contains(server, "__") && !strings.HasSuffix(server, "_") && !Reserved(name)
	return name, asIs
}

// hashedName shortens name and tells it from others by digits hex digits that
// depend on server and tool alone.
func hashedName(name, server, tool string, digits, longest int) string {
	sum := sha256.Sum256([]byte(server + "\x00" + tool))
	return name[:min(len(name), longest-1-digits)] + "_" + hex.EncodeToString(sum[:])[:digits]
}

// A naming is the name of one thing of a server.
type naming struct {
	name  string
	asIs  bool // it shows both names as they are
	short bool // it lacks part of them
}

// nameAll gives n things their names of at most longest bytes, and finds them by these:
// first those that keep their plain one, then the others, with more digits where a
// shorter name is taken. of tells whose the i-th is, and what it is called there.
func nameAll(n, longest int, of func(i int) (server, own string)) (names []naming, byName map[string]int) {
	names, byName = make([]naming, n), make(map[string]int, n)
	for i := range names {
		server, own := of(i)
		if name, ok := plainName(server, own, longest); ok {
			names[i] = naming{name: name, asIs: true}
			byName[name] = i
		}
	}
	for i := range names {
		if names[i].asIs {
			continue
		}
		server, own := of(i)
		plain, _ := plainName(server, own, longest)
		name, taken := "", true
		for digits := 8; taken || Reserved(name); digits++ {
			name = hashedName(plain, server, own, digits, longest)
			_, taken = byName[name]
		}
		names[i] = naming{name: name, short: len(plain) > longest-9}
		byName[name] = i
	}
	return names, byName
}

// CanBe reports whether a name of at most longest bytes can be that of a tool of server:
// it begins with server__, or with as much of it as digits leave room for.
func CanBe(name, server string, longest int) bool {
	prefix := mapped(server) + "__"
	if strings.HasPrefix(name, prefix) {
		return true
	}
	cut := strings.LastIndexByte(name, '_')
	return cut >= 0 && len(name) == longest && longest-1-cut >= 8 && strings.HasPrefix(prefix, name[:cut])
}

func mapped(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, s)
}
