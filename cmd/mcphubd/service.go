package main

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/pmezard/go-difflib/difflib"
)

type serviceCmd struct {
	Print     servicePrintCmd     `cmd:"" help:"Print the unit of the service manager, as install would write it."`
	Install   serviceInstallCmd   `cmd:"" help:"Write the unit into your home folder. Nothing is started."`
	Uninstall serviceUninstallCmd `cmd:"" help:"Remove the unit."`
}

func (serviceCmd) Help() string {
	return `Has the service manager of your session run the daemon: systemd or launchd, never as root.
It is not needed: mcphubd connect starts a daemon when none runs.`
}

// manager is whose unit it is.
type manager struct {
	Manager string `enum:"systemd,launchd,here" default:"here" help:"Whose unit: systemd or launchd; else that of this system."`
}

type (
	servicePrintCmd   struct{ manager }
	serviceInstallCmd struct {
		manager
		DryRun bool `help:"Only show what would change."`
	}
	serviceUninstallCmd struct{ manager }
)

// unit is a file of a service manager, and how it is made to work.
type unit struct {
	path    string // below the home folder
	text    []byte
	enable  []string // commands to give after install
	disable []string // before uninstall
}

const (
	systemdName = "mcphubd.service"
	launchdName = "local.mcphubd"
)

// unitOf is the unit for this program, with the configuration and the data that the
// flags lead to.
func (m manager) unitOf(a *app) (*unit, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args := []string{self, "serve"}
	for _, flag := range []struct{ name, value, variable string }{{"--config", a.ConfigFile, "MCPHUBD_CONFIG"}, {"--data", a.DataDir, "MCPHUBD_DATA"}} {
		value := cmp.Or(flag.value, os.Getenv(flag.variable))
		if value == "" {
			continue // where it is when nobody says otherwise
		}
		path, err := filepath.Abs(value)
		if err != nil {
			return nil, err
		}
		args = append(args, flag.name, path)
	}
	path := os.Getenv("PATH") // so that npx and the like are found
	if m.Manager == "launchd" || m.Manager == "here" && runtime.GOOS == "darwin" {
		return launchdUnit(args, path), nil
	}
	return systemdUnit(args, path)
}

func systemdUnit(args []string, path string) (*unit, error) {
	dir := os.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) {
		dir = ".config"
	}
	quoted := make([]string, len(args))
	for i, arg := range args {
		if strings.ContainsAny(arg, "\n\x00") {
			return nil, fmt.Errorf("%q cannot stand in a unit", arg)
		}
		quoted[i] = systemdQuote(arg)
		if i > 0 { // in the program's own path no variable is expanded
			quoted[i] = strings.ReplaceAll(quoted[i], "$", "$$")
		}
	}
	text := `# Written by mcphubd service install.
[Unit]
Description=MCP gateway of this user (mcphubd)

[Service]
Type=notify
ExecStart=` + strings.Join(quoted, " ") + `
ExecReload=kill -HUP $MAINPID
Environment=` + systemdQuote("PATH="+path) + `
Restart=on-failure
RestartSec=1
WatchdogSec=60
TimeoutStopSec=15
KillMode=mixed
UMask=0077

[Install]
WantedBy=default.target
`
	return &unit{
		path: filepath.Join(dir, "systemd", "user", systemdName), text: []byte(text),
		enable: []string{"systemctl --user daemon-reload", "systemctl --user enable --now " + systemdName,
			"loginctl enable-linger   # only if it is to run while you are not logged in"},
		disable: []string{"systemctl --user disable --now " + systemdName, "systemctl --user daemon-reload"},
	}, nil
}

// systemdQuote is a word as systemd reads it: quoted, with escapes and specifiers taken
// literally.
func systemdQuote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, `%`, `%%`).Replace(s) + `"`
}

