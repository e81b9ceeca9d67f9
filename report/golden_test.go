package report

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-llm/assay/contract"
)

var update = flag.Bool("update", false, "rewrite testdata")

// renderers are all ways to write a document.
var renderers = map[string]func(io.Writer, *Document) error{
	"text.txt":   func(w io.Writer, d *Document) error { return Text(w, d, TextOptions{Width: 130}) },
	"folded.txt": func(w io.Writer, d *Document) error { return Text(w, d, TextOptions{Width: 100}) },
	"eighty.txt": renderersAt(80),
	"narrow.txt": func(w io.Writer, d *Document) error { return Text(w, d, TextOptions{Width: 60}) },
	"colour.txt": func(w io.Writer, d *Document) error { return Text(w, d, TextOptions{Width: 130, Colour: true}) },
	"pull.md":    Markdown,
	"junit.xml":  JUnit,
	"sarif.json": func(w io.Writer, d *Document) error {
		return indented(w, func(b io.Writer) error { return SARIF(b, d) })
	},
	"report.json": shortJSON,
	"report.html": HTML,
}

// comparers are all ways to write a comparison.
var comparers = map[string]func(io.Writer, *Comparison) error{
	"compare.txt":        func(w io.Writer, c *Comparison) error { return CompareText(w, c, TextOptions{Width: 130}) },
	"compare-narrow.txt": func(w io.Writer, c *Comparison) error { return CompareText(w, c, TextOptions{Width: 50}) },
	"compare.md":         CompareMarkdown,
	"compare.json": func(w io.Writer, c *Comparison) error {
		return indented(w, func(b io.Writer) error { return CompareJSON(b, c) })
	},
}

// shortJSON writes the JSON with only the start of what is drawn, for people to
// review.
func shortJSON(w io.Writer, d *Document) error {
	short := *d
	short.Series, short.Workloads = slices.Clone(d.Series), slices.Clone(d.Workloads)
	for i := range short.Series {
		s := &short.Series[i]
		s.Sent, s.Completed, s.Failed, s.InFlight, s.Tokens = s.Sent[:3], s.Completed[:3], s.Failed[:3], s.InFlight[:3], s.Tokens[:3]
	}
	for i := range short.Workloads {
		w := &short.Workloads[i]
		w.Curves = slices.Clone(w.Curves)
		for j := range w.Curves {
			w.Curves[j].Points = w.Curves[j].Points[:3]
		}
	}
	short.Client.Seconds = d.Client.Seconds[:1]
	return indented(w, func(b io.Writer) error { return JSON(b, &short) })
}

func indented(w io.Writer, write func(io.Writer) error) error {
	var b, out bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	if err := json.Indent(&out, b.Bytes(), "", "  "); err != nil {
		return err
	}
	_, err := w.Write(out.Bytes())
	return err
}

func render[T any](t testing.TB, write func(io.Writer, T) error, v T) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b, v); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (rewrite it with -update):\n%s", path, diff)
	}
}

// goldenRun is small, so that its files can be reviewed.
func goldenRun() made {
	s := usual()
	s.requests = 320
	return s
}

func TestGolden(t *testing.T) {
	d := goldenRun().document(t)
	for name, write := range renderers {
		t.Run(name, func(t *testing.T) { golden(t, name, render(t, write, d)) })
	}
}

func TestGoldenComparison(t *testing.T) {
	m, records := goldenRun().build()
	other := goldenRun()
	other.seed = 8
	n, others := other.build()
	n.ID, n.Seed, n.State, n.Host["kernel"] = "20261201T120000-ffffff", 43, "interrupted", "6.6"
	c := Compare(Side{"monday", m, records, "baseline"}, Side{"tuesday", n, others, "candidate"})
	for name, write := range comparers {
		t.Run(name, func(t *testing.T) { golden(t, name, render(t, write, c)) })
	}
}

func TestGoldenSummary(t *testing.T) {
	other := goldenRun()
	other.seed, other.slower = 8, 1
	a, b := goldenRun().document(t), other.document(t)
	b.Run.ID, b.Run.Name = "20261201T120000-ffffff", "chat-fp8"
	s := Summarise([]*Document{a, b})
	for name, write := range map[string]func(io.Writer, *Summary) error{
		"summary.txt": func(w io.Writer, s *Summary) error { return SummaryText(w, s, TextOptions{Width: 130}) },
		"summary.md":  SummaryMarkdown,
		"summary.json": func(w io.Writer, s *Summary) error {
			return indented(w, func(b io.Writer) error { return SummaryJSON(b, s) })
		},
	} {
		t.Run(name, func(t *testing.T) { golden(t, name, render(t, write, s)) })
	}
}

func TestSummaryGradesTheWorst(t *testing.T) {
	judgedAs := func(g contract.Grade) *Document {
		return &Document{Verdict: &contract.Verdict{Grade: g}, Grade: g.String()}
	}
	for _, c := range []struct {
		docs []*Document
		want string
	}{
		{[]*Document{judgedAs(contract.Pass), judgedAs(contract.Pass)}, "pass"},
		{[]*Document{judgedAs(contract.Pass), judgedAs(contract.Fail)}, "fail"},
		{[]*Document{judgedAs(contract.Pass), judgedAs(contract.Inconclusive)}, "inconclusive"},
		{[]*Document{judgedAs(contract.Pass), {}}, "inconclusive"},
		{[]*Document{{}, {}}, ""},
	} {
		if got := Summarise(c.docs).Grade; got != c.want {
			t.Errorf("%d runs grade %q, want %q", len(c.docs), got, c.want)
		}
	}
}

func TestOutputIsDeterministic(t *testing.T) {
	a, b := goldenRun().document(t), goldenRun().document(t)
	for name, write := range renderers {
		if !bytes.Equal(render(t, write, a), render(t, write, b)) {
			t.Errorf("%s: two renderings of one run differ", name)
		}
	}
}

func renderersAt(width int) func(io.Writer, *Document) error {
	return func(w io.Writer, d *Document) error { return Text(w, d, TextOptions{Width: width}) }
}
