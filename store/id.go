package store

import (
	"crypto/rand"
	"encoding/hex"
)

// NewID returns a fresh random ID.
func NewID() ID {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return ID(hex.EncodeToString(b[:]))
}

// Valid reports whether id has the form of an ID, known or not.
func (id ID) Valid() bool {
	if len(id) != 32 {
		return false
	}
	for _, c := range []byte(id) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