func launchdUnit(args []string, path string) *unit {
	var list strings.Builder
	for _, arg := range args {
		list.WriteString("\n\t\t<string>" + xmlText(arg) + "</string>")
	}
	text := `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<!-- Written by mcphubd service install. -->
<plist version="1.0">
<dict>
	<key>Label</key>
	<string>` + launchdName + `</string>
	<key>ProgramArguments</key>
	<array>` + list.String() + `
	</array>
	<key>EnvironmentVariables</key>
	<dict>
		<key>PATH</key>
		<string>` + xmlText(path) + `</string>
	</dict>
	<key>RunAtLoad</key>
	<true/>
	<key>KeepAlive</key>
	<dict>
		<key>SuccessfulExit</key>
		<false/>
	</dict>
	<key>ExitTimeOut</key>
	<integer>15</integer>
	<key>Umask</key>
	<integer>63</integer>
</dict>
</plist>
`
	file := filepath.Join("Library", "LaunchAgents", launchdName+".plist")
	return &unit{path: file, text: []byte(text),
		enable:  []string{"launchctl bootstrap gui/$(id -u) ~/" + file},
		disable: []string{"launchctl bootout gui/$(id -u)/" + launchdName}}
}

func xmlText(s string) string {
	var b bytes.Buffer
	xml.EscapeText(&b, []byte(s)) // into memory
	return b.String()
}

// file is where the unit belongs.
func (u *unit) file() (string, error) {
	if filepath.IsAbs(u.path) {
		return u.path, nil
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, u.path), err
}

// place is the unit and where it belongs.
func (m manager) place(a *app) (u *unit, file string, err error) {
	if u, err = m.unitOf(a); err != nil {
		return nil, "", err
	}
	file, err = u.file()
	return u, file, err
}

func (cmd servicePrintCmd) Run(a *app) error {
	u, err := cmd.unitOf(a)
	if err != nil {
		return err
	}
	_, err = a.stdout.Write(u.text)
	return err
}

func (cmd serviceInstallCmd) Run(a *app) error {
	u, file, err := cmd.place(a)
	if err != nil {
		return err
	}
	old, err := os.ReadFile(file)
	switch {
	case err == nil && bytes.Equal(old, u.text):
		a.say("%s is as it should be", file)
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return err
	default:
		if err := cmd.write(a, file, old, u.text, err == nil); err != nil {
			return err
		}
	}
	if cmd.DryRun {
		return nil
	}
	a.say("to start it now and at every login:")
	for _, command := range u.enable {
		a.say("  %s", command)
	}
	return nil
}

// write shows the difference and puts the unit into place; what was there is kept
// beside it.
func (cmd serviceInstallCmd) write(a *app, file string, old, text []byte, was bool) error {
	diff, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{A: lines(old), B: lines(text), FromFile: file, ToFile: file + " (new)", Context: 3})
	if err != nil {
		return err
	}
	if _, err := fmt.Fprint(a.stdout, diff); err != nil || cmd.DryRun {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	if was {
		backup := file + "." + time.Now().Format("20060102-150405") + ".bak"
		if err := os.WriteFile(backup, old, 0o644); err != nil {
			return err
		}
		a.say("what was there is kept as %s", backup)
	}
	if err := os.WriteFile(file+".new", text, 0o644); err != nil {
		return err
	}
	if err := os.Rename(file+".new", file); err != nil {
		return err
	}
	a.say("wrote %s", file)
	return nil
}

// lines are the lines of a text with their ends; none for none.
func lines(text []byte) (all []string) {
	for line := range strings.Lines(string(text)) {
		all = append(all, line)
	}
	return all
}

func (cmd serviceUninstallCmd) Run(a *app) error {
	u, file, err := cmd.place(a)
	if err != nil {
		return err
	}
	if err := os.Remove(file); errors.Is(err, os.ErrNotExist) {
		return fail(codeNotFound, fmt.Errorf("there is no %s", file))
	} else if err != nil {
		return err
	}
	a.say("removed %s; if it is running, end it:", file)
	for _, command := range u.disable {
		a.say("  %s", command)
	}
	return nil
}
