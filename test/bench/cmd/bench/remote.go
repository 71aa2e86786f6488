package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"syscall"
)

// overHTTP is the value of -down for servers that are reached over HTTP.
const overHTTP = "http"

// server is what a gateway is told of a server: the command to start, or where it is.
type server struct{ name, command, url string }

// remote is a server in a process of its own, which the gateway reaches over HTTP.
type remote struct {
	cmd *exec.Cmd
	url string
}

// behind makes the servers of a gateway ready.
func (g *gateway) behind(bin, down string, n int) (all []server, err error) {
	for i := range n {
		s := server{name: fmt.Sprintf("s%d", i)}
		if down == overHTTP {
			r, err := startRemote(bin)
			if err != nil {
				return nil, err
			}
			g.apart = append(g.apart, r)
			s.url = r.url
		} else {
			s.command = filepath.Join(bin, "fakemcp")
		}
		g.servers = append(g.servers, s.name)
		all = append(all, s)
	}
	return all, nil
}

func startRemote(bin string) (*remote, error) {
	c := exec.Command(filepath.Join(bin, "fakemcp"), "-http")
	c.Env = []string{"HOME=" + bin, "PATH=/usr/local/bin:/usr/bin:/bin"}
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	out, err := c.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	r := &remote{cmd: c}
	log := bufio.NewReader(out)
	line, err := log.ReadString('\n')
	m := listening.FindStringSubmatch(line)
	if err != nil || m == nil {
		r.end()
		return nil, errors.Join(fmt.Errorf("the server over HTTP says %q", line), err)
	}
	go func() { _, _ = io.Copy(io.Discard, log) }()
	r.url = "http://" + m[1] + "/mcp"
	return r, nil
}

func (r *remote) end() {
	_ = r.cmd.Process.Kill()
	_ = r.cmd.Wait()
}

func (g *gateway) endApart() {
	for _, r := range g.apart {
		r.end()
	}
	g.apart = nil
}
