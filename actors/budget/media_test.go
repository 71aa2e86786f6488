package budget

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// withoutMedia does what a call does with a result whose media are too large.
func withoutMedia(t testing.TB, in []byte, limit int64) []byte {
	t.Helper()
	f := scan(in, 1000)
	s := Stub{CallID: callID, ReadTool: "mcphub_read_result", GetTool: "mcphub_get_result"}
	parts := s.Spare(f, limit)
	if parts == nil {
		return nil
	}
	swaps := []Swap{MarkParts(f, parts, callID)}
	for _, p := range parts {
		var d Digest
		s.Part, s.Block = p, f.Blocks[p]
		d.Write(in[s.Block.Data.A:s.Block.Data.B])
		s.Bytes, s.SHA256 = d.Sum()
		swaps = append(swaps, s.Swap())
	}
	slices.SortFunc(swaps, func(a, b Swap) int { return int(a.At.A - b.At.A) })
	var out []byte
	at := int64(0)
	for _, w := range swaps {
		out = append(append(out, in[at:w.At.A]...), w.By...)
		at = w.At.B
	}
	return append(out, in[at:]...)
}

func base64Of(n int, seed byte) (data []byte, encoded string) {
	data = bytes.Repeat([]byte{seed, 0xfb, 0xff, '?'}, n/4+1)[:n]
	return data, base64.StdEncoding.EncodeToString(data)
}

