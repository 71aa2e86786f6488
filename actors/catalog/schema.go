package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// checkSchema refuses what clients and model APIs are known to refuse together
// with the whole list: a schema that is not for objects, or one with a type that
// JSON Schema does not know. It is no validator.
func checkSchema(raw []byte) error {
	var schema any
	if err := json.Unmarshal(raw, &schema); err != nil {
		return err
	}
	top, ok := schema.(map[string]any)
	if !ok {
		return errors.New("it is not an object")
	}
	if top["type"] != "object" {
		return errors.New("its type is not object")
	}
	return checkTypes(top, "")
}

var typeNames = []string{"array", "boolean", "integer", "null", "number", "object", "string"}

// checkTypes looks through a schema and those in it; at is the path so far.
func checkTypes(schema any, at string) error {
	s, ok := schema.(map[string]any)
	if !ok {
		return nil // true and false are schemas; of the rest clients complain singly
	}
	if err := checkType(s["type"], at); err != nil {
		return err
	}
	for _, k := range []string{"properties", "patternProperties", "$defs", "definitions"} {
		if s[k] == nil {
			continue
		}
		in, ok := s[k].(map[string]any)
		if !ok {
			return fmt.Errorf("%s/%s is not an object", at, k)
		}
		for _, name := range slices.Sorted(maps.Keys(in)) {
			if err := checkTypes(in[name], at+"/"+k+"/"+name); err != nil {
				return err
			}
		}
	}
	for _, k := range []string{"items", "additionalProperties", "not", "anyOf", "oneOf", "allOf", "prefixItems"} {
		in, ok := s[k].([]any)
		if !ok {
			in = []any{s[k]}
		}
		for _, sub := range in {
			if err := checkTypes(sub, at+"/"+k); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkType(v any, at string) error {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	for _, v := range list {
		if v == nil && !ok {
			return nil
		}
		if name, isText := v.(string); !isText || !slices.Contains(typeNames, name) {
			return fmt.Errorf("%s/type is %v, which JSON Schema does not know", at, v)
		}
	}
	return nil
}
