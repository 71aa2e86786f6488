package payload

import "strconv"

// FirstID is odd and above 2^53, so a float64 cannot hold it.
const FirstID int64 = 9007199254740993

const (
	recordWidth = 288
	lineWidth   = 192
	noiseWidth  = 64

	openRecord   = `{\"id\":1,\"pad\":\"`
	closeRecords = `\"}]`
)

var words = [16]string{"pool", "session", "cursor", "naïve", "handler", "日本語", "retry", "commit",
	"index", "shard", "lease", "queue", "token", "page", "budget", "😀"}

// mix is splitmix64: well spread bits for unit i, the same in every process.
func mix(i int64) uint64 {
	z := uint64(i)*0x9e3779b97f4a7c15 + 0x1234567
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func word(r uint64, shift int) string { return words[r>>shift&15] }

func digits(dst []byte, n uint64, width int) []byte {
	var d [20]byte
	for i := width - 1; i >= 0; i-- {
		d[i] = '0' + byte(n%10)
		n /= 10
	}
	return append(dst, d[:width]...)
}

// record appends the i-th record, escaped as it stands inside the text block.
func record(dst []byte, i int64) []byte {
	r, start := mix(i), len(dst)
	dst = append(dst, `{\"id\":`...)
	dst = strconv.AppendInt(dst, FirstID+2*i, 10)
	dst = append(dst, `,\"name\":\"`...)
	dst = append(append(append(dst, word(r, 0)...), '-'), word(r, 4)...)
	dst = append(dst, `\",\"score\":`...)
	dst = append(digits(append(dst, '1'), r>>8%1000, 3), '.')
	dst = digits(dst, r>>20%10000, 4)
	dst = append(dst, `,\"tags\":[\"`...)
	dst = append(append(dst, word(r, 32)...), `\"],\"owner\":{\"login\":\"user`...)
	dst = append(digits(dst, r>>36%10000, 4), `\",\"active\":`...)
	dst = strconv.AppendBool(dst, r>>50&1 == 0)
	dst = append(dst, `},\"none\":null,\"url\":\"https://example.test/r/`...)
	dst = append(digits(dst, uint64(i), 10), `?a=1&b=<2>\",\"hash\":\"`...)
	return closeUnit(dst, start, i, recordWidth, `\"},\n`)
}

// line appends the i-th log line, escaped.
func line(dst []byte, i int64) []byte {
	r, start := mix(i), len(dst)
	dst = append(dst, "2026-01-"...)
	dst = append(digits(dst, 1+r%28, 2), 'T')
	dst = append(digits(dst, r>>8%24, 2), ':')
	dst = append(digits(dst, r>>16%60, 2), ':')
	dst = append(digits(dst, r>>24%60, 2), "Z INFO ["...)
	dst = append(append(append(dst, word(r, 32)...), '/'), word(r, 36)...)
	dst = append(digits(append(dst, "] request "...), uint64(i), 10), " took "...)
	dst = append(digits(dst, r>>40%5000, 4), ` ms; <span class=\"x\">`...)
	dst = append(append(dst, word(r, 60)...), "</span> trace="...)
	return closeUnit(dst, start, i, lineWidth, `\n`)
}

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-"

// noise appends 64 characters that no compressor can shorten by much.
func noise(dst []byte, i int64) []byte {
	for k := range int64(noiseWidth / 8) {
		r := mix(i*8 + k)
		for range 8 {
			dst = append(dst, alphabet[r&63])
			r >>= 6
		}
	}
	return dst
}

// closeUnit fills the unit up with hex digits and ends it, at width bytes.
func closeUnit(dst []byte, start int, i int64, width int, end string) []byte {
	r := mix(^i)
	for n := width - len(end) - (len(dst) - start); n > 0; n-- {
		dst = append(dst, "0123456789abcdef"[r&15])
		if r >>= 4; r == 0 {
			r = mix(i + int64(n)<<40)
		}
	}
	return append(dst, end...)
}
