package bench

import (
	"path/filepath"
	"strings"
	"testing"

	diff "github.com/google/go-cmp/cmp"

	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/workload"
)

// TestResolvedSuite decodes the suite that a manifest keeps: it is the same
// suite, and plans the same shots.
func TestResolvedSuite(t *testing.T) {
	suites := make(map[string]*Suite)
	examples, err := filepath.Glob("../examples/*/suite.yaml")
	if err != nil || len(examples) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, file := range examples {
		s, err := Load(file)
		if err != nil {
			t.Fatal(err)
		}
		if faults, err := s.Lint(); err != nil || len(faults) > 0 && !strings.Contains(file, "starved") {
			t.Errorf("%s: lint: %v %v", file, faults, err)
		}
		suites[file] = s
	}
	for name, text := range sound(t) {
		s, err := Parse(name, []byte(text), "")
		if err != nil {
			t.Fatal(err)
		}
		suites[name] = s
	}
	for name, s := range suites {
		t.Run(filepath.Base(filepath.Dir(name))+"/"+filepath.Base(name), func(t *testing.T) {
			first := run{suite: s, opts: Options{Salt: ptr("salt")}}
			if err := first.prepare(); err != nil {
				t.Fatal(err)
			}
			again := &Suite{sets: s.sets}
			if err := config.Decode("manifest", []byte(first.manifest.Suite), again); err != nil {
				t.Fatalf("%v\n%s", err, first.manifest.Suite)
			}
			second := run{suite: again, opts: Options{Salt: ptr("salt")}}
			if err := second.prepare(); err != nil {
				t.Fatal(err)
			}
			if d := diff.Diff(first.manifest.Suite, second.manifest.Suite); d != "" {
				t.Errorf("(-first +again):\n%s", d)
			}
			if first.manifest.Seed != second.manifest.Seed || first.manifest.Digest != second.manifest.Digest {
				t.Error("seed or digest differ")
			}
			if d := diff.Diff(first.manifest.Workloads, second.manifest.Workloads); d != "" {
				t.Errorf("plans (-first +again):\n%s", d)
			}
			for i := range first.variants {
				for title, plan := range first.variants[i].plans {
					if digest(t, plan) != digest(t, second.variants[i].plans[title]) {
						t.Errorf("%s on %s: other shots", first.variants[i].name, title)
					}
				}
			}
		})
	}
}

// digest is the canonical form of the first shots, salts included.
func digest(t *testing.T, p *workload.Plan) string {
	t.Helper()
	var b []byte
	n := 0
	for shot := range p.All() {
		var err error
		if b, err = shot.AppendBinary(b); err != nil {
			t.Fatal(err)
		}
		if n++; n == 50 {
			break
		}
	}
	if n == 0 {
		t.Error("a plan without shots")
	}
	return string(b)
}
