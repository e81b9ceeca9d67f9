package check

import (
	"fmt"
	"math"
)

// Figure is a picture of what a check found, which reports draw: curves, or a
// heat map. It grades nothing, and what it shows is told by values, estimates or
// findings too.
type Figure struct {
	Title string `json:"title"`
	About string `json:"about"`       // one sentence for who cannot see it: what it shows, and of what
	X     string `json:"x,omitempty"` // label of the horizontal axis, with its unit
	Y     string `json:"y,omitempty"` // of the vertical axis

	LogX   bool    `json:"log_x,omitempty"` // the horizontal axis is logarithmic
	Curves []Curve `json:"curves,omitempty"`
	Heat   *Heat   `json:"heat,omitempty"` // instead of curves
}

// Curve is one line of a figure, its points in order of X.
type Curve struct {
	Name   string  `json:"name"` // of the variant where the curve is of one
	Points []Point `json:"points"`
}

// Point is one place of a curve. A place that was not measured is no point.
type Point struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
	// Low and High bound Y at the confidence that About states; nil: there is no interval.
	Low  *float64 `json:"low,omitempty"`
	High *float64 `json:"high,omitempty"`
	N    int      `json:"n,omitempty"` // cases behind it; 0: not told
}

// Heat is a table of numbers to be seen as colours.
type Heat struct {
	Columns []string `json:"columns"`
	Rows    []string `json:"rows"`
	Cells   [][]Cell `json:"cells"` // by row, then by column
	// Least and Most are the ends of the colour scale.
	Least float64 `json:"least"`
	Most  float64 `json:"most"`
	// Higher: a larger number is better, and drawn as such.
	Higher bool `json:"higher,omitempty"`
	// Percent: the numbers are proportions, to be read in per cent.
	Percent bool `json:"percent,omitempty"`
}

// Cell is one number of a heat map.
type Cell struct {
	Value *float64 `json:"value,omitempty"` // nil: not measured
	N     int      `json:"n"`               // cases behind it
	Text  string   `json:"text,omitempty"`  // what a reader is told beyond it, such as an interval; "": nothing
}

// Draw adds a figure for the report. It panics on one that cannot be drawn: a
// number that is none, or a table whose cells do not fit its rows and columns.
func (p *Pass) Draw(f Figure) {
	if err := f.Validate(); err != nil {
		panic(fmt.Sprintf("check: %s draws %q: %v", p.check.Name, f.Title, err))
	}
	p.mu.Lock()
	p.figures = append(p.figures, f)
	p.mu.Unlock()
}

// Validate says why a figure cannot be drawn.
func (f *Figure) Validate() error {
	if f.Title == "" || f.About == "" {
		return fmt.Errorf("it has no title, or says not what it is about")
	}
	if (f.Heat != nil) == (len(f.Curves) > 0) {
		return fmt.Errorf("it has neither curves nor a heat map, or both")
	}
	for _, c := range f.Curves {
		if err := c.validate(f.LogX); err != nil {
			return fmt.Errorf("curve %s: %w", c.Name, err)
		}
	}
	return f.Heat.validate()
}

func (c *Curve) validate(logX bool) error {
	last := math.Inf(-1)
	for _, p := range c.Points {
		for _, x := range []*float64{&p.X, &p.Y, p.Low, p.High} {
			if x != nil && (math.IsNaN(*x) || math.IsInf(*x, 0)) {
				return fmt.Errorf("a point with %v", *x)
			}
		}
		if p.X < last || logX && p.X <= 0 {
			return fmt.Errorf("a point at %v has no place", p.X)
		}
		if (p.Low == nil) != (p.High == nil) || p.Low != nil && *p.Low > *p.High {
			return fmt.Errorf("the interval at %v has one end, or its ends are swapped", p.X)
		}
		last = p.X
	}
	return nil
}

func (h *Heat) validate() error {
	if h == nil {
		return nil
	}
	if len(h.Cells) != len(h.Rows) || !(h.Least < h.Most) {
		return fmt.Errorf("%d rows of cells under %d labels, on a scale from %v to %v", len(h.Cells), len(h.Rows), h.Least, h.Most)
	}
	for i, row := range h.Cells {
		if len(row) != len(h.Columns) {
			return fmt.Errorf("row %s has %d cells under %d columns", h.Rows[i], len(row), len(h.Columns))
		}
		for _, c := range row {
			if c.Value != nil && (math.IsNaN(*c.Value) || math.IsInf(*c.Value, 0)) {
				return fmt.Errorf("row %s has a cell of %v", h.Rows[i], *c.Value)
			}
		}
	}
	return nil
}
