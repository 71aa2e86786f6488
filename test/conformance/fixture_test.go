package conformance

import (
	"net"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"mcphubd/test/mcptest"
)

// fixture builds the SDK's conformance server and returns its path.
func fixture(t *testing.T) string { return sdkProgram(t, "everything-server") }

// sdkProgram builds one of the SDK's programs for the suite and returns its path.
func sdkProgram(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	out, err := exec.Command("go", "build", "-o", path, "github.com/modelcontextprotocol/go-sdk/conformance/"+name).CombinedOutput()
	if err != nil {
		t.Fatalf("build the SDK's %s: %v\n%s", name, err, out)
	}
	return path
}

// overHTTP starts the fixture on a port and returns its url.
func overHTTP(t *testing.T, stateless string) string {
	t.Helper()
	port, err := mcptest.NewPort()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(port.Close)
	cmd := exec.Command(fixture(t), "-http="+port.Addr, "-stateless="+stateless)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	mcptest.Eventually(t, "the fixture to listen", func() bool {
		c, err := net.Dial("tcp", port.Addr)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return "http://" + port.Addr
}
