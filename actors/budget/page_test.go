package budget

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"
)

// follow reads b to its end, as an agent does, in pages of n bytes.
func follow(t *testing.T, b []byte, n int, limit int64) []byte {
	var got []byte
	for cursor := int64(0); ; {
		data := b[cursor:min(int64(len(b)), cursor+int64(n))]
		result := Page(PageReq{CallID: callID, Cursor: cursor, Data: data, Total: int64(len(b))})
		if limit > 0 && int64(len(result)) > limit {
			t.Fatalf("page of %d bytes in a budget of %d", len(result), limit)
		}
		a := read(t, result)
		piece, err := base64.StdEncoding.DecodeString(a.object["data"].(string))
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, piece...)
		if a.object["done"] == true {
			if a.object["nextCursor"] != nil {
				t.Fatal("a page is the last and names another")
			}
			return got
		}
		next := int64(a.object["nextCursor"].(float64))
		if next <= cursor {
			t.Fatal("no progress")
		}
		cursor = next
	}
}

func TestPageIsOneBlockOfTextAndNothingElse(t *testing.T) {
	want := `{"content":[{"type":"text","text":"{\"status\":\"ok\",\"callId\":\"` + callID +
		`\",\"mediaType\":\"application/json\",\"data\":\"YWJj\",\"cursor\":2,\"nextCursor\":5,\"done\":false,\"totalBytes\":9}"}]}`
	if got := Page(PageReq{callID, 2, []byte("abc"), 9}); string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestC05PagesGiveTheResultAtAnyPageSize(t *testing.T) {
	nested := textResultOf(string(textResultOf(strings.Repeat("é読😀e\u0301\r\n", 3000))))
	for _, n := range []int{1, 2, 3, 4, 5, 7, 4095, 4096, 4097, PageSize(512), PageSize(0)} {
		if got := follow(t, nested[:min(len(nested), 5000*n)], n, 0); !bytes.Equal(got, nested[:len(got)]) || len(got) < min(len(nested), 5000*n) {
			t.Errorf("pages of %d bytes do not give the result", n)
		}
	}
}

// FuzzPagesRebuildResult: pages of the size that a limit gives, put together, are
// the bytes that were stored.
func FuzzPagesRebuildResult(f *testing.F) {
	f.Add([]byte(`{"content":[]}`), uint16(512), uint16(3000))
	f.Add([]byte{0, 0xff, '"', '\\'}, uint16(0), uint16(20000))
	f.Fuzz(func(t *testing.T, b []byte, limit, repeat uint16) {
		b = bytes.Repeat(b, 1+int(repeat)/max(1, len(b)))
		l := int64(limit)
		if l > 0 {
			l = max(l, MinBudget)
		}
		if got := follow(t, b, PageSize(l), l); !bytes.Equal(got, b) {
			t.Fatal("pages do not give the result")
		}
	})
}

// FuzzPageFitsBudget: a page at any place of any size fits, and holds what may be held.
func FuzzPageFitsBudget(f *testing.F) {
	f.Add(int64(512), int64(0), int64(10))
	f.Add(int64(8192), int64(math.MaxInt64-8), int64(math.MaxInt64))
	f.Add(int64(20000), int64(1)<<40, int64(1)<<41)
	f.Fuzz(func(t *testing.T, limit, cursor, total int64) {
		limit, total = max(limit, MinBudget), max(total, 1)
		cursor = min(max(cursor, 0), total)
		n := PageSize(limit)
		if n < 1 || n > 8<<10 {
			t.Fatalf("page of %d bytes", n)
		}
		data := bytes.Repeat([]byte{0xff}, int(min(int64(n), total-cursor)))
		result := Page(PageReq{CallID: callID, Cursor: cursor, Data: data, Total: total})
		if int64(len(result)) > limit {
			t.Fatalf("page of %d bytes in a budget of %d", len(result), limit)
		}
		if n < 8<<10 && limit-int64(len(result)) > 64 && len(data) == n {
			t.Fatalf("%d bytes of a budget of %d are wasted", limit-int64(len(result)), limit)
		}
	})
}

func TestC82UnavailableSaysWhyAndIsNoError(t *testing.T) {
	unknown, expired := read(t, Unknown(callID)), read(t, Expired(callID))
	for _, a := range []answer{unknown, expired} {
		if a.IsError || a.object["status"] != "unavailable" || a.object["callId"] != callID {
			t.Errorf("answer %v", a)
		}
	}
	if reason := fmt.Sprint(expired.object["reason"]); !strings.Contains(reason, "24 hours") || !strings.Contains(reason, "expired") || !strings.Contains(reason, "again") {
		t.Errorf("reason %q", reason)
	}
	if other := read(t, Unknown("x")); other.object["reason"] != unknown.object["reason"] {
		t.Error("two unknown ids get two texts")
	}
}

func TestPastTheEndNamesTheSizeAndIsNoError(t *testing.T) {
	a := read(t, OutOfRange(callID, 12, 10))
	if a.IsError || a.object["status"] != "cursor_out_of_range" || a.object["totalBytes"] != 10.0 || a.object["cursor"] != 12.0 {
		t.Errorf("answer %v", a)
	}
}

func TestAnswersWithoutDataFitTheSmallestBudget(t *testing.T) {
	long := strings.Repeat("\x01", 5000)
	for _, b := range [][]byte{
		Unknown(long), Expired(long[:32]), OutOfRange(long[:32], math.MaxInt64, math.MaxInt64),
		Unknown(strings.Repeat("\"", 64)),
	} {
		if read(t, b); len(b) > MinBudget {
			t.Errorf("%d bytes: %s", len(b), b)
		}
	}
}

func TestPageArguments(t *testing.T) {
	for raw, want := range map[string]struct {
		id     string
		cursor int64
		err    string
	}{
		`{"callId":"a"}`:                               {"a", 0, ""},
		`{"callId":"a","cursor":null}`:                 {"a", 0, ""},
		`{"callId":"a","cursor":4096}`:                 {"a", 4096, ""},
		`{"cursor":"4096","callId":"\u0061","x":[{}]}`: {"a", 4096, ""},
		`{"callId":"a","cursor":4096.0}`:               {"a", 4096, ""},
		`{"callId":"a","cursor":4.096e3}`:              {"a", 4096, ""},
		`{"callId":"a","cursor":-0}`:                   {"a", 0, ""},
		`{"callId":"a","cursor":9007199254740993}`:     {"a", 9007199254740993, ""},
		`{"callId":"a","cursor":99999999999999999999}`: {"a", math.MaxInt64, ""},
		`{"callId":"a","cursor":1e999999999}`:          {"a", math.MaxInt64, ""},
		`{"callId":"a","callId":"b"}`:                  {"b", 0, ""},
		`{"callId":"a","cursor":-1}`:                   {"", 0, "negative"},
		`{"callId":"a","cursor":"-1"}`:                 {"", 0, "negative"},
		`{"callId":"a","cursor":-1e999}`:               {"", 0, "negative"},
		`{"callId":"a","cursor":1.5}`:                  {"", 0, "not an integer"},
		`{"callId":"a","cursor":"x"}`:                  {"", 0, "not an integer"},
		`{"callId":"a","cursor":""}`:                   {"", 0, "not an integer"},
		`{"callId":"a","cursor":"inf"}`:                {"", 0, "not an integer"},
		`{"callId":"a","cursor":"0x10"}`:               {"", 0, "not an integer"},
		`{"callId":"a","cursor":true}`:                 {"", 0, "not an integer"},
		`{"callId":"a","cursor":[0]}`:                  {"", 0, "not an integer"},
		`{"callId":7}`:                                 {"", 0, "callId is missing"},
		`{"cursor":0}`:                                 {"", 0, "callId is missing"},
		``:                                             {"", 0, "callId is missing"},
		`null`:                                         {"", 0, "not a JSON object"},
		`{"callId":"a"`:                                {"", 0, "not a JSON object"},
	} {
		id, cursor, err := ParsePageArgs([]byte(raw))
		switch {
		case want.err != "":
			if err == nil || !strings.Contains(err.Error(), want.err) {
				t.Errorf("%s: error %v, want %q", raw, err, want.err)
			}
		case err != nil || id != want.id || cursor != want.cursor:
			t.Errorf("%s: %q %d %v", raw, id, cursor, err)
		}
	}
}

// FuzzErrorTextFitsBudget: an error of any text fits, and its beginning is there.
func FuzzErrorTextFitsBudget(f *testing.F) {
	f.Add("call fs__read: no such file", uint16(0), uint16(512))
	f.Add("\"\x01\xff😀", uint16(30000), uint16(1000))
	f.Fuzz(func(t *testing.T, text string, repeat, limit uint16) {
		text = strings.Repeat(text, 1+int(repeat)/max(1, len(text)))
		l := max(int64(limit), MinBudget)
		result := ErrorResult(text, l)
		if int64(len(result)) > l {
			t.Fatalf("%d bytes in a budget of %d", len(result), l)
		}
		a := read(t, result)
		shown, wasCut := strings.CutSuffix(a.Content[0].Text, cutMark)
		if !a.IsError || !strings.HasPrefix(strings.ToValidUTF8(text, "\ufffd"), shown) && utf8.ValidString(text) {
			t.Fatalf("not the error: %s", result)
		}
		if whole := ErrorResult(text, 0); wasCut && int64(len(whole)) <= l && !strings.HasSuffix(text, cutMark) {
			t.Fatal("cut without need")
		}
	})
}
