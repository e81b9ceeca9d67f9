package main

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

// free names the objects whose keys are data.
var free = []string{"by_outcome", "engine", "host", "labels", "faults"}

// TestJSONIsDocumented demands that docs/format/json.md names every field of
// what --json prints.
func TestJSONIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/format/json.md")
	if err != nil {
		t.Fatal(err)
	}
	var documents [][]byte
	for _, file := range []string{"../../report/testdata/report.json", "../../report/testdata/compare.json", "../../report/testdata/summary.json", "../../report/testdata/capacity.json", "../../report/testdata/calibration.json"} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, b)
	}
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/c.yaml", []byte("version: 1\nclauses: [{need: mean(fidelity.judge) >= 0.8}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const cases = "../../examples/score/cases.jsonl:"
	for _, args := range [][]string{{"version", "--json"}, {"contract", "lint", dir + "/c.yaml", "--json"}, {"contract", "test", "../../examples/live/test.yaml", "--json"}, {"contract", "test", "../../examples/joint/test.yaml", "--json"}, {"contract", "presets", "seed-compat", "--json"}, {"doctor", "--no-load", "--json"}, {"judge", "calibrate", "../../examples/judge/labels.csv", "--json"}, {"score", cases + "candidate", cases + "reference", "--baseline", cases + "baseline", "--json"}, {"perturb", "../../examples/quality/numbers.jsonl", "--sample", "1", "--json"}} {
		var out strings.Builder
		run(t.Context(), args, nil, &out, new(strings.Builder), os.Getenv)
		documents = append(documents, []byte(out.String()))
	}
	documents = append(documents, lockDocuments(t, dir)...)
	for _, b := range documents {
		var top map[string]any
		if err := json.Unmarshal(b, &top); err != nil {
			t.Fatalf("%v: %.100s", err, b)
		}
		name, _ := top["schema"].(string)
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("schema %q is not documented", name)
		}
		undocumented(t, name, top, string(page))
	}
}

func undocumented(t *testing.T, path string, x any, page string) {
	switch x := x.(type) {
	case []any:
		for _, e := range x {
			undocumented(t, path, e, page)
		}
	case map[string]any:
		for key, value := range x {
			if !strings.Contains(page, "`"+key+"`") {
				t.Errorf("%s.%s is not documented", path, key)
			}
			if !slices.Contains(free, key) {
				undocumented(t, path+"."+key, value, page)
			}
		}
	}
}

// lockDocuments are those of assay lock, whose parts hold data, and of assay diff.
func lockDocuments(t *testing.T, dir string) (documents [][]byte) {
	t.Helper()
	for _, side := range []string{"a", "b"} {
		text := "version: 1\nsuite: s\nvariants: {candidate: {model: " + side + ", engine: {unknown: why}}}\n"
		if err := os.WriteFile(dir+"/"+side+".lock", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	run(t.Context(), []string{"diff", dir + "/a.lock", dir + "/b.lock", "--json"}, nil, &out, new(strings.Builder), os.Getenv)
	documents = append(documents, []byte(out.String()))
	out.Reset()
	run(t.Context(), []string{"lock", "../../examples/quickstart/suite.yaml", "-o", dir + "/s.lock", "--json"}, nil, &out, new(strings.Builder), os.Getenv)
	var parts map[string]any
	if err := json.Unmarshal([]byte(out.String()), &parts); err != nil {
		t.Fatalf("%v: %.100s", err, out.String())
	}
	for _, name := range []string{"program", "test", "seeds", "data", "variants", "client", "volatile"} {
		if _, ok := parts[name]; !ok {
			t.Errorf("the lock has no part %s", name)
		}
		parts[name] = nil
	}
	text, err := json.Marshal(parts)
	if err != nil {
		t.Fatal(err)
	}
	return append(documents, text)
}
