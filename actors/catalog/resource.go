package catalog

import (
	"bytes"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Resource is one entry of a server's resources/list.
type Resource struct{ listed }

// URI is the server's own uri of the resource.
func (r Resource) URI() string { return r.Key }

// Template is one entry of a server's resources/templates/list.
type Template struct {
	listed
	match *regexp.Regexp
}

// URI is the server's own uriTemplate.
func (t Template) URI() string { return t.Key }

// Matches reports whether uri can be an expansion of the template.
func (t Template) Matches(uri string) bool { return t.match != nil && t.match.MatchString(uri) }

// ParseResources reads the results of resources/list, page by page.
func ParseResources(pages [][]byte) (resources []Resource, bad []Bad) {
	all, bad := parseEntries(pages, "resources", "uri")
	for _, e := range all {
		resources = append(resources, Resource{e})
	}
	return resources, bad
}

// ParseTemplates reads the results of resources/templates/list, page by page.
func ParseTemplates(pages [][]byte) (templates []Template, bad []Bad) {
	all, bad := parseEntries(pages, "resourceTemplates", "uriTemplate")
	for _, e := range all {
		templates = append(templates, Template{e, pattern(e.Key)})
	}
	return templates, bad
}

// scheme is what the gateway's own URIs begin with.
const scheme = "mcphub://"

// ResourceURI is the uri under which agents see a server's resource or template:
// mcphub://SERVER/ and then the server's own uri as it is. So it is stable, cannot
// collide, says where it leads, and a template stays one, since its expressions
// are untouched and expand to the same characters.
func ResourceURI(server, uri string) string { return scheme + server + "/" + uri }

// SplitURI takes a uri made by ResourceURI apart.
func SplitURI(exposed string) (server, uri string, ok bool) {
	rest, ok := strings.CutPrefix(exposed, scheme)
	if !ok {
		return "", "", false
	}
	server, uri, ok = strings.Cut(rest, "/")
	return server, uri, ok && server != "" && uri != ""
}

// IsResourceURI reports whether name is a uri of ours and no tool's name.
func IsResourceURI(name string) bool { return strings.HasPrefix(name, scheme) }

// Offer is the resources of one server.
type Offer struct {
	Resources []Resource
	Templates []Template
}

// Empty reports whether nothing is offered.
func (o *Offer) Empty() bool { return o == nil || len(o.Resources)+len(o.Templates) == 0 }

// Same reports whether both offer the same, to the byte.
func (o *Offer) Same(p *Offer) bool {
	if o.Empty() || p.Empty() {
		return o.Empty() && p.Empty()
	}
	return slices.EqualFunc(o.Resources, p.Resources, func(x, y Resource) bool { return bytes.Equal(x.Raw, y.Raw) }) &&
		slices.EqualFunc(o.Templates, p.Templates, func(x, y Template) bool { return bytes.Equal(x.Raw, y.Raw) })
}

// Has reports whether the server listed uri, or a template that uri can come from.
func (o *Offer) Has(uri string) bool {
	return slices.ContainsFunc(o.Resources, func(r Resource) bool { return r.Key == uri }) ||
		slices.ContainsFunc(o.Templates, func(t Template) bool { return t.Key == uri || t.Matches(uri) })
}

// Resources is the resources and templates of all servers. It never changes.
type Resources struct{ servers map[string]*Offer }

// BuildResources takes what servers offer.
func BuildResources(servers map[string]*Offer) *Resources { return &Resources{servers} }

// Owners returns the servers that scope sees and that offer a resource under its
// own uri. A server that listed the very uri wins over those with a template.
func (c *Resources) Owners(scope Scope, uri string) (servers []string) {
	if c == nil {
		return nil
	}
	var by []string
	for _, n := range slices.Sorted(maps.Keys(c.servers)) {
		o := c.servers[n]
		if !scope.Touches(n) || !o.Has(uri) {
			continue
		}
		by = append(by, n)
		if slices.ContainsFunc(o.Resources, func(r Resource) bool { return r.Key == uri }) {
			servers = append(servers, n)
		}
	}
	if len(servers) > 0 {
		return servers
	}
	return by
}

// List returns the JSON array of the resources that scope sees, by server and then
// in the server's order, followed by own. An entry is as its server wrote it but
// for the uri.
func (c *Resources) List(scope Scope, own [][]byte) []byte {
	b := []byte{'['}
	c.each(scope, func(server string, o *Offer) {
		for _, r := range o.Resources {
			b = append(r.appendAs(b, quote(ResourceURI(server, r.Key))), ',')
		}
	})
	for _, o := range own {
		b = append(append(b, o...), ',')
	}
	return closeList(b)
}

// Templates returns the JSON array of the templates that scope sees.
func (c *Resources) Templates(scope Scope) []byte {
	b := []byte{'['}
	c.each(scope, func(server string, o *Offer) {
		for _, t := range o.Templates {
			b = append(t.appendAs(b, quote(ResourceURI(server, t.Key))), ',')
		}
	})
	return closeList(b)
}

// ListOf returns the JSON arrays of one server, as it wrote them.
func (c *Resources) ListOf(server string) (resources, templates []byte) {
	resources, templates = []byte{'['}, []byte{'['}
	if c != nil && c.servers[server] != nil {
		for _, r := range c.servers[server].Resources {
			resources = append(append(resources, r.Raw...), ',')
		}
		for _, t := range c.servers[server].Templates {
			templates = append(append(templates, t.Raw...), ',')
		}
	}
	return closeList(resources), closeList(templates)
}

func (c *Resources) each(scope Scope, f func(server string, o *Offer)) {
	if c == nil {
		return
	}
	for _, n := range slices.Sorted(maps.Keys(c.servers)) {
		if scope.Touches(n) {
			f(n, c.servers[n])
		}
	}
}

// expression is one {…} of a URI template (RFC 6570).
var expression = regexp.MustCompile(`\{([+#./;?&]?)([^{}]*)\}`)

// pattern is a regular expression for what a template can expand to; nil when that
// is no template at all. It is generous: what it lets through is for the server to
// judge.
func pattern(template string) *regexp.Regexp {
	var b strings.Builder
	b.WriteString(`\A(?s:`)
	at, found := 0, false
	for _, m := range expression.FindAllStringSubmatchIndex(template, -1) {
		b.WriteString(regexp.QuoteMeta(template[at:m[0]]))
		at, found = m[1], true
		switch template[m[2]:m[3]] {
		case "":
			b.WriteString(`[^/?#]*`)
		case "+", "#":
			b.WriteString(`.*`)
		case "?":
			b.WriteString(`(?:\?[^#]*)?`)
		case "/":
			b.WriteString(`(?:/[^?#]*)?`)
		default:
			b.WriteString(`[^/?#]*`)
		}
	}
	b.WriteString(regexp.QuoteMeta(template[at:]) + `)\z`)
	re, err := regexp.Compile(b.String())
	if err != nil || !found {
		return nil
	}
	return re
}
