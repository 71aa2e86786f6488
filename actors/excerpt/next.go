package excerpt

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// The kinds of places that a next token holds. A token is opaque to agents; its
// first byte is the version, and old ones must stay readable for a day after an
// upgrade, or be refused.
const (
	nextLines byte = iota + 1
	nextGrep
	nextRecords
	nextList
)

const tokenVersion = 1

// A place is where the next page begins, and all that has to be known to go on.
type place struct {
	kind byte
	part int
	n    []int64
	text string
}

var errToken = errors.New("next is not a token of this result: give it exactly as the header of the page before showed it, with the same callId")

// token encodes the place; it holds for one result only.
func (p place) token(callID string) string {
	b := []byte{0, 0, 0, 0, tokenVersion, p.kind}
	b = binary.AppendVarint(b, int64(p.part))
	b = binary.AppendUvarint(b, uint64(len(p.n)))
	for _, n := range p.n {
		b = binary.AppendVarint(b, n)
	}
	b = append(b, p.text...)
	binary.BigEndian.PutUint32(b, tokenSum(callID, b[4:]))
	return base64.RawURLEncoding.EncodeToString(b)
}

func tokenSum(callID string, b []byte) uint32 {
	return crc32.Update(crc32.ChecksumIEEE([]byte(callID)), crc32.IEEETable, b)
}

// placeOf reads a token.
func placeOf(callID, token string) (p place, err error) {
	b, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(b) < 8 || binary.BigEndian.Uint32(b) != tokenSum(callID, b[4:]) || b[4] != tokenVersion {
		return p, errToken
	}
	p.kind = b[5]
	b = b[6:]
	number := func() int64 {
		n, k := binary.Varint(b)
		if k <= 0 {
			err, k = errToken, len(b)
		}
		b = b[k:]
		return n
	}
	p.part = int(number())
	count, k := binary.Uvarint(b)
	if k <= 0 || count > 16 {
		return p, errToken
	}
	b = b[k:]
	for range count {
		p.n = append(p.n, number())
	}
	for _, n := range p.n {
		if n < 0 {
			err = errToken
		}
	}
	p.text = string(b)
	return p, err
}

// has reports whether the place holds so many numbers.
func (p place) has(n int) bool { return len(p.n) == n }
