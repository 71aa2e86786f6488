//go:build race

package test

// raced says that the race detector makes everything ten times slower.
const raced = true
