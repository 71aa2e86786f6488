package budget

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

type fault struct {
	Code    json.RawMessage
	Message string
	Data    json.RawMessage
}

func faultOf(t testing.TB, raw string, limit int64) fault {
	t.Helper()
	b := Fault{Raw: []byte(raw), Limit: limit, CallID: callID, SHA256: strings.Repeat("5", 64),
		ReadTool: "mcphub_read_result", GetTool: "mcphub_get_result"}.Error()
	var f fault
	if err := json.Unmarshal(b, &f); err != nil || int64(len(b)) > limit || !utf8.Valid(b) {
		t.Fatalf("limit %d: %d bytes: %v in %.300s", limit, len(b), err, b)
	}
	return f
}

func TestC86LongRPCErrorKeepsCodeAndBothEnds(t *testing.T) {
	q, _ := json.Marshal("first: cause\n" + strings.Repeat("at frame é\n", 200_000) + "last: cause")
	raw := `{"code":-32042,"message":` + string(q) + `,"data":{"dump":"` + strings.Repeat("d", 5<<20) + `"}}`
	for _, limit := range []int64{512, 1024, 10 << 10, 32 << 10} {
		f := faultOf(t, raw, limit)
		if string(f.Code) != "-32042" || !strings.HasPrefix(f.Message, "first:") || !strings.HasSuffix(f.Message, "cause") {
			t.Errorf("limit %d: %s %q", limit, f.Code, f.Message)
		}
		if !strings.Contains(f.Message, `bytes cut; the whole error is stored: call mcphub_read_result with {"callId":"`+callID+`"} …]`) {
			t.Errorf("limit %d: no mark in %q", limit, f.Message)
		}
		if !strings.Contains(string(f.Data), `"callId":"`+callID+`","dataBytes":5242891`) || strings.Contains(f.Message, "\ufffd") {
			t.Errorf("limit %d: data %s", limit, f.Data)
		}
	}
}

func TestC67SmallDataOfALongErrorIsUntouched(t *testing.T) {
	f := faultOf(t, `{"data": {"retry":9007199254740993,"f":1.0},"message":"`+strings.Repeat("quota ", 10000)+`","code":-32042}`, 4096)
	if string(f.Data) != `{"retry":9007199254740993,"f":1.0}` || string(f.Code) != "-32042" {
		t.Errorf("%s %s", f.Code, f.Data)
	}
	f = faultOf(t, `{"code":7,"message":"quota","data":"`+strings.Repeat("d", 9000)+`"}`, 4096)
	if f.Message != "quota" || !strings.Contains(string(f.Data), `"mcphub/receipt":{"status":"stored"`) || !strings.Contains(string(f.Data), "nextAction") {
		t.Errorf("%+v %s", f, f.Data)
	}
	b := Fault{Raw: []byte(`{"code":7,"message":"` + strings.Repeat("m", 9000) + `"}`), Limit: 600}.Error()
	if strings.Contains(string(b), "stored") || !strings.Contains(string(b), "bytes cut …]") {
		t.Errorf("an error that is not stored says %s", b)
	}
}

// FuzzFaultFitsLimit: whatever a server calls an error, what the agent gets fits
// and is a JSON-RPC error object.
func FuzzFaultFitsLimit(f *testing.F) {
	f.Add(`{"code":-32042,"message":"MMMM","data":{"a":1}}`, uint16(600), uint16(512))
	f.Add(`{"code":1e999,"message":"\ud83d","data":"\u0001"}`, uint16(9), uint16(700))
	f.Add("\"no object \xff", uint16(3000), uint16(513))
	f.Fuzz(func(t *testing.T, raw string, repeat, limit uint16) {
		raw = strings.ReplaceAll(raw, "MMMM", strings.Repeat("é\"\\", int(repeat)))
		got := faultOf(t, raw, max(MinBudget, int64(limit)))
		if len(got.Code) == 0 || strings.HasPrefix(string(got.Code), `"`) {
			t.Fatalf("code %s", got.Code)
		}
	})
}
