package downstream

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
)

// guard kills the process groups of our children should the daemon die without doing
// it: the kernel's death signal reaches a child, but not what the child started. It is
// a shell of its own session that reads which groups there are and outlives the daemon
// for as long as it takes to kill them. It is there while there are children. Without
// a shell on this machine only the death signal is left.
var guard guardian

type guardian struct {
	mu     sync.Mutex
	groups map[int]bool
	coming int      // children that are being started
	in     *os.File // nil when none runs
}

// guardScript keeps the groups in $g as " 12  34 ".
const guardScript = `trap '' HUP INT TERM PIPE
g=
while read -r op id; do
	case $op in
	+) g="$g $id " ;;
	-) g="${g%% $id *} ${g#* $id }" ;;
	esac
done
for id in $g; do kill -s KILL -- "-$id"; done`

// expect has the shell run before a child does.
func (g *guardian) expect() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.coming++
	if g.in == nil {
		g.start()
	}
}

// none follows expect when no child came.
func (g *guardian) none() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.coming--
	g.rest()
}

// add follows expect: group is killed when the daemon dies.
func (g *guardian) add(group int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.coming--
	if g.groups == nil {
		g.groups = map[int]bool{}
	}
	g.groups[group] = true
	if g.in == nil {
		g.start()
	} else if _, err := fmt.Fprintf(g.in, "+ %d\n", group); err != nil {
		g.in.Close()
		g.start()
	}
}

// remove must come before the id of group can be given to another process.
func (g *guardian) remove(group int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.groups, group)
	if g.in == nil {
		return
	}
	_, _ = fmt.Fprintf(g.in, "- %d\n", group)
	g.rest()
}

// rest ends the shell when there is nobody to guard.
func (g *guardian) rest() {
	if g.in != nil && g.coming == 0 && len(g.groups) == 0 {
		g.in.Close()
		g.in = nil
	}
}

// start runs the shell and tells it all groups.
func (g *guardian) start() {
	g.in = nil
	r, w, err := os.Pipe()
	if err != nil {
		return
	}
	cmd := exec.Command("/bin/sh", "-c", guardScript, "mcphubd-guard")
	cmd.Stdin, cmd.Dir, cmd.Env = r, "/", []string{"PATH=/usr/bin:/bin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = launch(cmd)
	r.Close()
	if err != nil {
		w.Close()
		return
	}
	go func() { _ = cmd.Wait() }()
	g.in = w
	for group := range g.groups {
		_, _ = fmt.Fprintf(w, "+ %d\n", group)
	}
}
