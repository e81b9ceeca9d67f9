package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/assay-llm/assay/contract"
)

// spot is a point of a chart over rates.
type spot struct {
	x, y, lo, hi float64 // y NaN: none; lo and hi: its interval, NaN if it has none
	outcome      string
	tip          string
}

// capacityCharts draws what the probes measured against their rates, or numbers
// of users.
func capacityCharts(c *Capacity) []chart {
	probes := slices.Clone(c.Probes)
	slices.SortStableFunc(probes, func(a, b Probe) int { return cmp.Compare(at(&a), at(&b)) })
	unit := "requests per second offered"
	if slices.ContainsFunc(probes, func(p Probe) bool { return p.Users > 0 }) {
		unit = "users"
		if slices.ContainsFunc(probes, func(p Probe) bool { return p.Users == 0 }) {
			unit = "requests per second offered, or users"
		}
	}
	spots := func(of func(p *Probe) (y, lo, hi float64, text string)) (out []spot) {
		for i := range probes {
			p := &probes[i]
			y, lo, hi, text := of(p)
			if math.IsInf(y, 0) {
				y = math.NaN()
			}
			out = append(out, spot{at(p), y, lo, hi, p.Outcome, PointText(p) + ", " + p.Outcome + ": " + text})
		}
		return out
	}
	nan := math.NaN()
	time := func(name string, f func(p *Probe) contract.Figure) []spot {
		return spots(func(p *Probe) (float64, float64, float64, string) {
			s := scaleOf("ns", f(p).Value)
			v, interval := s.figure(f(p).Estimate)
			return f(p).Value / 1e9, nan, nan, name + " " + v + " " + interval
		})
	}
	charts := []chart{
		overRates(c, "Goodput", "good requests per second", unit, false, map[string][]spot{"": spots(func(p *Probe) (float64, float64, float64, string) {
			if p.Good == nil {
				return nan, nan, nan, none
			}
			return *p.Good, nan, nan, plain(*p.Good, 3) + " good requests per second"
		})}),
		overRates(c, "TTFT", "s, logarithmic", unit, true, map[string][]spot{
			"p50": time("p50", func(p *Probe) contract.Figure { return p.TTFTP50 }),
			"p99": time("p99", func(p *Probe) contract.Figure { return p.TTFTP99 }),
		}),
	}
	growth := spots(func(p *Probe) (float64, float64, float64, string) {
		g := p.Growth
		if !g.Defined() {
			return nan, nan, nan, none
		}
		return g.Value, g.Lo, g.Hi, fmt.Sprintf("in flight %+.3g a second, between %+.3g and %+.3g", g.Value, g.Lo, g.Hi)
	})
	if slices.ContainsFunc(growth, func(s spot) bool { return !math.IsNaN(s.y) }) {
		charts = append(charts, overRates(c, "Growth of the requests in flight", "requests per second", unit, false, map[string][]spot{"": growth}))
	}
	return charts
}

func at(p *Probe) float64 {
	if p.Users > 0 {
		return float64(p.Users)
	}
	return p.Rate
}

// overRates draws lines of spots, one a name, with the bracket shaded.
func overRates(c *Capacity, title, ylabel, xlabel string, logY bool, lines map[string][]spot) chart {
	ch := chart{Title: title, YLabel: ylabel, XLabel: xlabel, About: title + " of each probe"}
	xlo, xhi, ylo, yhi := math.Inf(1), 0.0, math.Inf(1), math.Inf(-1)
	for _, spots := range lines {
		for _, s := range spots {
			xlo, xhi = math.Min(xlo, s.x), math.Max(xhi, s.x)
			if !math.IsNaN(s.y) && (!logY || s.y > 0) {
				ylo, yhi = math.Min(ylo, s.y), math.Max(yhi, s.y)
			}
		}
	}
	if !(xhi > 0) || math.IsInf(ylo, 0) {
		ch.Empty = "nothing was measured"
		return ch
	}
	x := xAxis(0, xhi*1.05, false)
	if xhi/xlo > 6 {
		x = xAxis(xlo/1.15, xhi*1.15, true)
		ch.XLabel += ", logarithmic"
	}
	var y axis
	if logY {
		y = axis{ylo / 1.3, yhi * 1.3, chartHeight - plotBottom, plotTop, true}
	} else {
		_, top := widened(math.Max(yhi, 0))
		y = yAxis(math.Min(0, ylo), top)
	}
	ch.XTicks, ch.YTicks = x.ticks(6), y.ticks(4)
	if c.Lo != nil || c.Hi != nil {
		ch.Shades = []hit{bracketShade(c, x)}
	}
	for i, name := range sortedNames(lines) {
		ch.draw(x, y, name, i, lines[name])
	}
	return ch
}

// draw adds one line with its dots and intervals.
func (c *chart) draw(x, y axis, name string, place int, spots []spot) {
	var p, bars path
	for i, s := range spots {
		if i+1 < len(spots) && spots[i+1].x == s.x { // made again: the later, longer probe counts
			continue
		}
		if math.IsNaN(s.y) || y.log && s.y <= 0 {
			p.to(0, math.NaN())
			continue
		}
		px, py := x.at(s.x), y.at(s.y)
		p.to(px, py)
		if !math.IsNaN(s.lo) && !math.IsNaN(s.hi) {
			bars.down = false
			bars.to(px, y.at(s.lo))
			bars.to(px, y.at(s.hi))
		}
		c.Dots = append(c.Dots, dot{px, py, outcomeDot(s.outcome), s.tip})
	}
	class := seriesClass(place)
	if p.b.Len() > 0 {
		c.Lines = append(c.Lines, line{p.b.String(), class, orElse(name, c.Title)})
	}
	if bars.b.Len() > 0 {
		c.Lines = append(c.Lines, line{bars.b.String(), class, "interval"})
	}
	if name != "" {
		c.Legend = append(c.Legend, legend{name, class})
	}
}

// bracketShade is the column between the ends of the bracket; an open end lies at
// the edge.
func bracketShade(c *Capacity, x axis) hit {
	lo, hi, tip := x.from, x.to, "capacity"
	if c.Lo != nil {
		lo = x.at(*c.Lo)
		tip += " at least " + plain(*c.Lo, 4) + "/s"
	}
	if c.Hi != nil {
		hi = x.at(*c.Hi)
		tip += " below " + plain(*c.Hi, 4) + "/s"
	}
	return hit{lo, round(math.Max(1, hi-lo)), tip}
}

func outcomeDot(outcome string) string {
	switch outcome {
	case Holds:
		return "dp"
	case Fails:
		return "df"
	case Measured:
		return "d0"
	}
	return "dd"
}

func sortedNames(lines map[string][]spot) []string {
	var names []string
	for name := range lines {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
