package mask

import "golang.org/x/sys/cpu"

var hasAVX2 = cpu.X86.HasAVX2

//go:noescape
func fastStructure(p *Block) (quotes, slashes, opens, closes uint64)

//go:noescape
func fastEqual(p *Block, c byte) uint64

// Structure returns where quotes, backslashes and brackets stand. Brackets and braces
// are not told apart.
func Structure(p *Block) (quotes, slashes, opens, closes uint64) {
	if hasAVX2 {
		return fastStructure(p)
	}
	return load(p).structure()
}

// Equal returns where c stands.
func Equal(p *Block, c byte) uint64 {
	if hasAVX2 {
		return fastEqual(p, c)
	}
	return load(p).equal(c)
}
