package main

import (
	"fmt"
	"strings"
	"time"

	"mcphubd/actors"
)

type statusCmd struct {
	JSON bool `name:"json" help:"Print the whole state as JSON."`
}

func (statusCmd) Help() string {
	return `Says in a few lines how the daemon is: what is wrong first, each with one thing to do about
it. Exit code 6 when something is.`
}

func (cmd statusCmd) Run(a *app) error {
	s, raw, err := a.look()
	if err != nil {
		return err
	}
	if cmd.JSON {
		_, err = a.stdout.Write(raw)
	} else {
		err = showStatus(a.screen(), s)
	}
	if err == nil && len(s.Problems) > 0 {
		err = fail(codeUnhealthy, errTold)
	}
	return err
}

func showStatus(out *screen, s state) error {
	showProblems(out, s.Problems)
	ready, tools, off := 0, 0, 0
	for _, v := range s.Servers {
		tools += v.Tools
		if !v.Enabled {
			off++
		}
		if v.State == actors.Ready {
			ready++
		}
	}
	var agents []string
	for _, v := range s.Sessions {
		agents = append(agents, v.Agent)
	}
	d, spool := s.Daemon, s.Spool
	out.pairs(
		[2]string{"daemon", fmt.Sprintf("mcphubd %s, pid %d, up for %s", d.Version, d.PID, ago(d.Since))},
		[2]string{"listens", strings.TrimSpace(d.URL + "  " + d.Socket)},
		[2]string{"data", d.Data},
		[2]string{"servers", fmt.Sprintf("%d of %d ready, %s", ready, len(s.Servers)-off, count(tools, "tool"))},
		[2]string{"agents", strings.TrimSpace(fmt.Sprintf("%d  %s", len(agents), strings.Join(agents, ", ")))},
		[2]string{"calls", fmt.Sprintf("%d in flight, %s since the start, %s recorded", len(s.Calls), countText(s.Totals.Calls), countText(spool.Usage.Calls))},
		[2]string{"stored", storedText(s)},
		[2]string{"kept out", keptText(s.Totals.Tally)},
		[2]string{"memory", fmt.Sprintf("%s, %s", bytesText(d.RSSBytes), count(d.Goroutines, "goroutine"))},
	)
	return out.close()
}

// keptText says what contexts were spared since the daemon started.
func keptText(t actors.Tally) string {
	if t.Receipts == 0 {
		return ""
	}
	return fmt.Sprintf("%s of contexts, about %s tokens, by %s", bytesText(t.KeptOutBytes), countText(t.KeptOutBytes/bytesPerToken),
		count(int(t.Receipts), "receipt"))
}

func storedText(s state) string {
	u := s.Spool.Usage
	text := fmt.Sprintf("%s of %s; the file has %s", count(int(u.Results), "result"), bytesText(u.RawBytes), bytesText(u.FileBytes+u.WALBytes))
	if !u.OldestExpiry.IsZero() && u.OldestExpiry.After(time.Now()) {
		text += "; the next one expires in " + left(u.OldestExpiry)
	}
	return text
}

func showProblems(out *screen, problems []actors.Problem) {
	for _, p := range problems {
		out.line(painted(p.Code, bad), text("  "+p.Text))
		times := ""
		if p.Count > 1 {
			times = fmt.Sprintf(", %d times", p.Count)
		}
		out.line(painted(fmt.Sprintf("  for %s%s; do: ", ago(p.Since), times), faint), text(p.Fix))
	}
	if len(problems) > 0 {
		out.line()
	}
}
