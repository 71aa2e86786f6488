package downstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"mcphubd/config"
)

// process is a child in a process group of its own, with our ends of its three
// pipes. It is Linux-only: the death signal and waiting without reaping are.
//
// The kernel kills the child when the daemon dies, however it dies, and the guard its
// group. What has left the group gets the end of its stdin at that moment, and no more.
type process struct {
	pid    int
	stdin  *os.File
	stdout *pipe
	stderr *pipe

	exited chan struct{} // closed once the child is reaped and its group killed
	mu     sync.Mutex    // held while signalling, so that a pid is never signalled after it was reaped
	reaped bool
	how    string // how it ended; set before exited is closed
}

// start runs the command of s.
func start(s config.Server) (*process, error) {
	env := environ(s.Env)
	path, err := find(s.Command, lookup(env, "PATH"), s.Cwd)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(s.Cwd); s.Cwd != "" && (err != nil || !info.IsDir()) {
		return nil, fmt.Errorf("start %s: cwd %s is no directory", s.Command, s.Cwd)
	}
	in, err := newPipes()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", s.Command, err)
	}
	guard.expect()
	cmd, held, err := launchHeld(path, func() *exec.Cmd {
		return &exec.Cmd{
			Path: path, Args: append([]string{s.Command}, s.Args...), Env: env, Dir: s.Cwd,
			Stdin: in.theirs[0], Stdout: in.theirs[1], Stderr: in.theirs[2],
			SysProcAttr: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
		}
	})
	closeAll(in.theirs[:])
	if err != nil {
		guard.none()
		closeAll(in.ours[:])
		return nil, fmt.Errorf("start %s: %w", s.Command, err)
	}
	guard.add(cmd.Process.Pid)
	if held {
		letGo(cmd.Process.Pid)
	}
	p := &process{pid: cmd.Process.Pid, stdin: in.ours[0], exited: make(chan struct{})}
	p.stdout, p.stderr = &pipe{f: in.ours[1]}, &pipe{f: in.ours[2]}
	go p.reap(cmd)
	return p, nil
}

// find is exec.LookPath with the PATH that the child will have.
func find(command, path, cwd string) (string, error) {
	if strings.Contains(command, "/") {
		if !filepath.IsAbs(command) {
			command = filepath.Join(cwd, command)
		}
		if err := executable(command); err != nil {
			return "", fmt.Errorf("start %s: %w", command, err)
		}
		return command, nil
	}
	for _, dir := range filepath.SplitList(path) {
		if file := filepath.Join(dir, command); filepath.IsAbs(dir) && executable(file) == nil {
			return file, nil
		}
	}
	return "", fmt.Errorf("start %s: command not found; searched PATH=%s", command, path)
}

func executable(file string) error {
	switch info, err := os.Stat(file); {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("no such file")
	case err != nil:
		return err
	case info.IsDir() || info.Mode()&0o111 == 0:
		return errors.New("not an executable file")
	}
	return nil
}

var launcher struct {
	once sync.Once
	jobs chan func()
}

// launch starts cmd from one thread that lives as long as the daemon: the kernel
// sends the death signal when the thread that started the child ends.
func launch(cmd *exec.Cmd) error {
	return onLauncher(func() error {
		// What the daemon inherited, or opened carelessly, must not reach a child.
		_ = unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC)
		return cmd.Start()
	})
}

func onLauncher(f func() error) error {
	launcher.once.Do(func() {
		launcher.jobs = make(chan func())
		go func() {
			runtime.LockOSThread()
			for job := range launcher.jobs {
				job()
			}
		}()
	})
	done := make(chan error)
	launcher.jobs <- func() { done <- f() }
	return <-done
}

// launchHeld launches what command makes, and has it stand before its first instruction
// until letGo: what it forks is of a group that the guard knows. It is not held where
// the kernel does not let us trace it, or would take its privileges for that.
func launchHeld(path string, command func() *exec.Cmd) (cmd *exec.Cmd, held bool, err error) {
	if !privileged(path) {
		cmd = command()
		cmd.SysProcAttr.Ptrace = true
		if launch(cmd) == nil {
			return cmd, true, nil
		}
	}
	cmd = command()
	return cmd, false, launch(cmd)
}

