package bench

import (
	"cmp"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	diff "github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/assay-llm/assay/config"
)

var update = flag.Bool("update", false, "rewrite the golden parts of testdata and docs/schema")

// broken is one case of an archive: the files of a suite's folder, and what is
// said about it.
type broken struct {
	name  string
	files []txtar.File // names below the case's folder
	want  string
}

// cases splits an archive: CASE/FILE is a file of the case's folder, CASE/want
// what Load says, or Lint if Load has nothing against the suite. FILE.quoted is
// FILE as a Go string, for bytes that no editor should touch; FILE.link is a
// symbolic link to its text.
func cases(t *testing.T, a *txtar.Archive) []*broken {
	t.Helper()
	var all []*broken
	for _, f := range a.Files {
		name, file, ok := strings.Cut(f.Name, "/")
		if !ok {
			t.Fatalf("%s: want CASE/FILE", f.Name)
		}
		if len(all) == 0 || all[len(all)-1].name != name {
			all = append(all, &broken{name: name})
		}
		b := all[len(all)-1]
		if file == "want" {
			b.want = string(f.Data)
			continue
		}
		b.files = append(b.files, txtar.File{Name: file, Data: f.Data})
	}
	return all
}

// lay writes the case's files into a folder.
func (b *broken) lay(t *testing.T, dir string) {
	t.Helper()
	for _, f := range b.files {
		name, data := filepath.Join(dir, f.Name), f.Data
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if link, ok := strings.CutSuffix(name, ".link"); ok {
			if err := os.Symlink(strings.TrimSpace(string(data)), link); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if plain, ok := strings.CutSuffix(name, ".quoted"); ok {
			s, err := strconv.Unquote(strings.TrimSpace(string(data)))
			if err != nil {
				t.Fatalf("%s: %v", f.Name, err)
			}
			name, data = plain, []byte(s)
		}
		if err := os.WriteFile(name, data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// said is what a user is told about the suite in the current folder.
func said(t *testing.T) string {
	t.Helper()
	s, err := Load("suite.yaml")
	if err != nil {
		orderly(t, err)
		return err.Error() + "\n"
	}
	faults, err := s.Lint()
	switch {
	case err != nil:
		return err.Error() + "\n"
	case len(faults) == 0:
		return "accepted\n"
	}
	var out strings.Builder
	for _, f := range faults {
		out.WriteString("lint: " + f.Error() + "\n")
	}
	return out.String()
}

// orderly fails unless every fault has a place, a cause and a next step, and the
// faults of a file stand in order.
func orderly(t *testing.T, err error) {
	t.Helper()
	faults, ok := errors.AsType[config.Faults](err)
	if !ok {
		return
	}
	for i, f := range faults {
		if f.File == "" || f.Line < 1 || f.Column < 1 || f.What == "" || f.Hint == "" {
			t.Errorf("fault %#v lacks a part", f)
		}
		if strings.ContainsAny(f.What+f.Hint+f.Path, "\n\r\x00\x1b") {
			t.Errorf("fault %q holds control characters", f.Error())
		}
		if i > 0 && f.File == faults[i-1].File && cmp.Or(cmp.Compare(faults[i-1].Line, f.Line), cmp.Compare(faults[i-1].Column, f.Column)) > 0 {
			t.Errorf("fault %v stands after %v", f, faults[i-1])
		}
	}
}

// TestBrokenSuites says of each broken suite exactly what is wrong with it: the
// place, the cause and one next step.
func TestBrokenSuites(t *testing.T) {
	archives, err := filepath.Glob("testdata/broken/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	total := 0
	for _, path := range archives {
		a, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		path, err := filepath.Abs(path)
		if err != nil {
			t.Fatal(err)
		}
		out := &txtar.Archive{Comment: a.Comment}
		for _, b := range cases(t, a) {
			total++
			for _, f := range b.files {
				out.Files = append(out.Files, txtar.File{Name: b.name + "/" + f.Name, Data: f.Data})
			}
			got := b.want // kept where the case is not run
			t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar")+"/"+b.name, func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "suites")
				if err := os.Mkdir(dir, 0o777); err != nil {
					t.Fatal(err)
				}
				b.lay(t, dir)
				t.Chdir(dir)
				got = said(t)
				if strings.HasPrefix(got, "accepted") {
					t.Error("nothing is said against it")
				}
				if strings.Contains(got, "hunter2") {
					t.Errorf("the secret is shown:\n%s", got)
				}
				if d := diff.Diff(b.want, got); d != "" && !*update {
					t.Errorf("(-want +got):\n%s", d)
				}
			})
			out.Files = append(out.Files, txtar.File{Name: b.name + "/want", Data: []byte(got)})
		}
		if *update {
			if err := os.WriteFile(path, txtar.Format(out), 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	if total < 45 {
		t.Errorf("%d broken suites, want at least 45", total)
	}
}

// TestHostileSuites refuses what no suite needs before it costs anything.
func TestHostileSuites(t *testing.T) {
	const head = "version: 1\nname: x\nvariants: {baseline: {sim: {}}}\n"
	for _, c := range []struct{ name, data, want string }{
		{
			"size", head + "# " + strings.Repeat("x", 5<<20),
			"suite.yaml:1:1: the file is larger than 4MiB",
		},
		{
			"depth", head + "workloads: " + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + "\n",
			"suite.yaml:4:75: nested deeper than 64 levels",
		},
		{
			"values", head + "workloads: [" + strings.Repeat("1,", 200_000) + "1]",
			"suite.yaml:4:199994: the document has more than 100000 values and comments",
		},
		{
			"lines", head + strings.Repeat("\n", 300_000),
			"suite.yaml:200001:1: the document has more than 200000 lines",
		},
		{
			"laughs", head + "workloads: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]\n",
			"suite.yaml:4:12: workloads: anchors (&) are not allowed",
		},
		{
			"name", "version: 1\nname: " + strings.Repeat("n", 1<<20-6) + "\nvariants: {baseline: {sim: {}}}\nworkloads: {chat: {arrivals: {poisson: 8/s}, for: 5m, prompts: {synthetic: 100}}}\n",
			"suite.yaml:2:7: name: is not the name of a suite\n  hint: use at most 63 of a-z, A-Z, 0-9, - _ and .",
		},
		{
			"line", "version: 1\nname: " + strings.Repeat("n", 1<<20) + "\n",
			"suite.yaml:2:1: a line of more than 1MiB",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse("suite.yaml", []byte(c.data), "")
			faults, ok := errors.AsType[config.Faults](err)
			if !ok {
				t.Fatalf("Parse = %T %v, want Faults", err, err)
			}
			orderly(t, err)
			got := faults[0].Error()
			if !strings.Contains(c.want, "hint") {
				got, _, _ = strings.Cut(got, "\n")
			}
			if got != c.want {
				t.Errorf("first fault %q, want %q", got, c.want)
			}
			if len(err.Error()) > 64<<10 {
				t.Errorf("%d bytes are said about it", len(err.Error()))
			}
		})
	}
}

// TestSuitesThatStandAlone names no file: there is no folder to look in.
func TestSuitesThatStandAlone(t *testing.T) {
	text := "version: 1\nname: x\nvariants: {baseline: {sim: {}}}\nworkloads: {chat: {arrivals: {poisson: 8/s}, for: 5m, prompts: {file: p.jsonl}}}\ncontract: contract.yaml\n"
	_, err := Parse("-", []byte(text), "")
	want := `-:4:71: workloads.chat.prompts.file: reading p.jsonl: this suite stands alone and can name no file
  hint: name a JSONL file in the suite's folder or below it
-:5:11: contract: reading contract.yaml: this suite stands alone and can name no file
  hint: name a file in the suite's folder or below it, or write the clauses in place`
	if err == nil || err.Error() != want {
		t.Errorf("Parse = %v, want %s", err, want)
	}
}

// TestPlacesBelowAFolder gives places that can be opened from where the user
// stands.
func TestPlacesBelowAFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	b := broken{files: []txtar.File{
		{Name: "suites/suite.yaml", Data: []byte("version: 1\nname: x\nvariants: {baseline: {sim: {}}}\nworkloads: {chat: {arrivals: {poisson: 8/s}, for: 5m, prompts: {file: p.jsonl}}}\ncontract: c.yaml\n")},
		{Name: "suites/p.jsonl", Data: []byte("{}\n")},
		{Name: "suites/c.yaml", Data: []byte("version: 1\nclauses: [{nede: p99(ttft) <= 1s}]\n")},
	}}
	b.lay(t, ".")
	_, err := Load("suites/suite.yaml")
	if err == nil {
		t.Fatal("nothing is said against it")
	}
	for _, place := range []string{"suites/suite.yaml:4:71: ", ": suites/p.jsonl:1: ", "suites/c.yaml:2:12: "} {
		if !strings.Contains(err.Error(), place) {
			t.Errorf("%q is not in\n%v", place, err)
		}
	}
}
