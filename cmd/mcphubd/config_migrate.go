package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/pmezard/go-difflib/difflib"

	"mcphubd/config"
)

type configMigrateCmd struct {
	DryRun bool `help:"Only print what would change."`
}

func (configMigrateCmd) Help() string {
	return `Adds the keys that your file does not speak of yet, commented out, each with its reason. Your
own lines stay as they are, and so does what the file means. Prints the difference; the file
as it was is kept beside it. Where nothing is missing, nothing is written.`
}

func (cmd configMigrateCmd) Run(a *app) error {
	file, err := readUserFile(a)
	if err != nil {
		return err
	}
	c, err := config.Parse(file.name, file.text, config.OS())
	if err != nil {
		return err
	}
	migrated, err := config.Migrate(file.name, file.text, config.OS())
	if err != nil {
		return err
	}
	if bytes.Equal(migrated, file.text) {
		a.say("%s speaks of every key already", file.name)
		return nil
	}
	diff, err := difference(file, migrated)
	if err != nil {
		return err
	}
	if !cmd.DryRun {
		backup, err := file.replace(migrated)
		if err != nil {
			return err
		}
		a.say("%s: migrated; as it was: %s", file.name, backup)
	}
	_, err = a.stdout.Write([]byte(config.Mask(diff, c.Secrets())))
	return err
}

// userFile is the user's configuration, as it lies on disk.
type userFile struct {
	name string // as the user knows it
	path string // where symbolic links lead to
	info fs.FileInfo
	text []byte
}

func readUserFile(a *app) (f userFile, err error) {
	f.name, _, err = config.Path(a.ConfigFile, config.OS())
	if err != nil {
		return f, err
	}
	f.path, err = filepath.EvalSymlinks(f.name)
	if err == nil {
		f.info, err = os.Stat(f.path)
	}
	if err == nil {
		f.text, err = os.ReadFile(f.path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return f, fail(codeNotFound, fmt.Errorf("migrate %s: there is no such file; make one: mcphubd config default", f.name))
	}
	return f, err
}

// difference is a unified diff. Only lines that were there before can hold secrets.
func difference(f userFile, migrated []byte) (string, error) {
	return difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: diffLines(f.text), FromFile: f.name,
		B: diffLines(migrated), ToFile: f.name + " (changed)",
		Context: 3,
	})
}

// diffLines ends a last line that has no end the way diff does.
func diffLines(text []byte) []string {
	lines := strings.SplitAfter(string(text), "\n")
	last := len(lines) - 1
	if lines[last] == "" {
		return lines[:last]
	}
	lines[last] += "\n\\ No newline at end of file\n"
	return lines
}

// replace puts text into the place of the file, at once: whoever reads it sees the
// old file or the new one. The old one is kept as backup.
func (f userFile) replace(text []byte) (backup string, err error) {
	backup = f.path + time.Now().UTC().Format(".20060102T150405Z.bak")
	if err := f.writeLike(backup, f.text); err != nil {
		return "", fmt.Errorf("change %s: keep what it was: %w", f.name, err)
	}
	next := fmt.Sprintf("%s.%d.new", f.path, os.Getpid())
	err = f.writeLike(next, text)
	if err == nil {
		if err = os.Rename(next, f.path); err != nil {
			_ = os.Remove(next)
		}
	}
	if err != nil {
		_ = os.Remove(backup)
		return "", fmt.Errorf("change %s: %w", f.name, err)
	}
	return backup, syncFolder(filepath.Dir(f.path))
}

// writeLike writes a file that there must not be yet to disk, with the owner and the
// permissions of f. It leaves nothing half done.
func (f userFile) writeLike(path string, text []byte) error {
	out, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	if owner, ok := f.info.Sys().(*syscall.Stat_t); ok && err == nil && int(owner.Uid) != os.Geteuid() {
		err = out.Chown(int(owner.Uid), int(owner.Gid))
	}
	if err == nil {
		err = out.Chmod(f.info.Mode().Perm()) // past the umask
	}
	if err == nil {
		err = out.Sync()
	}
	err = errors.Join(err, out.Close())
	if err != nil {
		_ = os.Remove(path)
	}
	return err
}

func syncFolder(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}