// privileged reports whether the program gets rights from its file.
func privileged(path string) bool {
	info, err := os.Stat(path)
	if err == nil && info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
		return true
	}
	n, err := unix.Getxattr(path, "security.capability", nil)
	return err == nil && n > 0
}

// letGo waits for the stop that follows the exec of a child that is held, and has it
// run. It leaves an end of the child to be reaped by others.
func letGo(pid int) {
	_ = onLauncher(func() error { // only the thread that traces may
		for {
			err := unix.Waitid(unix.P_PID, pid, nil, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
			if err != unix.EINTR {
				return syscall.PtraceDetach(pid)
			}
		}
	})
}

// reap waits for the end of the child. While the child is a zombie its group's id
// cannot be given to anyone else, so that is when the rest of the group is killed.
func (p *process) reap(cmd *exec.Cmd) {
	for {
		err := unix.Waitid(unix.P_PID, p.pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			break
		}
	}
	p.mu.Lock()
	_ = syscall.Kill(-p.pid, syscall.SIGKILL)
	guard.remove(p.pid)
	_ = cmd.Wait()
	p.reaped = true
	p.how = cmd.ProcessState.String() // "exit status 3", "signal: killed"
	p.mu.Unlock()
	p.stdout.ended()
	p.stderr.ended()
	close(p.exited)
}

// signal reaches the group, and the child should it have left the group. It comes once:
// a second SIGTERM means "at once" to many programs.
func (p *process) signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return
	}
	_ = syscall.Kill(-p.pid, s)
	if group, err := syscall.Getpgid(p.pid); err != nil || group != p.pid {
		_ = syscall.Kill(p.pid, s)
	}
}

// stop ends the child: after its stdin was closed it gets grace to go, after TERM
// again, then KILL. When ctx ends the grace is over.
func (p *process) stop(ctx context.Context, grace time.Duration) {
	if p.waits(ctx, grace) {
		return
	}
	p.signal(syscall.SIGTERM)
	if p.waits(ctx, grace) {
		return
	}
	p.signal(syscall.SIGKILL)
	p.waits(context.Background(), 10*time.Second)
}

// waits reports whether the child ended within d and before ctx.
func (p *process) waits(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-p.exited:
		return true
	case <-t.C:
	case <-ctx.Done():
	}
	return false
}

// ends is waits for a child that has shut a stream of its own: one that is on its way out
// gets all the time that the machine takes over it.
func (p *process) ends(d time.Duration) bool {
	return p.waits(context.Background(), d) || p.exiting() && p.waits(context.Background(), 10*time.Second)
}

// exiting reports whether the child has begun to exit, or is gone. The kernel notes that
// before it closes the child's files.
func (p *process) exiting() bool {
	const onItsWayOut = 0x4 // PF_EXITING
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return true
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid))
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if err != nil || len(fields) < 7 {
		return false
	}
	flags, err := strconv.ParseUint(fields[6], 10, 64)
	return err == nil && flags&onItsWayOut != 0
}

// pipes are the three standard streams of a child: its ends and ours.
type pipes struct{ theirs, ours [3]*os.File }

// outPipe is the wanted size of the pipe that results come through.
const outPipe = 256 << 10

// newPipes makes them. Only our ends are non-blocking: many programs cannot cope
// with a standard stream that is.
func newPipes() (p pipes, err error) {
	for i, name := range []string{"stdin", "stdout", "stderr"} {
		var fd [2]int
		if err := unix.Pipe2(fd[:], unix.O_CLOEXEC); err != nil {
			closeAll(p.theirs[:i])
			closeAll(p.ours[:i])
			return p, fmt.Errorf("pipe: %w", err)
		}
		theirs, ours := fd[0], fd[1]
		if i > 0 {
			theirs, ours = fd[1], fd[0]
		}
		if i == 1 {
			_, _ = unix.FcntlInt(uintptr(ours), unix.F_SETPIPE_SZ, outPipe)
		}
		_ = unix.SetNonblock(ours, true)
		p.theirs[i], p.ours[i] = os.NewFile(uintptr(theirs), name), os.NewFile(uintptr(ours), name)
	}
	return p, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}
