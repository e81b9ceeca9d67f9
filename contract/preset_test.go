package contract

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assay-llm/assay/config"
)

// TestPresetsDecode: each preset decodes, and no clause of it is undecidable.
func TestPresetsDecode(t *testing.T) {
	for _, name := range Presets() {
		c, err := LoadPreset(name)
		if err != nil {
			t.Fatalf("%v", err)
		}
		if c.Name != name {
			t.Errorf("preset %s is named %s", name, c.Name)
		}
		for _, f := range Lint(c, nil) {
			t.Error(f.Error())
		}
	}
}

// TestThresholds: each threshold of production-17 acts on a stream made for it and
// recovers as stated, does nothing on the safe side of its limit, and nothing
// passes or recovers on missing data.
func TestThresholds(t *testing.T) {
	files, err := filepath.Glob("testdata/thresholds/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := LoadPreset("production-17")
	if err != nil {
		t.Fatal(err)
	}
	tested := map[string]bool{}
	for _, file := range files {
		id := strings.TrimSuffix(filepath.Base(file), ".yaml")
		tested[id] = true
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var test Test
			if err := config.Decode(file, data, &test); err != nil {
				t.Fatal(err)
			}
			for _, o := range test.Run(c) {
				for _, p := range o.Problems {
					t.Errorf("%s: %s", o.Case, p)
				}
				if *update {
					for _, d := range o.Decisions {
						t.Logf("%s: %s (%s)", o.Case, d.line(testEpoch), d.Reason)
					}
				}
				if o.Case == "missing data" && o.Verdict.Grade == Pass {
					t.Errorf("missing data passes: %s", o.Verdict.Reason)
				}
			}
		})
	}
	for _, clause := range c.Clauses {
		if !tested[clause.ID] {
			t.Errorf("%s has no test", clause.ID)
		}
	}
}
