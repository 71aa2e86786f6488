package catalog

import (
	"strings"
	"testing"
)

func TestToolsWithBadHeadersAreLeftOutOneByOne(t *testing.T) {
	with := func(properties string) string {
		return `{"name":"t","inputSchema":{"type":"object","properties":{` + properties + `}}}`
	}
	for properties, reason := range map[string]string{
		`"a":{"type":"string","x-mcp-header":"Region"}`:                                                                          "",
		`"a":{"type":"integer","x-mcp-header":"A"},"b":{"type":"boolean","x-mcp-header":"B"}`:                                    "",
		`"a":{"type":"string","description":"x-mcp-header"}`:                                                                     "",
		`"a":{"type":"object","properties":{"b":{"type":"string","x-mcp-header":"A"}}}`:                                          "",
		`"a":{"type":"string","x-mcp-header":""}`:                                                                                "properties/a: x-mcp-header \"\": it is no name",
		`"a":{"type":"string","x-mcp-header":null}`:                                                                              "it is no name",
		`"a":{"type":"string","x-mcp-header":7}`:                                                                                 "it is no name",
		`"a":{"type":"number","x-mcp-header":"A"}`:                                                                               "a string, an integer or a boolean only",
		`"a":{"type":"array","x-mcp-header":"A"}`:                                                                                "a string, an integer or a boolean only",
		`"a":{"type":["string","null"],"x-mcp-header":"A"}`:                                                                      "a string, an integer or a boolean only",
		`"a":{"x-mcp-header":"A"}`:                                                                                               "a string, an integer or a boolean only",
		`"a":{"type":"string","x-mcp-header":"A B"}`:                                                                             "no name for a header",
		`"a":{"type":"string","x-mcp-header":"A:"}`:                                                                              "no name for a header",
		`"a":{"type":"string","x-mcp-header":"\u00e4"}`:                                                                          "no name for a header",
		`"a":{"type":"string","x-mcp-header":"A\n"}`:                                                                             "no name for a header",
		`"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}`:                                      "properties/b: x-mcp-header \"a\": another argument has it",
		`"a":{"type":"object","properties":{"b":{"type":"string","x-mcp-header":"A,"}}}`:                                         "properties/a/properties/b: ",
		`"a":{"type":"string","x-mcp-header":"A"},"o":{"type":"object","properties":{"b":{"type":"string","x-mcp-header":"A"}}}`: "another argument has it",
	} {
		pages := [][]byte{page(entry("before", ""), with(properties), entry("behind", ""))}
		tools, bad := ParseTools(pages, CheckHeaders)
		switch {
		case reason == "" && (len(tools) != 3 || len(bad) > 0):
			t.Errorf("%s: %v", properties, bad)
		case reason != "" && (len(tools) != 2 || len(bad) != 1 || bad[0].Name != "t" || bad[0].Index != 1 || !strings.Contains(bad[0].Reason, reason)):
			t.Errorf("%s: %d tools, %v", properties, len(tools), bad)
		}
		if tools, bad := ParseTools(pages); len(tools) != 3 || len(bad) > 0 {
			t.Errorf("where it does not matter, %s: %v", properties, bad)
		}
	}
}
