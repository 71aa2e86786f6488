package mcptest

import "strings"

// Hostile returns a legal result that every decode-and-encode spoils: integers
// over 2^53, numbers whose spelling matters, a number no float holds, duplicate
// and unordered keys, unknown members and block types, <>&, raw U+2028 and DEL,
// NUL and control escapes, lone surrogates, text that is six times as long
// escaped, deep nesting, and white space of every kind that one line can carry.
// pad adds at least so many bytes of text, so that a budget is exceeded.
func Hostile(pad int) []byte {
	return []byte(strings.Replace(hostile, "PAD", strings.Repeat(`pad <é> \u0026 \"q\" `, (pad+19)/20), 1))
}

// HostilePretty is Hostile with line breaks between its members, for framings
// that can carry them.
func HostilePretty(pad int) []byte {
	return []byte(strings.ReplaceAll(string(Hostile(pad)), "  ,\t", "\r\n  ,\n\t"))
}

const hostile = "{ \t" + `"structuredContent" : {"z":1,"a":2,"m":3,"id":9007199254740993,"big":1234567890123456787` +
	`,"huge":123456789012345678901234567890,"one":1.0,"zero":-0,"e":1e400,"tiny":1E-400,"exp":1.50e+03,"dup":1,"dup":2,"":null` +
	`,"<>&":"<b>&amp;</b>","\u0069d":"escaped key","nul\u0000key":[ ],"deep":[[[[[[[[{"x":[]}]]]]]]]]}` + "  ,\t" +
	`"content":[ {"text":"a<b>&c` + "\u2028\u2029\u007f\ufeff" + ` \u2028 \u0000 \u001b[31m \ud83d \udc00\ud800 \ud83d\ude00 😀 \/ / \b\f\n\r\t\\ \"","type":"text"}` +
	`,{"type":"x_future","payload":{"n":18446744073709551615,"f":0.10}}` +
	`,{"type":"text","text":"\u0041\u0042\u0043\u0064\u0065\u0066\u0020\u0061\u006e\u0064\u0020\u006f\u006e","annotations":{"priority":1.0,"x":2},"future":[1]}` +
	`,{"type":"resource_link","uri":"file:///r.pdf","name":"r","size":123}` +
	`,{"text":"no type"}` +
	`,{"type":"text","text":"PAD"}]` + "  ,\t" +
	`"_meta":{"vendor/trace":9223372036854775807,"k":{"n":9007199254740993}}` + "  ,\t" +
	`"futureTop" : {"big":18446744073709551615,"arr":[1 , 2.50,	-0.0]}` + " \t}"
