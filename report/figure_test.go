package report

import (
	"bytes"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/record"
)

// drawnRun is a run of one check that draws both kinds of figures, with what was not
// measured in each.
func drawnRun() *Document {
	at := func(x, y, low, high float64, n int) check.Point {
		return check.Point{X: x, Y: y, Low: &low, High: &high, N: n}
	}
	cell := func(v float64, n int, text string) check.Cell { return check.Cell{Value: &v, N: n, Text: text} }
	curves := check.Figure{
		Title: "Found by length", About: "share of needles found, by the length of the context, with 95 % intervals", X: "length (tokens)", Y: "share found", LogX: true,
		Curves: []check.Curve{
			{Name: "baseline", Points: []check.Point{at(512, 1, .84, 1, 20), at(1024, .95, .76, .99, 20), at(2048, .95, .76, .99, 20), at(4096, .9, .7, .97, 20)}},
			{Name: "candidate", Points: []check.Point{at(512, 1, .84, 1, 20), {X: 1024, Y: .9, N: 20}, at(4096, .35, .18, .57, 20)}},
		},
	}
	heat := check.Figure{
		Title: "candidate: found by length and depth", About: "share of needles found by the candidate", X: "length (tokens)", Y: "depth",
		Heat: &check.Heat{
			Columns: []string{"512", "1,024", "2,048", "4,096"}, Rows: []string{"0 %", "50 %", "100 %"}, Most: 1, Higher: true, Percent: true,
			Cells: [][]check.Cell{
				{cell(1, 8, "[0.68, 1.00]"), cell(.875, 8, ""), cell(.75, 8, ""), cell(.25, 8, "")},
				{cell(1, 8, ""), cell(.5, 8, ""), cell(.125, 8, ""), {Text: "the server cut the prompt"}},
				{cell(1, 8, ""), cell(1, 8, ""), cell(.875, 8, ""), {}},
			},
		},
	}
	return &Document{
		Schema: Schema, Run: Run{Name: "drawn", ID: "20261201T000000-aaaaaa", State: "done", Seed: 1}, Baseline: "baseline", Candidate: "candidate",
		Variants: []record.VariantInfo{{Name: "baseline"}, {Name: "candidate"}},
		Workloads: []Workload{{
			WorkloadInfo: record.WorkloadInfo{Name: "context", Planned: -1},
			Check:        &Checked{Figures: []check.Figure{curves, heat}, Lines: []string{"cost: 120 requests"}},
		}},
	}
}

func TestGoldenFigures(t *testing.T) {
	for name, write := range map[string]func(io.Writer, *Document) error{
		"figure.txt":        func(w io.Writer, d *Document) error { return Text(w, d, TextOptions{Width: 130}) },
		"figure-narrow.txt": renderersAt(60),
		"figure.md":         Markdown,
		"figure.html":       HTML,
		"figure.json": func(w io.Writer, d *Document) error {
			return indented(w, func(b io.Writer) error { return JSON(b, d) })
		},
	} {
		t.Run(name, func(t *testing.T) { golden(t, name, render(t, write, drawnRun())) })
	}
}

// TestFiguresTellEveryNumber holds that no number of a figure is told by a colour or
// a place alone, in any rendering.
func TestFiguresTellEveryNumber(t *testing.T) {
	page := string(render(t, HTML, drawnRun()))
	for name, text := range map[string]string{
		"HTML": page, "Markdown": string(render(t, Markdown, drawnRun())), "text": string(render(t, renderersAt(200), drawnRun())),
	} {
		text = strings.ReplaceAll(text, `\`, "")
		for _, want := range []string{"0.95 [0.76, 0.99], n 20", "0.35 [0.18, 0.57], n 20", "0.9, n 20", "12.5 %, n 8", "87.5 %, n 8", "100 %, n 8, [0.68, 1.00]", "share of needles found"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not say %q", name, want)
			}
		}
	}
	if n := strings.Count(page, `<path class="void"`); n != 2 {
		t.Errorf("%d cells are crossed out, want the 2 that were not measured", n)
	}
	if dashed := regexp.MustCompile(`<path class="l c1 s1" d="M`).FindAllString(page, -1); len(dashed) == 0 {
		t.Error("the second curve is told from the first by its colour alone")
	}
}

func TestHostileFigures(t *testing.T) {
	for _, attack := range attacks {
		d := drawnRun()
		for i := range d.Workloads[0].Check.Figures {
			f := &d.Workloads[0].Check.Figures[i]
			f.Title, f.About, f.X, f.Y = attack, attack, attack, attack
			for k := range f.Curves {
				f.Curves[k].Name = attack
			}
			if h := f.Heat; h != nil {
				h.Columns[0], h.Rows[0], h.Cells[0][0].Text, h.Cells[1][3].Text = attack, attack, attack, attack
			}
		}
		page := render(t, HTML, d)
		if bytes.Contains(page, []byte("<script")) || bytes.Contains(page, []byte("<img")) || bytes.Contains(page, []byte("<iframe")) || bytes.Contains(page, []byte("onerror=\"document")) {
			t.Errorf("%q gets into the page as markup", attack)
		}
		plain := render(t, Markdown, d)
		if bytes.Contains(plain, []byte("<script")) || regexp.MustCompile(`[^\\]\]\(`).Match(plain) {
			t.Errorf("%q gets into Markdown as markup", attack)
		}
	}
}

func TestFiguresThatCannotBeDrawnAreLeftOut(t *testing.T) {
	d := drawnRun()
	d.Workloads[0].Check.Figures[0].Curves[0].Points[0].X = -1
	d.Workloads[0].Check.Figures[1].Heat.Rows = nil
	if page := string(render(t, HTML, d)); strings.Contains(page, "Found by length") || strings.Contains(page, "NaN") {
		t.Error("a figure without places was drawn")
	}
	one := drawnRun()
	f := &one.Workloads[0].Check.Figures[0]
	f.Curves = []check.Curve{{Name: "alone", Points: []check.Point{{X: 100, Y: 0}}}, {Name: "none"}}
	if page := string(render(t, HTML, one)); strings.Contains(page, "NaN") || strings.Contains(page, "Inf") || !strings.Contains(page, "alone at 100: 0") {
		t.Error("a figure of one point is not drawn")
	}
	f.Curves = f.Curves[1:]
	if page := string(render(t, HTML, one)); !strings.Contains(page, "nothing was measured") {
		t.Error("a figure of no point does not say so")
	}
}
