package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/stat"
)

// front is what a joint clause traded, as every renderer shows it: a row an
// objective, a column a variant.
type front struct {
	Name   string // of the clause, with its scope
	About  string // how it was weighed
	Head   []string
	Rows   []frontRow
	Charts []chart
}

type frontRow struct {
	Name  string
	Doc   string
	Cells []Shown
}

// fronts collects the joint clauses among the results.
func fronts(results []contract.Result) (out []front) {
	for i := range results {
		if r := &results[i]; r.Joint != nil && len(r.Joint.Points) > 0 {
			out = append(out, frontOf(r))
		}
		out = append(out, fronts(results[i].Results)...)
	}
	return out
}

func documentFronts(d *Document) []front {
	if d.Verdict == nil {
		return nil
	}
	return fronts(d.Verdict.Clauses)
}

func frontOf(r *contract.Result) front {
	j := r.Joint
	f := front{Name: r.ID, Head: []string{""}}
	if r.Scope != "" {
		f.Name += " (" + r.Scope + ")"
	}
	f.About = fmt.Sprintf("weights: %s; the candidate may lose %s %% of the baseline's utility. Intervals have both ends at %s %% confidence.", j.Weighting, plain(100*j.Margin, 4), plain(100*r.Confidence, 4))
	for _, p := range j.Points {
		f.Head = append(f.Head, p.Variant)
	}
	f.Head = append(f.Head, "weight", "utility")
	for k, o := range j.Objectives {
		row := frontRow{Name: title(o.Quantity), Doc: o.Better + " is better" + ends(o)}
		s := scaleOf(o.Unit, valuesOf(j, k)...)
		for _, p := range j.Points {
			value, interval := s.figure(p.Figures[k].Estimate)
			row.Cells = append(row.Cells, Shown{Value: value, Interval: interval})
		}
		row.Cells = append(row.Cells, Shown{Value: plain(o.Weight, 3)}, ratioShown(o.Ratio))
		f.Rows = append(f.Rows, row)
	}
	f.standing(j)
	for k := 1; k < len(j.Objectives); k++ {
		f.Charts = append(f.Charts, plane(j, 0, k))
	}
	return f
}

// standing adds the rows on the front.
func (f *front) standing(j *contract.Tradeoff) {
	on := frontRow{Name: "on the front", Doc: "no other variant is as good in every objective and better in one, by the values"}
	dominated := frontRow{Name: "dominated, probability", Doc: "that another variant is better in every objective, given the intervals"}
	for _, p := range j.Points {
		text := "yes"
		switch {
		case len(p.By) > 0:
			text = "no: " + strings.Join(p.By, ", ")
		case !p.Front:
			text = missing
		}
		on.Cells = append(on.Cells, Shown{Value: text})
		share := missing
		if p.Dominated != nil {
			share = shareText(*p.Dominated)
		}
		dominated.Cells = append(dominated.Cells, Shown{Value: share})
	}
	on.Cells = append(on.Cells, Shown{Value: "1"}, ratioShown(j.Utility))
	dominated.Cells = append(dominated.Cells, Shown{}, Shown{})
	f.Rows = append(f.Rows, on, dominated)
}

// ends says the scale of an objective; "" if its ratio counts.
func ends(o contract.ObjectiveSide) string {
	if o.Worst == nil || o.Best == nil {
		return ", as a ratio to the baseline"
	}
	s := scaleOf(o.Unit, *o.Worst, *o.Best)
	return ", from " + s.exactly(*o.Worst) + " at worst to " + s.exactly(*o.Best) + " at best"
}

// ratioShown prints a ratio of utilities as a change.
func ratioShown(f *contract.Figure) Shown {
	if f == nil {
		return Shown{Value: missing}
	}
	value, interval := changeText(contract.ChangeRatio, "", f.Estimate)
	return Shown{Value: value, Interval: interval}
}

// valuesOf lists the values and bounds of one objective, for its scale.
func valuesOf(j *contract.Tradeoff, k int) (out []float64) {
	for _, p := range j.Points {
		for _, x := range []float64{p.Figures[k].Value, p.Figures[k].Lo, p.Figures[k].Hi} {
			if !math.IsNaN(x) && !math.IsInf(x, 0) {
				out = append(out, x)
			}
		}
	}
	return out
}

