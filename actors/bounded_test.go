package actors

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// TestC81FileAndLogStayBoundedOverDays: a result comes every hour, an agent
// pages with pauses of hours, somebody looks at the state; after 24 hours the file
// grows no more, the log never grows far, and in the end the room is given back.
func TestC81FileAndLogStayBoundedOverDays(t *testing.T) {
	const size, every, days = 1 << 20, time.Hour, 2
	synctest.Test(t, func(t *testing.T) {
		noise := make([]byte, size*3/4)
		r := newRig(t, oneServer, map[string]*fakeServer{"d": {answer: func(context.Context, string, []byte) (string, error) {
			if _, err := rand.Read(noise); err != nil {
				return "", err
			}
			return `{"content":[{"type":"text","text":"` + base64.StdEncoding.EncodeToString(noise) + `"}]}`, nil
		}}})
		kept := int64(24 * time.Hour / every)
		var most, log int64
		paused := ""
		for n := range days * kept {
			got, err := r.call(t.Context(), "a", "d__echo", `{}`)
			if err != nil {
				t.Fatal(err)
			}
			if n%8 == 0 {
				paused = receiptOf(t, got)["callId"].(string)
			}
			page, err := r.call(t.Context(), "b", "get_result", fmt.Sprintf(`{"callId":%q,"cursor":%d}`, paused, n*1000))
			if err != nil || receiptOf(t, page)["status"] != "ok" {
				t.Fatalf("page in result %d: %v, %.200s", n, err, page)
			}
			time.Sleep(every)
			u := r.Snapshot().Spool.Usage
			most, log = max(most, u.FileBytes), max(log, u.WALBytes)
			if u.Results > kept+1 {
				t.Fatalf("%d results are kept after %v", u.Results, every*time.Duration(n+1))
			}
		}
		if bound := (kept + 8) * size; most > bound {
			t.Errorf("the file grew to %d MiB, want at most %d", most>>20, bound>>20)
		}
		if log > 16<<20 {
			t.Errorf("the log grew to %d MiB", log>>20)
		}
		time.Sleep(25 * time.Hour)
		if u := r.Snapshot().Spool.Usage; u.Results != 0 || u.FileBytes > 4*size {
			t.Errorf("a day after the last result: %+v", u)
		}
	})
}
