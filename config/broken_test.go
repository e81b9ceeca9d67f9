package config

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "rewrite the golden parts of testdata")

// TestBrokenDocuments decodes each NAME.yaml of an archive into a sample and
// compares what is said about it with the NAME.want after it. A NAME.quoted is a
// document that no editor should touch, as a Go string.
func TestBrokenDocuments(t *testing.T) {
	archives, err := filepath.Glob("testdata/broken/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	documents := 0
	for _, path := range archives {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		wants := make(map[string]string)
		for _, f := range archive.Files {
			if name, ok := strings.CutSuffix(f.Name, ".want"); ok {
				wants[name] = string(f.Data)
			}
		}
		out := &txtar.Archive{Comment: archive.Comment}
		for _, f := range archive.Files {
			ext := filepath.Ext(f.Name)
			if ext == ".want" {
				continue
			}
			documents++
			name := strings.TrimSuffix(f.Name, ext)
			data := f.Data
			if ext == ".quoted" {
				s, err := strconv.Unquote(strings.TrimSpace(string(f.Data)))
				if err != nil {
					t.Fatalf("%s: %s: %v", path, f.Name, err)
				}
				data = []byte(s)
			}
			got := "accepted\n"
			var v sample
			if err := Decode(name+".yaml", data, &v); err != nil {
				got = err.Error() + "\n"
				checkPlaces(t, data, err)
			}
			out.Files = append(out.Files, f, txtar.File{Name: name + ".want", Data: []byte(got)})
			if diff := cmp.Diff(wants[name], got); diff != "" && !*update {
				t.Errorf("%s: %s (-want +got):\n%s", path, name, diff)
			}
		}
		if *update {
			if err := os.WriteFile(path, txtar.Format(out), 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	if documents < 40 {
		t.Errorf("%d broken documents, want at least 40", documents)
	}
}

// checkPlaces fails unless every fault stands inside the document, in order.
func checkPlaces(t *testing.T, data []byte, err error) {
	t.Helper()
	faults, ok := errors.AsType[Faults](err)
	if !ok || len(faults) == 0 {
		t.Fatalf("Decode = %T %v, want Faults", err, err)
	}
	if len(faults) > MaxFaults+1 {
		t.Errorf("%d faults, want at most %d", len(faults), MaxFaults+1)
	}
	lines := strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(data)), "\n")
	var last Fault
	for i, f := range faults {
		if f.Line < 1 || f.Line > len(lines) || f.Column < 1 {
			t.Errorf("fault %v stands outside of the %d lines", f, len(lines))
			continue
		}
		if n := len([]rune(lines[f.Line-1])); f.Column > n+1 {
			t.Errorf("fault %v stands outside of its line of %d characters", f, n)
		}
		if f.What == "" || f.Hint == "" || f.File == "" {
			t.Errorf("fault %#v lacks a part", f)
		}
		if strings.ContainsAny(f.What+f.Hint+f.Path, "\n\r\x00\x1b") {
			t.Errorf("fault %q holds control characters", f.Error())
		}
		if i > 0 && (f.Line < last.Line || f.Line == last.Line && f.Column < last.Column) {
			t.Errorf("fault %v stands after %v", f, last)
		}
		last = f
	}
}

// TestSyntaxErrorsAreFoundInLargeFiles puts lines before each document that is
// not YAML: the fault moves with it. Only above 64 KiB may it stand at the value
// that encloses the true place, since the parser tells no more.
func TestSyntaxErrorsAreFoundInLargeFiles(t *testing.T) {
	raw, err := os.ReadFile("testdata/broken/syntax.txtar")
	if err != nil {
		t.Fatal(err)
	}
	files := txtar.Parse(raw).Files
	for _, f := range files {
		if filepath.Ext(f.Name) != ".yaml" {
			continue
		}
		for _, lines := range []int{1, 300, 500, 2000} {
			pad := strings.Repeat("# "+strings.Repeat("x", 50)+"\n", lines)
			var v sample
			alone, _ := errors.AsType[Fault](Decode("x.yaml", f.Data, &v))
			moved, _ := errors.AsType[Fault](Decode("x.yaml", []byte(pad+string(f.Data)), &v))
			moved.Line -= lines
			if len(pad) > tried {
				if moved.What != alone.What || moved.Line < 1 || moved.Line > alone.Line+1 {
					t.Errorf("%s after %d lines: %v, want at or before %v", f.Name, lines, moved, alone)
				}
			} else if diff := cmp.Diff(alone, moved); diff != "" {
				t.Errorf("%s after %d lines (-alone +moved):\n%s", f.Name, lines, diff)
			}
		}
	}
}
