package actors

import (
	"reflect"
	"testing"
	"time"

	"mcphubd/config"
)

// TestOnlyWhatAProcessIsMadeOfRestartsIt goes through all settings of a server, so that
// a new one has to be decided upon.
func TestOnlyWhatAProcessIsMadeOfRestartsIt(t *testing.T) {
	size := config.KB
	restarts := map[string]bool{"Name": true, "Command": true, "Args": true, "Env": true, "Cwd": true, "URL": true, "Transport": true,
		"Headers": true, "OAuth": true, "Isolation": true, "Era": true, "Enabled": true, "Secrets": true,
		"Store": false, "ResponseBudget": false, "CallTimeout": false, "IdleTimeout": false, "ConnectTimeout": false, "Tools": false, "Tool": false}
	values := []any{"x", []string{"x"}, map[string]string{"x": "y"}, true, &size, time.Second,
		config.ToolFilter{Deny: []string{"x"}}, config.OAuth{Grant: "/x"}, map[string]config.Tool{"x": {}}}
	for i := range reflect.TypeFor[config.Server]().NumField() {
		f := reflect.TypeFor[config.Server]().Field(i)
		restart, decided := restarts[f.Name]
		var s config.Server
		for _, v := range values {
			if reflect.TypeOf(v) == f.Type {
				reflect.ValueOf(&s).Elem().Field(i).Set(reflect.ValueOf(v))
			}
		}
		old := &config.Config{Servers: map[string]config.Server{"s": {}, "gone": {}}}
		now := &config.Config{Servers: map[string]config.Server{"s": s, "new": {}}}
		want := Changes{Added: []string{"new"}, Removed: []string{"gone"}}
		if restart {
			want.Changed = []string{"s"}
		} else {
			want.Altered = []string{"s"}
		}
		if got := diff(old, now); !decided || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v (decided: %v)", f.Name, got, want, decided)
		}
	}
}
