package assay

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestDependenciesAreExplained demands a line in docs/dependencies.md for each
// module that go.mod requires directly, and none for a module that it does not.
func TestDependenciesAreExplained(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var mod struct {
		Require []struct {
			Path     string
			Indirect bool
		}
		Replace []any
	}
	if err := json.Unmarshal(out, &mod); err != nil {
		t.Fatal(err)
	}
	if len(mod.Replace) > 0 {
		t.Error("go.mod replaces a module: use what everybody can get")
	}
	page, err := os.ReadFile("docs/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	needed, _, ok := strings.Cut(string(page), "## To build and check")
	if !ok {
		t.Fatal(`docs/dependencies.md has no section "To build and check"`)
	}
	direct := map[string]bool{}
	for _, m := range mod.Require {
		if m.Indirect {
			continue
		}
		direct[m.Path] = true
		if !strings.Contains(needed, "| `"+m.Path+"` |") {
			t.Errorf("%s has no line in docs/dependencies.md: say why it is there and what else was weighed", m.Path)
		}
	}
	for line := range strings.Lines(needed) {
		if rest, is := strings.CutPrefix(line, "| `"); is {
			if path, _, _ := strings.Cut(rest, "`"); !direct[path] {
				t.Errorf("docs/dependencies.md explains %s, which go.mod does not require directly", path)
			}
		}
	}
	if len(direct) > 25 {
		t.Errorf("%d direct dependencies; 25 are the limit", len(direct))
	}
}
