package bench

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/assay-llm/assay/config"
)

// FuzzParse holds that a suite is refused with faults in order, or means the
// same after it was written back.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"../examples/*/suite.yaml", "testdata/broken/*.txtar", "testdata/sound.txtar"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			f.Fatalf("%s: %v", pattern, err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			if filepath.Ext(file) != ".txtar" {
				f.Add(string(data))
				continue
			}
			for _, part := range txtar.Parse(data).Files {
				if text := string(part.Data); filepath.Ext(part.Name) == ".yaml" {
					f.Add(text)
				} else if !strings.Contains(part.Name, "/") {
					f.Add("version: 1\nname: x\n" + text)
				}
			}
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse("suite.yaml", []byte(text), "")
		if err != nil {
			if _, ok := errors.AsType[config.Faults](err); !ok {
				t.Fatalf("Parse = %T %v, want Faults", err, err)
			}
			orderly(t, err)
			return
		}
		written, err := config.Encode(s)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse("suite.yaml", written, "")
		if err != nil {
			t.Fatalf("%v in\n%s", err, written)
		}
		if twice, err := config.Encode(again); err != nil || string(twice) != string(written) {
			t.Errorf("%v: written twice:\n%s\nand\n%s", err, written, twice)
		}
	})
}

// FuzzCapacity reads accounts of searches: never a panic, and no probe outside of
// the directory is read.
func FuzzCapacity(f *testing.F) {
	f.Add([]byte(`{"schema":"assay.capacity/1","probe_confidence":0.99,"probes":[]}`))
	f.Add([]byte(`{"schema":"assay.capacity/1","probe_confidence":0.99,"confidence":0.95,"ended":"x","probes":[{"run":"../x","rate_per_s":1}]}`))
	f.Add([]byte(`{"schema":"assay.capacity/1","probe_confidence":2}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, capacityFile), data, 0o600); err != nil {
			t.Fatal(err)
		}
		d, err := OpenCapacity(dir)
		if err == nil && (d.Lo != nil || d.Hi != nil || d.Grade == "pass") {
			t.Errorf("a search without a run found %+v", d)
		}
	})
}
