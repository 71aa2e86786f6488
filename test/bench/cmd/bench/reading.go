package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"mcphubd/test/bench/payload"
	"mcphubd/test/mcptest/proc"
)

// An errand is something looked up in a large result: by mcphub_read_result in what
// is stored, and by a usual tool in a file that holds the same text.
type errand struct {
	kind string
	size int64
	args string   // of mcphub_read_result, but for callId
	tool []string // and its arguments; the file comes last
	same bool     // both print the same lines
	want string   // what both print, if not
}

const (
	recordBytes = 288 // of one record or line that package payload makes
	lineBytes   = 192
)

// large is 100 MB, and many a million records, or a tenth of it in a quick run.
func large(o options) int64 { return 100 * mb / shrink(o) }

func many(o options) int64 { return 1_000_000 / shrink(o) }

func shrink(o options) int64 {
	if o.quick {
		return 10
	}
	return 1
}

func grepErrand(o options) errand {
	word := fmt.Sprintf("request %010d took", large(o)/lineBytes*2/3)
	return errand{kind: "text", size: large(o), args: fmt.Sprintf(`"grep":%q`, word), tool: []string{"grep", "-n", word}, same: true}
}

func linesErrand(o options) errand {
	n := must(payload.New("text", large(o))).Size/lineBytes - 100
	return errand{kind: "text", size: large(o), args: fmt.Sprintf(`"lines":"%d+20"`, n),
		tool: []string{"sed", "-n", fmt.Sprintf("%d,%dp", n, n+19)}, same: true}
}

func recordsErrand(o options) errand {
	at := many(o) * 9 / 10
	return errand{kind: "json", size: many(o) * recordBytes, args: fmt.Sprintf(`"records":"","offset":%d,"limit":5`, at),
		tool: []string{"jq", "-c", fmt.Sprintf(".[%d:%d][]", at, at+5)}, want: fmt.Sprintf("/r/%010d?", at)} // some jq round ids
}

func outlineErrand(o options) errand {
	last := large(o) / recordBytes // it holds what is left of the size
	return errand{kind: "json", size: large(o), tool: []string{"jq", "-c", "[length, (.[0]|keys)]"}, want: strconv.FormatInt(last+1, 10)}
}

// reading measures an errand. Both ways have the text in the page cache; the tool has
// no index, nor has mcphubd the first time.
func reading(what func(options) errand) func(*gateway, options, *cell) error {
	return func(g *gateway, o options, c *cell) error {
		e := what(o)
		a, err := g.agent()
		if err != nil {
			return err
		}
		defer a.close()
		r, err := a.call(g.params("blob", blob(e.kind, e.size)))
		if err != nil {
			return err
		}
		rec, ok := r.receipt()
		if !ok || rec.OriginalBytes != e.size {
			return fmt.Errorf("the receipt is wrong: %+v", rec)
		}
		c.M["stored_mb"] = float64(proc.PeakRSS(g.pid())) / mb
		if err := forgetPeak(g.pid()); err != nil {
			return err
		}
		args := strings.TrimSuffix(`{"callId":"`+rec.CallID+`",`+e.args, ",") + "}"
		var body string
		for _, key := range []string{"first_ms", "again_ms"} {
			began := time.Now()
			r, err := a.call(`{"name":"mcphub_read_result","arguments":` + args + `}`)
			if err != nil {
				return err
			}
			c.M[key] = ms(time.Since(began))
			_, body, _ = strings.Cut(r.text, "\n")
		}
		c.M["peak_mb"] = float64(proc.PeakRSS(g.pid())) / mb
		return e.beside(g, body, c)
	}
}

// forgetPeak lets the peak of a process's memory begin anew.
func forgetPeak(pid int) error {
	return os.WriteFile(filepath.Join("/proc", strconv.Itoa(pid), "clear_refs"), []byte("5"), 0)
}

// beside runs the tool on a file and compares what it prints with body.
func (e errand) beside(g *gateway, body string, c *cell) error {
	if !strings.Contains(body, e.want) {
		return fmt.Errorf("%q is not in the answer: %.300s", e.want, body)
	}
	path, err := exec.LookPath(e.tool[0])
	if errors.Is(err, exec.ErrNotFound) {
		c.Note = "there is no " + e.tool[0] + " here to compare with"
		return nil
	}
	file := filepath.Join(g.home, "text")
	if err := e.write(file); err != nil {
		return err
	}
	for range 2 { // the second counts
		cmd := exec.Command(path, append(e.tool[1:len(e.tool):len(e.tool)], file)...)
		cmd.Env = []string{"LC_ALL=C.UTF-8"}
		out, took, peak, err := observed(cmd)
		if err != nil {
			return fmt.Errorf("%s: %w", e.tool, err)
		}
		c.M["tool_ms"], c.M["tool_mb"] = ms(took), float64(peak)/mb
		if !strings.Contains(string(out), e.want) || e.same && string(out) != body {
			return fmt.Errorf("%s prints\n%.600s\nand mcphubd\n%.600s", e.tool, out, body)
		}
	}
	return nil
}

// observed runs a command and looks at its memory meanwhile: what the system says at
// the end counts ours in, before the child became another program.
func observed(cmd *exec.Cmd) (out []byte, took time.Duration, peak int64, err error) {
	var b bytes.Buffer
	cmd.Stdout = &b
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, 0, 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	look := time.NewTicker(2 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case err := <-ended:
			return b.Bytes(), time.Since(began), peak, err
		case <-look.C:
			peak = max(peak, proc.PeakRSS(cmd.Process.Pid))
		}
	}
}

// write writes the text of the result.
func (e errand) write(file string) error {
	var v struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(must(payload.New(e.kind, e.size)).Bytes(), &v); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(v.Content[0].Text), 0o600)
}

// besideTool shows an errand beside the tool of that name.
func besideTool(tool string) []measure {
	return []measure{{"first_ms", "the first time, ms", none}, {"again_ms", "again, ms", none}, {"tool_ms", tool + ", ms", none},
		{"peak_mb", "peak RSS while reading, MB", none}, {"tool_mb", "peak RSS of " + tool + ", MB", none}, {"stored_mb", "peak RSS while storing, MB", none}}
}
