package bench

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSuiteReadsTheFilesOfChecks(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	write("set.jsonl", `{"id": "a", "prompt": "x"}`+"\n")
	suite := write("suite.yaml", `version: 1
name: x
variants:
  baseline: {url: "http://127.0.0.1:1/v1", model: m}
  candidate: {url: "http://127.0.0.1:2/v1", model: m}
checks:
  - fidelity: {set: set.jsonl, judge: {url: "http://127.0.0.1:3/v1", model: j}, calibration: labels.csv}
contract:
  clauses: [{need: mean(fidelity.judge) >= 0.45}]
`)
	if _, err := Load(suite); err == nil || !strings.Contains(err.Error(), "suite.yaml:7:") || !strings.Contains(err.Error(), "reading labels.csv") {
		t.Errorf("without the file: %v", err)
	}
	write("labels.csv", "case,human\n")
	s, err := Load(suite)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(s.files["labels.csv"]); got != "case,human\n" {
		t.Errorf("read %q", got)
	}
	if err := os.Truncate(write("labels.csv", "x"), maxFile+1); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(suite); err == nil || !strings.Contains(err.Error(), "longer than 8 MiB") {
		t.Errorf("a file that is too long: %v", err)
	}
}
