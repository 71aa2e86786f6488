#include "textflag.h"

DATA chars<>+0(SB)/1, $0x22   // "
DATA chars<>+1(SB)/1, $0x5c   // backslash
DATA chars<>+2(SB)/1, $0x7b   // {
DATA chars<>+3(SB)/1, $0x7d   // }
DATA chars<>+4(SB)/1, $0x20   // makes a brace of a bracket
GLOBL chars<>(SB), RODATA|NOPTR, $5

// Of the block in Y0 and Y1, each character in turn: which bytes equal it, as 64 bits.
//
// func fastStructure(p *Block) (quotes, slashes, opens, closes uint64)
TEXT ·fastStructure(SB), NOSPLIT, $0-40
	MOVQ p+0(FP), SI
	VMOVDQU 0(SI), Y0
	VMOVDQU 32(SI), Y1
	VPBROADCASTB chars<>+0(SB), Y2
	VPBROADCASTB chars<>+1(SB), Y3
	VPBROADCASTB chars<>+2(SB), Y4
	VPBROADCASTB chars<>+3(SB), Y5
	VPBROADCASTB chars<>+4(SB), Y6

	VPCMPEQB Y0, Y2, Y8
	VPCMPEQB Y1, Y2, Y9
	VPMOVMSKB Y8, AX
	VPMOVMSKB Y9, BX
	SHLQ $32, BX
	ORQ BX, AX
	MOVQ AX, quotes+8(FP)

	VPCMPEQB Y0, Y3, Y8
	VPCMPEQB Y1, Y3, Y9
	VPMOVMSKB Y8, AX
	VPMOVMSKB Y9, BX
	SHLQ $32, BX
	ORQ BX, AX
	MOVQ AX, slashes+16(FP)
	VPOR Y0, Y6, Y0
	VPOR Y1, Y6, Y1

	VPCMPEQB Y0, Y4, Y8
	VPCMPEQB Y1, Y4, Y9
	VPMOVMSKB Y8, AX
	VPMOVMSKB Y9, BX
	SHLQ $32, BX
	ORQ BX, AX
	MOVQ AX, opens+24(FP)

	VPCMPEQB Y0, Y5, Y8
	VPCMPEQB Y1, Y5, Y9
	VPMOVMSKB Y8, AX
	VPMOVMSKB Y9, BX
	SHLQ $32, BX
	ORQ BX, AX
	MOVQ AX, closes+32(FP)
	VZEROUPPER
	RET

// func fastEqual(p *Block, c byte) uint64
TEXT ·fastEqual(SB), NOSPLIT, $0-24
	MOVQ p+0(FP), SI
	VPBROADCASTB c+8(FP), Y2
	VPCMPEQB 0(SI), Y2, Y8
	VPCMPEQB 32(SI), Y2, Y9
	VPMOVMSKB Y8, AX
	VPMOVMSKB Y9, BX
	SHLQ $32, BX
	ORQ BX, AX
	MOVQ AX, ret+16(FP)
	VZEROUPPER
	RET
