package mcptest

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
)

// GetTool is the paging tool that every agent has.
const GetTool = "mcphub_get_result"

// Receipt is what the agent gets in place of a result that was stored.
type Receipt struct {
	Status        string `json:"status"`
	CallID        string `json:"callId"`
	Server        string `json:"server"`
	Tool          string `json:"tool"`
	Namespaced    string `json:"namespaced"`
	OriginalBytes int64  `json:"originalBytes"`
	BudgetBytes   int64  `json:"budgetBytes"`
	SHA256        string `json:"sha256"`
	Lines         int64  `json:"lines"`
	Shape         string `json:"shape"`
	Preview       string `json:"preview"`
	NextAction    string `json:"nextAction"`
}

// ReceiptOf reads a result as a receipt; ok only when it is marked as ours.
func ReceiptOf(result []byte) (r Receipt, ok bool) {
	var v struct {
		Structured json.RawMessage            `json:"structuredContent"`
		Meta       map[string]json.RawMessage `json:"_meta"`
	}
	if json.Unmarshal(result, &v) != nil || v.Meta["mcphub/receipt"] == nil {
		return r, false
	}
	if len(v.Structured) == 0 || json.Unmarshal(v.Structured, &r) != nil || r.CallID == "" {
		_ = json.Unmarshal([]byte(Text(result)), &r) // on an error everything is in the text
	}
	return r, r.CallID != ""
}

// Page is one answer of the paging tool.
type Page struct {
	Status     string `json:"status"`
	CallID     string `json:"callId"`
	MediaType  string `json:"mediaType"`
	Data       string `json:"data"`
	Cursor     int64  `json:"cursor"`
	NextCursor int64  `json:"nextCursor"`
	Done       bool   `json:"done"`
	TotalBytes int64  `json:"totalBytes"`
	Reason     string `json:"reason"`
	Bytes      []byte `json:"-"` // Data decoded
	Size       int    `json:"-"` // bytes of the whole result value that held the page
}

// Page asks for one page.
func (a *Agent) Page(ctx context.Context, callID string, cursor int64) (p Page, err error) {
	r, err := a.Call(ctx, GetTool, `{"callId":`+quote(callID)+`,"cursor":`+strconv.FormatInt(cursor, 10)+`}`)
	if err != nil {
		return p, err
	}
	p.Size = len(r.Result())
	if r.IsError() || p.Size == 0 {
		return p, fmt.Errorf("page at %d: HTTP %d: %.500s", cursor, r.Status, r.Body)
	}
	if err := json.Unmarshal([]byte(r.Text()), &p); err != nil {
		return p, fmt.Errorf("page at %d: %w: %.300s", cursor, err, r.Text())
	}
	p.Bytes, err = base64.StdEncoding.DecodeString(p.Data)
	return p, err
}

// ReadBack pages a stored result to its end and checks that the pages follow
// each other without a hole.
func (a *Agent) ReadBack(ctx context.Context, callID string) ([]byte, error) {
	var all bytes.Buffer
	for {
		at := int64(all.Len())
		p, err := a.Page(ctx, callID, at)
		switch {
		case err != nil:
			return all.Bytes(), err
		case p.Status != "ok":
			return all.Bytes(), fmt.Errorf("page at %d: status %s: %s", at, p.Status, p.Reason)
		case p.Cursor != at:
			return all.Bytes(), fmt.Errorf("page at %d says it is at %d", at, p.Cursor)
		case len(p.Bytes) == 0 && !p.Done:
			return all.Bytes(), fmt.Errorf("page at %d is empty and not the last", at)
		}
		all.Write(p.Bytes)
		if p.Done {
			if int64(all.Len()) != p.TotalBytes {
				return all.Bytes(), fmt.Errorf("%d bytes in all pages, %d in total", all.Len(), p.TotalBytes)
			}
			return all.Bytes(), nil
		}
		if p.NextCursor != int64(all.Len()) {
			return all.Bytes(), fmt.Errorf("page at %d of %d bytes names %d as the next", at, len(p.Bytes), p.NextCursor)
		}
	}
}
