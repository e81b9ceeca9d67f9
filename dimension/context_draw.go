package dimension

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/haystack"
	"github.com/assay-llm/assay/stat"
	"github.com/assay-llm/assay/stat/screen"
)

// draw shows the share found as curves over length, and over length and depth.
func (r *contextRun) draw() {
	curves := check.Figure{
		Title: "Found by length", X: "length of the context (tokens)", Y: "share found", LogX: true,
		About: "share of questions whose answer was found, with exact 95 % intervals, and the fit that only falls",
	}
	for v, s := range r.p.Variants {
		points, fit := r.curve(v)
		if len(points) > 0 {
			curves.Curves = append(curves.Curves, check.Curve{Name: s.Name, Points: points}, check.Curve{Name: s.Name + ", falling fit", Points: fit})
		}
	}
	if len(curves.Curves) > 0 && len(r.lengths) > 1 {
		r.p.Draw(curves)
	}
	if slices.ContainsFunc(r.kinds, func(k haystack.Kind) bool { return k == haystack.MultiKey || k == haystack.Coreference }) {
		r.drawComplete()
	}
	if !r.conf.Adaptive {
		for v := range r.p.Variants {
			r.p.Draw(r.heat(v))
		}
	}
}

// curve is the share found by length, with its exact interval, and the fit.
func (r *contextRun) curve(v int) (points, fit []check.Point) {
	trials, used := r.byLength(v)
	var shares, weights []float64
	for i, j := range used {
		k, n := 0, 0
		for _, t := range trials {
			if t.Period == i {
				n++
				if t.Event {
					k++
				}
			}
		}
		e := stat.ExactShare(k, n, .95)
		points = append(points, check.Point{X: float64(r.lengths[j]), Y: e.Value, Low: &e.Lo, High: &e.Hi, N: n})
		shares, weights = append(shares, e.Value), append(weights, float64(n))
	}
	level, err := screen.Antitonic(shares, weights)
	if err != nil {
		return points, nil
	}
	for i, p := range points {
		fit = append(fit, check.Point{X: p.X, Y: level[i]})
	}
	return points, fit
}

// drawComplete shows how much of what was asked for the answers have.
func (r *contextRun) drawComplete() {
	f := check.Figure{
		Title: "Completeness by length", About: "mean share of what was asked for that the answers have", X: "length of the context (tokens)", Y: "share of items", LogX: true,
	}
	for v, s := range r.p.Variants {
		c := check.Curve{Name: s.Name}
		for j, l := range r.lengths {
			sum, n := 0.0, 0
			for i := range r.asked {
				if a := &r.asked[i]; a.length == j && a.fates[v] == fateAnswered && a.probe.Kind != haystack.Absent {
					sum += a.complete[v]
					n++
				}
			}
			if n > 0 {
				c.Points = append(c.Points, check.Point{X: float64(l), Y: sum / float64(n), N: n})
			}
		}
		if len(c.Points) > 0 {
			f.Curves = append(f.Curves, c)
		}
	}
	if len(f.Curves) > 0 {
		r.p.Draw(f)
	}
}

// heat is the share found by length and depth. What the server cut or refused has
// no colour, and says so.
func (r *contextRun) heat(v int) check.Figure {
	h := &check.Heat{Most: 1, Higher: true, Percent: true}
	for _, l := range r.lengths {
		h.Columns = append(h.Columns, strconv.FormatInt(l, 10))
	}
	for d, at := range r.depths {
		h.Rows = append(h.Rows, fmt.Sprintf("%.0f %%", 100*at))
		row := make([]check.Cell, len(r.lengths))
		for j := range r.lengths {
			row[j] = r.cell(v, j, d)
		}
		h.Cells = append(h.Cells, row)
	}
	name := r.p.Variants[v].Name
	return check.Figure{
		Title: name + ": found by length and depth", X: "length of the context (tokens)", Y: "depth of the needle",
		About: fmt.Sprintf("share of questions whose answer %s found, by how long the text was and where in it the answer stood", name), Heat: h,
	}
}

func (r *contextRun) cell(v, length, depth int) (c check.Cell) {
	k, why := 0, ""
	for i := range r.asked {
		a := &r.asked[i]
		if a.length != length || a.depth != depth || a.probe.Kind == haystack.Absent || a.probe.Kind == haystack.Count {
			continue
		}
		switch a.fates[v] {
		case fateAnswered:
			c.N++
			if a.found[v] {
				k++
			}
		case fateCut:
			why = "the server cut the prompt"
		case fateRefused:
			why = "out of the window"
		case fateFailed:
			why = "no answer came"
		}
	}
	if c.Text = why; c.N > 0 {
		x := float64(k) / float64(c.N)
		c.Value = &x
		e := stat.ExactShare(k, c.N, .95)
		c.Text = fmt.Sprintf("[%.0f, %.0f]", math.Floor(100*e.Lo), math.Ceil(100*e.Hi))
	}
	return c
}
