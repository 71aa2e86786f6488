//go:build !amd64

package mask

// Structure returns where quotes, backslashes and brackets stand. Brackets and braces
// are not told apart.
func Structure(p *Block) (quotes, slashes, opens, closes uint64) { return load(p).structure() }

// Equal returns where c stands.
func Equal(p *Block, c byte) uint64 { return load(p).equal(c) }