func TestC36LargeMediaGiveWayInPlace(t *testing.T) {
	png, png64 := base64Of(300<<10, 1)
	wav, wav64 := base64Of(700<<10+1, 2)
	pdf, pdf64 := base64Of(2<<20+2, 3)
	_, icon64 := base64Of(900, 4)
	icon := `{"type":"image","mimeType":"image/gif","data":"` + icon64 + `"}`
	in := []byte(`{"content":[{"type":"text","text":"before"},` +
		`{"type":"image","mimeType":"image/png","data":"` + png64 + `","annotations":{"audience":["user"]}},` + icon + `,` +
		`{"data" : "` + strings.ReplaceAll(wav64, "/", `\/`) + `" ,"type":"audio","mimeType":"audio/wav"},` +
		`{"type":"resource","resource":{"uri":"x://1","mimeType":"application/pdf","blob":"` + pdf64 + `"}},` +
		`{"type":"text","text":"after"}],"structuredContent":{"n":9007199254740993}}`)
	out := withoutMedia(t, in, 4<<10)
	if len(out) == 0 || len(out) > 4<<10 {
		t.Fatalf("%d bytes", len(out))
	}
	for _, keep := range []string{`{"content":[{"type":"text","text":"before"},`, icon, `,{"type":"text","text":"after"}],"structuredContent":{"n":9007199254740993}`} {
		if !bytes.Contains(out, []byte(keep)) {
			t.Errorf("%.60s is gone from %s", keep, out)
		}
	}
	var got struct {
		Content []struct{ Type, Text string }
		Meta    map[string]struct {
			CallID string
			Parts  []int
		} `json:"_meta"`
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	if m := got.Meta[MediaMark]; m.CallID != callID || !slices.Equal(m.Parts, []int{1, 3, 4}) || got.Meta[Mark].CallID != "" {
		t.Errorf("marks %v", got.Meta)
	}
	for i, want := range map[int]struct {
		kind, mime string
		data       []byte
	}{1: {"image", "image/png", png}, 3: {"audio", "audio/wav", wav}, 4: {"resource", "application/pdf", pdf}} {
		var stub map[string]any
		if err := json.Unmarshal([]byte(got.Content[i].Text), &stub); err != nil || got.Content[i].Type != "text" {
			t.Fatal(i, err)
		}
		sum := sha256.Sum256(want.data)
		if !reflect.DeepEqual(stub, map[string]any{
			"status": "stored", "callId": callID, "part": float64(i), "type": want.kind, "mimeType": want.mime,
			"bytes": float64(len(want.data)), "sha256": hex.EncodeToString(sum[:]),
			"nextAction": fmt.Sprintf(`call mcphub_read_result with {"callId":"%s","part":%d}`, callID, i),
		}) {
			t.Errorf("block %d became %v", i, stub)
		}
	}
}

// TestC36AStubNamesACallThatCanAnswer: a block that is too large for any answer comes
// as pages of its bytes.
func TestC36AStubNamesACallThatCanAnswer(t *testing.T) {
	s := Stub{CallID: callID, Part: 2, Block: Block{Type: "image", Bytes: 986, At: 70}, ReadTool: "read", GetTool: "get"}
	part := `call read with {"callId":"` + callID + `","part":2}`
	pages := `call get with {"callId":"` + callID + `","cursor":70} for its JSON, which ends before 1056`
	for limit, want := range map[int64]string{0: part, 1000: part, 999: pages} {
		s.Limit = limit
		if got := s.next(); got != want {
			t.Errorf("limit %d: %s", limit, got)
		}
	}
}

func TestOnlyAsManyMediaGiveWayAsNeeded(t *testing.T) {
	_, small := base64Of(3000, 1)
	_, large := base64Of(9000, 2)
	block := func(data string) string { return `{"type":"image","data":"` + data + `"}` }
	in := []byte(`{"content":[` + block(small) + `,` + block(large) + `,` + block(small) + `]}`)
	for limit, want := range map[int64][]int{16 << 10: {1}, 6 << 10: {0, 1}, 2 << 10: {0, 1, 2}, 600: nil} {
		s := Stub{CallID: callID, GetTool: "g"}
		if got := s.Spare(scan(in), limit); !slices.Equal(got, want) {
			t.Errorf("limit %d: blocks %v give way, want %v", limit, got, want)
		}
	}
}

func TestMediaMarkStandsInTheMetaThatIsThere(t *testing.T) {
	_, data := base64Of(9000, 2)
	for _, c := range []struct{ in, want string }{
		{`{"_meta": {"n":9007199254740993,"mcphub/media":"theirs"} ,"content":[IMG]}`, `"_meta":{"n":9007199254740993,"mcphub/media":{"callId":"` + callID + `","parts":[0]}},"content":[`},
		{"{\"content\":[IMG],\"_meta\":{}\n}", `],"_meta":{"mcphub/media":{"callId":"` + callID + "\",\"parts\":[0]}}}"},
		{`{"content":[IMG] }`, `] ,"_meta":{"mcphub/media":{"callId":"` + callID + `","parts":[0]}}}`},
	} {
		in := strings.ReplaceAll(c.in, "IMG", `{"type":"image","data":"`+data+`"}`)
		if out := withoutMedia(t, []byte(in), 2<<10); !bytes.Contains(out, []byte(c.want)) {
			t.Errorf("got  %s\nwant %s", out, c.want)
		}
	}
	for _, in := range []string{ // what cannot be marked is answered by a receipt
		`{"_meta":[1],"content":[IMG]}`,
		`{"_meta":{"a":"` + strings.Repeat("x", maxMeta) + `"},"content":[IMG]}`,
		`{"content":[IMG]`,
		`{"content":[{"type":"video","data":"` + data + `"}]}`,
		`{"content":[{"type":"image","data":["` + data + `"]},{"type":"text","text":"` + data + `"}]}`,
	} {
		in = strings.ReplaceAll(in, "IMG", `{"type":"image","data":"`+data+`"}`)
		if out := withoutMedia(t, []byte(in), 2<<10); out != nil {
			t.Errorf("%.60s became %s", in, out)
		}
	}
}

func TestDigestIsOfTheDecodedBytes(t *testing.T) {
	for n := range 40 {
		data, enc := base64Of(n, 9)
		for _, written := range []string{`"` + enc + `"`, ` "` + strings.TrimRight(enc, "=") + `"`, `"` + strings.ReplaceAll(enc, "/", `\/`) + `" `} {
			var d Digest
			for i := range len(written) {
				d.Write([]byte(written[i : i+1]))
			}
			sum := sha256.Sum256(data)
			if size, sha := d.Sum(); size != int64(n) || sha != hex.EncodeToString(sum[:]) {
				t.Errorf("%s: %d bytes, %s", written, size, sha)
			}
		}
	}
	var d Digest
	d.Write([]byte(`"nobase64:("`))
	if size, sha := d.Sum(); size != 10 || sha != "" {
		t.Errorf("%d %s", size, sha)
	}
}

// FuzzMediaFitLimit: what is left of a result without its media is valid, fits,
// and has as many blocks as before.
func FuzzMediaFitLimit(f *testing.F) {
	f.Add("before", uint16(9000), uint16(20000), `{"a":1}`, uint16(2000))
	f.Add("\"\u2028", uint16(1), uint16(60000), `{`, uint16(512))
	f.Fuzz(func(t *testing.T, text string, first, second uint16, meta string, limit uint16) {
		_, a := base64Of(int(first), 1)
		_, b := base64Of(int(second), 2)
		q, _ := json.Marshal(text)
		in := []byte(`{"content":[{"type":"image","data":"` + a + `"},{"type":"text","text":` + string(q) +
			`},{"type":"resource","resource":{"uri":"x","blob":"` + b + `"}}],"_meta":` + meta + `}`)
		if !json.Valid(in) {
			return
		}
		out := withoutMedia(t, in, int64(limit))
		if out == nil {
			return
		}
		var got struct{ Content []struct{ Type string } }
		if len(out) > int(limit) || json.Unmarshal(out, &got) != nil || len(got.Content) != 3 {
			t.Fatalf("limit %d: %s", limit, out)
		}
	})
}