// plane draws the variants over two objectives, with their intervals.
func plane(j *contract.Tradeoff, a, b int) chart {
	label := func(k int) (string, scale) {
		o := j.Objectives[k]
		s := scaleOf(o.Unit, valuesOf(j, k)...)
		name := title(o.Quantity)
		if unit := strings.TrimSpace(s.unit); unit != "" {
			name += ", " + unit
		}
		return name + " (" + o.Better + " is better)", s
	}
	xName, xs := label(a)
	yName, ys := label(b)
	ch := chart{Title: title(j.Objectives[a].Quantity) + " against " + title(j.Objectives[b].Quantity), XLabel: xName, YLabel: yName}
	ch.About = "each variant with its intervals; those that another dominates are named"
	x, okX := around(valuesOf(j, a), xs.by, false)
	y, okY := around(valuesOf(j, b), ys.by, true)
	if !okX || !okY {
		ch.Empty = "nothing was measured"
		return ch
	}
	ch.XTicks, ch.YTicks = x.ticks(5), y.ticks(4)
	for i, p := range j.Points {
		ch.point(x, y, xs, ys, p, p.Figures[a].Estimate, p.Figures[b].Estimate, i)
	}
	return ch
}

// around is an axis over the values with a little room, in the unit of a scale.
func around(values []float64, by float64, vertical bool) (axis, bool) {
	if len(values) == 0 {
		return axis{}, false
	}
	lo, hi := slices.Min(values)*by, slices.Max(values)*by
	room := (hi - lo) * .1
	if room == 0 {
		room = math.Max(math.Abs(hi)*.1, 1e-9)
	}
	if lo >= 0 { // what cannot be negative is not drawn so
		lo = math.Max(0, lo-room)
	} else {
		lo -= room
	}
	if vertical {
		return yAxis(lo, hi+room), true
	}
	return xAxis(lo, hi+room, false), true
}

// point adds one variant.
func (c *chart) point(x, y axis, xs, ys scale, p contract.Point, ex, ey stat.Estimate, place int) {
	name := p.Variant
	if len(p.By) > 0 {
		name += ", dominated by " + strings.Join(p.By, ", ")
	}
	class := seriesClass(place)
	c.Legend = append(c.Legend, legend{name, class})
	if math.IsNaN(ex.Value+ey.Value) || math.IsInf(ex.Value+ey.Value, 0) {
		return
	}
	px, py := x.at(ex.Value*xs.by), y.at(ey.Value*ys.by)
	var bars path
	end := func(v float64, a axis, by, edge float64) float64 {
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return edge // it does not end in the picture
		}
		return a.at(v * by)
	}
	bars.to(end(ex.Lo, x, xs.by, plotLeft), py)
	bars.to(end(ex.Hi, x, xs.by, chartWidth-plotRight), py)
	bars.down = false
	bars.to(px, end(ey.Lo, y, ys.by, chartHeight-plotBottom))
	bars.to(px, end(ey.Hi, y, ys.by, plotTop))
	tip := name + ": " + figured(xs, ex) + "; " + figured(ys, ey)
	c.Lines = append(c.Lines, line{bars.b.String(), class, tip})
	c.Dots = append(c.Dots, dot{px, py, "d" + strings.TrimPrefix(class, "c"), tip})
}

func figured(s scale, e stat.Estimate) string {
	value, interval := s.figure(e)
	return strings.TrimSpace(value + " " + interval)
}

// grid lays the front out for a terminal.
func (f front) grid() *grid {
	g := new(grid)
	head := []string{"  trade-off"}
	for _, h := range f.Head[1:] {
		head = append(head, shorten(h, 32))
	}
	g.add(texts(head...))
	for _, r := range f.Rows {
		row := texts("  " + r.Name)
		for _, c := range r.Cells {
			row = append(row, figureCell(c))
		}
		g.add(row)
	}
	return g
}

// fronts writes the trade-offs of the joint clauses.
func (p *page) fronts(d *Document) {
	for _, f := range documentFronts(d) {
		p.line("")
		p.text("", f.Name+" · "+f.About, boldPaint)
		f.grid().write(p)
	}
}

func markdownFront(line func(string, ...any), f front) {
	line("\n### Trade-off: %s\n\n%s\n", escape(f.Name), escape(f.About))
	var head []string
	for _, h := range f.Head {
		head = append(head, escape(h))
	}
	line("| %s |", strings.Join(head, " | "))
	line("|%s", strings.Repeat(" --- |", len(head)))
	for _, r := range f.Rows {
		cells := []string{escape(r.Name)}
		for _, c := range r.Cells {
			cells = append(cells, escape(figureText(c)))
		}
		line("| %s |", strings.Join(cells, " | "))
	}
}
