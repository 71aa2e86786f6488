package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"mcphubd/store"
)

func storeFile(data string) string { return filepath.Join(data, "mcphubd.db") }

// openStore opens the store for reading. That works beside a running daemon as well
// as without one.
func (a *app) openStore() (*store.Reader, error) {
	data, err := a.dataDir()
	if err != nil {
		return nil, err
	}
	path := storeFile(data)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, fail(codeNotFound, fmt.Errorf("there is no store at %s yet; a daemon makes it: mcphubd serve", path))
	}
	return store.OpenReader(path)
}
