package assay

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestWorkflows has actionlint check every workflow, ours and the example, and the
// inputs that they give to the action of this repository.
func TestWorkflows(t *testing.T) {
	ours, err := filepath.Glob(".github/workflows/*.yml")
	if err != nil || len(ours) == 0 {
		t.Fatalf("no workflows: %v", err)
	}
	// The example as if it were used in this repository, so that its inputs are checked.
	example, err := os.ReadFile("examples/ci/github.yml")
	if err != nil {
		t.Fatal(err)
	}
	local := strings.ReplaceAll(string(example), "assay-llm/assay@v0", "./")
	if local == string(example) {
		t.Fatal("the example does not use the action")
	}
	lint := func(files ...string) (string, error) {
		args := append([]string{"tool", "-modfile=tools/go.mod", "actionlint", "-no-color", "-shellcheck=", "-pyflakes="}, files...)
		out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput()
		return string(out), err
	}
	if out, err := lint(append(ours, "examples/ci/github.yml")...); err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
	here := repository(t, local)
	if out, err := lint(here); err != nil {
		t.Errorf("the example with the action of this repository: %v:\n%s", err, out)
	}
	// The check can fail.
	if out, err := lint(repository(t, strings.Replace(local, "artifact:", "artefact:", 1))); err == nil || !strings.Contains(out, "artefact") {
		t.Errorf("an input that the action does not have: %v:\n%s", err, out)
	}
}

// repository makes one with our action and a workflow, and returns the workflow's path.
func repository(t *testing.T, workflow string) string {
	t.Helper()
	dir := t.TempDir()
	action, err := os.ReadFile("action.yml")
	if err != nil {
		t.Fatal(err)
	}
	for path, data := range map[string][]byte{".git/HEAD": nil, "action.yml": action, ".github/workflows/gate.yml": []byte(workflow)} {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, ".github/workflows/gate.yml")
}

var used = regexp.MustCompile(`\$\{\{\s*inputs\.([a-z-]+)\s*\}\}`)

// TestActionInputs holds the inputs that the action uses against those it declares,
// and keeps them out of scripts, where they would be read as code.
func TestActionInputs(t *testing.T) {
	b, err := os.ReadFile("action.yml")
	if err != nil {
		t.Fatal(err)
	}
	head, rest, _ := strings.Cut(string(b), "\noutputs:")
	var declared, seen []string
	for _, m := range regexp.MustCompile(`(?m)^  ([a-z-]+):$`).FindAllStringSubmatch(head, -1) {
		declared = append(declared, m[1])
	}
	for _, m := range used.FindAllStringSubmatch(rest, -1) {
		seen = append(seen, m[1])
	}
	slices.Sort(declared)
	slices.Sort(seen)
	if seen = slices.Compact(seen); !slices.Equal(declared, seen) {
		t.Errorf("the action declares %v and uses %v", declared, seen)
	}
	for line := range strings.Lines(rest) {
		if strings.Contains(line, "run:") && strings.Contains(line, "${{") {
			t.Errorf("an expression within a script: %s", line)
		}
	}
}
