package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"mcphubd/config"
)

func TestWhereTheConfigurationIsLookedFor(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []struct {
		what, flag string
		vars       map[string]string
		path       string
		named      bool
		data       string
	}{
		{"nothing set", "", nil, "/home/me/.config/mcphubd/config.toml", false, "/home/me/.local/share/mcphubd"},
		{"XDG", "", map[string]string{"XDG_CONFIG_HOME": "/c", "XDG_DATA_HOME": "/d"}, "/c/mcphubd/config.toml", false, "/d/mcphubd"},
		{"relative XDG is void", "", map[string]string{"XDG_CONFIG_HOME": "c", "XDG_DATA_HOME": "d"}, "/home/me/.config/mcphubd/config.toml", false, "/home/me/.local/share/mcphubd"},
		{"variable", "", map[string]string{"MCPHUBD_CONFIG": "/x", "MCPHUBD_DATA": "/x", "XDG_CONFIG_HOME": "/c"}, "/x", true, "/x"},
		{"flag", "/f", map[string]string{"MCPHUBD_CONFIG": "/x", "MCPHUBD_DATA": "/x"}, "/f", true, "/f"},
		{"flag with ~", "~/f", nil, "/home/me/f", true, "/home/me/f"},
		{"relative flag", "f", nil, filepath.Join(here, "f"), true, filepath.Join(here, "f")},
	} {
		path, named, err := config.Path(v.flag, world(v.vars, nil))
		if err != nil || path != v.path || named != v.named {
			t.Errorf("%s: config is %s, %v, %v", v.what, path, named, err)
		}
		if data, err := config.DataDir(v.flag, world(v.vars, nil)); err != nil || data != v.data {
			t.Errorf("%s: data is %s, %v", v.what, data, err)
		}
	}
	if _, _, err := config.Path("", config.Env{}); err == nil {
		t.Error("no home directory, and no error")
	}
}

func TestLoadReadsTheNamedFileAndNeverTheWorkingDirectory(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("MCPHUBD_CONFIG", "")
	t.Chdir(dir)
	file := filepath.Join(dir, "config.toml")
	if err := os.WriteFile(file, []byte("verbatim = true\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	c, err := config.Load("")
	if err != nil || c.Verbatim || c.File != "" {
		t.Errorf("no file anywhere: %+v, %v", c, err)
	}
	c, err = config.Load(file)
	if err != nil || !c.Verbatim || c.File != file || c.Sources["verbatim"] != file+":1" {
		t.Errorf("named by flag: %+v, %v", c, err)
	}
	t.Setenv("MCPHUBD_CONFIG", file)
	if c, err = config.Load(""); err != nil || !c.Verbatim {
		t.Errorf("named by variable: %+v, %v", c, err)
	}
}

func TestANamedFileThatIsMissingIsAnError(t *testing.T) {
	for _, path := range []string{filepath.Join(t.TempDir(), "gone.toml"), t.TempDir()} {
		_, err := config.Load(path)
		var invalid *config.Error
		if !errors.As(err, &invalid) || invalid.Problems[0].File != path {
			t.Errorf("got %v", err)
		}
	}
}
