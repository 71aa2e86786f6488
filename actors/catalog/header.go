package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// CheckHeaders refuses a tool that wants arguments in headers of HTTP in a way that
// 2026-07-28 does not allow: clients have to leave such a tool out. It matters only for
// servers of that revision at a URL.
func CheckHeaders(t Tool) error {
	if !bytes.Contains(t.Raw, []byte("x-mcp-header")) {
		return nil
	}
	var tool struct{ InputSchema headerSchema }
	if err := json.Unmarshal(t.Raw, &tool); err != nil {
		return fmt.Errorf("inputSchema with x-mcp-header: %w", err)
	}
	return tool.InputSchema.check("inputSchema", map[string]bool{})
}

// headerSchema is what matters of a schema here.
type headerSchema struct {
	Type       any                     `json:"type"`
	Header     json.RawMessage         `json:"x-mcp-header"`
	Properties map[string]headerSchema `json:"properties"`
}

// check looks through the properties of s; seen holds the headers so far.
func (s headerSchema) check(at string, seen map[string]bool) error {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p, at := s.Properties[name], at+"/properties/"+name
		if err := p.checkHeader(seen); err != nil {
			return fmt.Errorf("%s: x-mcp-header %.100s: %w", at, p.Header, err)
		}
		if err := p.check(at, seen); err != nil {
			return err
		}
	}
	return nil
}

func (s headerSchema) checkHeader(seen map[string]bool) error {
	var name string
	switch err := json.Unmarshal(s.Header, &name); {
	case s.Header == nil:
		return nil
	case s.Type != "string" && s.Type != "integer" && s.Type != "boolean":
		return errors.New("it may stand at a string, an integer or a boolean only")
	case err != nil || name == "":
		return errors.New("it is no name")
	case strings.ContainsFunc(name, func(c rune) bool {
		return c <= ' ' || c > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, c)
	}):
		return errors.New("it is no name for a header")
	case seen[strings.ToLower(name)]:
		return errors.New("another argument has it already")
	}
	seen[strings.ToLower(name)] = true
	return nil
}
