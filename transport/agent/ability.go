package agent

import (
	"fmt"

	"mcphubd/actors"
	"mcphubd/transport/wire"
)

// Requests that a server may make to the user behind a call.
const (
	elicit = "elicitation/create"
	sample = "sampling/createMessage"
	roots  = "roots/list"
)

// abilities is what a client said that it can be asked, out of its capabilities.
type abilities struct {
	elicitation, sampling, roots []byte // raw; nil = it cannot
}

func abilitiesOf(capabilities []byte) abilities {
	var a abilities
	if len(capabilities) <= len("{}") || capabilities[0] != '{' {
		return a
	}
	_ = wire.ScanObject(capabilities, func(key []byte, v wire.Span) bool {
		value := v.Of(capabilities)
		if !isObject(value) {
			return true
		}
		switch string(key) {
		case "elicitation":
			a.elicitation = value
		case "sampling":
			a.sampling = value
		case "roots":
			a.roots = value
		}
		return true
	})
	return a
}

func (a abilities) none() bool { return a.elicitation == nil && a.sampling == nil && a.roots == nil }

// clone is a with bytes of its own.
func (a abilities) clone() abilities { return abilitiesOf(a.json()) }

// json is a as an object of capabilities.
func (a abilities) json() []byte {
	b := []byte{'{'}
	for _, m := range []struct {
		name  string
		value []byte
	}{{"elicitation", a.elicitation}, {"sampling", a.sampling}, {"roots", a.roots}} {
		if m.value == nil {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(b, `"`+m.name+`":`...), m.value...)
	}
	return append(b, '}')
}

// check says why a question cannot be put to the agent, if it cannot.
func (a abilities) check(method string, params []byte) error {
	has := func(object []byte, name string) bool { return isObject(pickOne(object, name).Of(object)) }
	able := false
	switch method {
	case elicit:
		able = a.elicitation != nil
		if mode, _ := text(pickOne(params, "mode").Of(params)); able && mode == "url" {
			able = has(a.elicitation, "url")
		} else if able { // an empty object is how it was said before there were modes
			able = has(a.elicitation, "form") || !has(a.elicitation, "url")
		}
	case sample:
		able = a.sampling != nil && (!pickOne(params, "tools").OK() || has(a.sampling, "tools"))
	case roots:
		able = a.roots != nil
	}
	if !able {
		return fmt.Errorf("%w: it did not declare that it can answer this %s", actors.ErrCannot, method)
	}
	return nil
}
