package contract

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/assay-llm/assay/config"
)

var update = flag.Bool("update", false, "rewrite the expected output in testdata")

// TestVerdicts judges each testdata/verdict/*.txtar: a contract and the
// evidence in its compact form above, the verdict below.
func TestVerdicts(t *testing.T) {
	each(t, "testdata/verdict", func(t *testing.T, in map[string]string) map[string]string {
		return map[string]string{"verdict": text(Evaluate(decode(t, in["contract.yaml"]), parseEvidence(t, in["evidence"])))}
	})
}

// TestLint lints each testdata/lint/*.txtar: a contract and a plan above, the
// faults below.
func TestLint(t *testing.T) {
	each(t, "testdata/lint", func(t *testing.T, in map[string]string) map[string]string {
		var b strings.Builder
		for _, f := range Lint(decode(t, in["contract.yaml"]), parsePlan(t, in["plan"])) {
			b.WriteString(f.Error() + "\n")
		}
		return map[string]string{"faults": b.String()}
	})
}

// each runs every archive in dir and compares or rewrites its outputs.
func each(t *testing.T, dir string, run func(*testing.T, map[string]string) map[string]string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no archives in %s (%v)", dir, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			in := make(map[string]string)
			for _, f := range a.Files {
				in[f.Name] = string(f.Data)
			}
			out := run(t, in)
			for _, name := range slices.Sorted(maps.Keys(out)) {
				got := out[name]
				if *update {
					a.Files = slices.DeleteFunc(a.Files, func(f txtar.File) bool { return f.Name == name })
					a.Files = append(a.Files, txtar.File{Name: name, Data: []byte(got)})
				} else if want := in[name]; want != got {
					t.Errorf("%s of %s (-want +got):\n%s", name, file, cmp.Diff(want, got))
				}
			}
			if *update {
				if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func decode(t testing.TB, yaml string) *Contract {
	t.Helper()
	var c Contract
	if err := config.Decode("contract.yaml", []byte(yaml), &c); err != nil {
		t.Fatalf("decoding the contract: %v", err)
	}
	return &c
}

// parsePlan reads lines "WORKLOAD requests=N for=D variants=a,b label=k:v
// usage=false streaming=false".
func parsePlan(t *testing.T, text string) []Planned {
	t.Helper()
	var planned []Planned
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		p := Planned{Workload: fields[0], Variants: []string{"baseline", "candidate"}, Streaming: true, Usage: true}
		for _, f := range fields[1:] {
			k, v, _ := strings.Cut(f, "=")
			var err error
			switch k {
			case "requests":
				p.Requests, err = strconv.ParseInt(v, 10, 64)
			case "for":
				p.For, err = time.ParseDuration(v)
			case "variants":
				p.Variants = strings.Split(v, ",")
			case "label":
				name, value, _ := strings.Cut(v, ":")
				p.Labels = map[string]string{name: value}
			case "usage":
				p.Usage = v == "true"
			case "streaming":
				p.Streaming = v == "true"
			}
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
		}
		planned = append(planned, p)
	}
	return planned
}
