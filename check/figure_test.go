package check

import (
	"context"
	"math"
	"strings"
	"testing"
)

func TestFiguresThatCannotBeDrawnAreRefused(t *testing.T) {
	half, nan := 0.5, math.NaN()
	curve := func(ps ...Point) []Curve { return []Curve{{Name: "baseline", Points: ps}} }
	for want, f := range map[string]Figure{
		"":                  {Title: "t", About: "a", Curves: curve(Point{X: 1, Y: 2, Low: &half, High: &half}, Point{X: 1, Y: 3})},
		"neither curves":    {Title: "t", About: "a"},
		"no title":          {About: "a", Curves: curve()},
		"a point with NaN":  {Title: "t", About: "a", Curves: curve(Point{Y: nan})},
		"has no place":      {Title: "t", About: "a", Curves: curve(Point{X: 2}, Point{X: 1})},
		"0 has no place":    {Title: "t", About: "a", LogX: true, Curves: curve(Point{})},
		"has one end":       {Title: "t", About: "a", Curves: curve(Point{Low: &half})},
		"1 rows of cells":   {Title: "t", About: "a", Heat: &Heat{Cells: [][]Cell{{}}, Most: 1}},
		"0 cells under 1":   {Title: "t", About: "a", Heat: &Heat{Rows: []string{"r"}, Columns: []string{"c"}, Cells: [][]Cell{{}}, Most: 1}},
		"a cell of NaN":     {Title: "t", About: "a", Heat: &Heat{Rows: []string{"r"}, Columns: []string{"c"}, Cells: [][]Cell{{{Value: &nan}}}, Most: 1}},
		"scale from 0 to 0": {Title: "t", About: "a", Heat: &Heat{}},
	} {
		switch err := f.Validate(); {
		case want == "" && err != nil:
			t.Errorf("a good figure: %v", err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%v does not say %q", err, want)
		}
	}
}

func TestFiguresComeWithTheOutcome(t *testing.T) {
	c := length(3)
	ask := c.Run
	c.Run = func(ctx context.Context, p *Pass) error {
		p.Draw(Figure{Title: "lengths", About: "a curve", Curves: []Curve{{Name: "baseline", Points: []Point{{X: 1, Y: 1}}}}})
		return ask(ctx, p)
	}
	out, err := Run(t.Context(), Config{Checks: []Declared{{Check: c}}, Variants: []Variant{{Name: "baseline", Asker: &fake{answer: echo}}}})
	if err != nil || len(out) != 1 || len(out[0].Figures) != 1 || out[0].Why != "" {
		t.Fatalf("%+v, %v", out, err)
	}
	c.Run = func(_ context.Context, p *Pass) error { p.Draw(Figure{}); return nil }
	out, err = Run(t.Context(), Config{Checks: []Declared{{Check: c}}, Variants: []Variant{{Name: "baseline", Asker: &fake{answer: echo}}}})
	if err != nil || !strings.Contains(out[0].Why, "no title") {
		t.Errorf("%+v, %v", out, err)
	}
}
