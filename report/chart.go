package report

import (
	"math"
	"strconv"
	"strings"
)

// The size of a chart in its own units; the page scales it.
const (
	chartWidth  = 560.0
	chartHeight = 300.0
	plotLeft    = 58.0
	plotRight   = 40.0
	plotTop     = 12.0
	plotBottom  = 44.0
)

// chart is a drawing that the page's template writes as SVG: shapes with their
// places, ready to print.
type chart struct {
	Title  string
	About  string // one sentence for who cannot see it
	XLabel string
	YLabel string
	XTicks []tick
	YTicks []tick
	Guides []tick // horizontal lines across the plot
	Bands  []line // areas around lines
	Lines  []line
	Bars   []line // vertical strokes, for what is rare
	Dots   []dot
	Hits   []hit
	Shades []hit // shaded columns behind everything
	Legend []legend
	Empty  string // why there is nothing to draw
}

// Places of the plot, for the template.
func (chart) Width() float64  { return chartWidth }
func (chart) Height() float64 { return chartHeight }
func (chart) Left() float64   { return plotLeft }
func (chart) Right() float64  { return chartWidth - plotRight }
func (chart) Top() float64    { return plotTop }
func (chart) Bottom() float64 { return chartHeight - plotBottom }
func (chart) MidX() float64   { return (plotLeft + chartWidth - plotRight) / 2 }
func (chart) MidY() float64   { return (plotTop + chartHeight - plotBottom) / 2 }

// tick is a place on an axis with its label.
type tick struct {
	At    float64
	Label string
	Drop  float64 // how far the label of a guide is above its line
}

// line is a path in the colour of a class.
type line struct {
	Path  string
	Class string
	Tip   string
}

// dot marks a point.
type dot struct {
	X, Y  float64
	Class string
	Tip   string
}

// hit is a column that shows a tip: invisible, or shaded.
type hit struct {
	X, Width float64
	Tip      string
}

// axis maps numbers to places.
type axis struct {
	lo, hi   float64 // of the numbers
	from, to float64 // of the places
	log      bool
}

func (a axis) at(v float64) float64 {
	lo, hi := a.lo, a.hi
	if a.log {
		v, lo, hi = math.Log10(v), math.Log10(lo), math.Log10(hi)
	}
	if hi <= lo {
		return round(a.from)
	}
	return round(a.from + (a.to-a.from)*math.Min(1, math.Max(0, (v-lo)/(hi-lo))))
}

// round keeps a tenth of a unit, far below a pixel.
func round(x float64) float64 { return math.Round(x*10) / 10 }

func xAxis(lo, hi float64, log bool) axis {
	return axis{lo, hi, plotLeft, chartWidth - plotRight, log}
}
func yAxis(lo, hi float64) axis { return axis{lo, hi, chartHeight - plotBottom, plotTop, false} }

// step is the distance of ticks, a round number, so that about n fit.
func step(span float64, n int) float64 {
	if !(span > 0) || math.IsInf(span, 0) {
		return 1
	}
	raw := span / float64(n)
	unit := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, k := range []float64{1, 2, 5} {
		if k*unit >= raw*.999 {
			return k * unit
		}
	}
	return 10 * unit
}

// ticks places about n round numbers on the axis.
func (a axis) ticks(n int) []tick {
	if a.log {
		return a.logTicks(n)
	}
	by := step(a.hi-a.lo, n)
	decimals := max(0, -int(math.Floor(math.Log10(by)*1.000001)))
	var out []tick
	for i := math.Ceil(a.lo/by - 1e-9); i*by <= a.hi*(1+1e-9) && len(out) <= 4*n; i++ {
		out = append(out, tick{At: a.at(i * by), Label: fixed(i*by, decimals)})
	}
	return out
}

// logTicks places 1, 2 and 5 of each decade, only 1 and 3 over three decades, and
// only decades over five.
func (a axis) logTicks(n int) []tick {
	decades := math.Log10(a.hi / a.lo)
	ks := []float64{1, 2, 5}
	switch {
	case decades > float64(n):
		ks = []float64{1}
	case decades > 2.5:
		ks = []float64{1, 3}
	case decades < 1.2:
		ks = []float64{1, 1.5, 2, 3, 4, 5, 7}
	}
	var out []tick
	for e := math.Floor(math.Log10(a.lo)); e <= math.Ceil(math.Log10(a.hi)); e++ {
		for _, k := range ks {
			v := k * math.Pow(10, e)
			if v >= a.lo*(1-1e-9) && v <= a.hi*(1+1e-9) {
				out = append(out, tick{At: a.at(v), Label: plain(v, 3)})
			}
		}
	}
	return out
}

// widened returns a range that begins at zero and ends a little above hi.
func widened(hi float64) (float64, float64) {
	if !(hi > 0) || math.IsInf(hi, 0) {
		return 0, 1
	}
	by := step(hi, 4)
	return 0, math.Ceil(hi/by-1e-9) * by
}

// path draws a polyline; a NaN lifts the pen.
type path struct {
	b    strings.Builder
	down bool
}

func (p *path) to(x, y float64) {
	if math.IsNaN(y) {
		p.down = false
		return
	}
	verb := byte('L')
	if !p.down {
		verb = 'M'
	}
	p.down = true
	p.b.WriteByte(verb)
	p.b.WriteString(strconv.FormatFloat(x, 'f', -1, 64))
	p.b.WriteByte(' ')
	p.b.WriteString(strconv.FormatFloat(y, 'f', -1, 64))
}

// cumulative draws the distributions of one metric, one line a variant.
func cumulative(curves []Curve, classOf func(string) string, dots func(c Curve) []quoted) chart {
	c := chart{About: "cumulative distributions, one line a variant"}
	lo, hi := math.Inf(1), 0.0
	for _, cv := range curves {
		c.Title = cv.Title
		for _, p := range cv.Points {
			hi = math.Max(hi, p.Value)
			lo = math.Min(lo, p.Value)
		}
	}
	if !(hi > 0) {
		c.Empty = "no request has a value above zero"
		return c
	}
	s := scaleOf(curves[0].Unit, hi)
	c.XLabel = strings.TrimSpace(s.unit)
	lo, hi = lo*s.by, hi*s.by
	x := xAxis(0, hi*1.02, false)
	if lo > 0 && hi/lo > 8 {
		x = xAxis(lo*.95, hi*1.05, true)
		c.XLabel += ", logarithmic"
	} else if lo > .4*hi {
		by := step(hi-lo, 4)
		x = xAxis(math.Max(0, math.Floor(lo/by)*by), hi+.02*(hi-lo), false)
		if hi <= lo {
			x = xAxis(lo*.9, lo*1.1, false)
		}
	}
	y := yAxis(0, 1)
	c.XTicks = x.ticks(6)
	for _, v := range []float64{0, .25, .5, .75, 1} {
		c.YTicks = append(c.YTicks, tick{At: y.at(v), Label: fixed(100*v, 0) + " %"})
	}
	// p95 and p99 are so close that their labels must part.
	c.Guides = []tick{{y.at(.5), "p50", -4}, {y.at(.95), "p95", -9}, {y.at(.99), "p99", 0}}
	for _, cv := range curves {
		var p path
		p.to(x.at(cv.Points[0].Value*s.by), y.at(0))
		last := y.at(0)
		for _, pt := range cv.Points {
			px, py := x.at(pt.Value*s.by), y.at(pt.Share)
			p.to(px, last)
			p.to(px, py)
			last = py
		}
		tip := cv.Variant + ": " + count(cv.N, "request")
		if cv.Over > 0 {
			tip += ", of which " + fixed(float64(cv.Over), 0) + " failed and lie beyond the end of the line"
		}
		c.Lines = append(c.Lines, line{p.b.String(), classOf(cv.Variant), tip})
		for _, q := range dots(cv) {
			c.Dots = append(c.Dots, dot{x.at(q.Value * s.by), y.at(q.P), "d" + classOf(cv.Variant)[1:], cv.Variant + " p" + plain(q.P*100, 4) + ": " + q.Text})
		}
	}
	return c
}

// quoted is a point of a distribution with its text.
type quoted struct {
	P, Value float64
	Text     string
}

// trace is one line of a chart over time; NaN is a gap.
type trace struct {
	name, class string
	values      []float64
	bars        bool // strokes where the value is above zero
}

// mostHits bounds the columns with tips.
const mostHits = 300

// overTime draws traces of equal bins against seconds.
func overTime(title, unit string, bin int, traces []trace) chart {
	c := chart{Title: title, XLabel: "seconds since the start", YLabel: unit, About: title + " over time"}
	bins, hi := 0, 0.0
	for _, t := range traces {
		bins = max(bins, len(t.values))
		for _, v := range t.values {
			if !math.IsNaN(v) {
				hi = math.Max(hi, v)
			}
		}
	}
	drawn := false
	for _, t := range traces {
		for _, v := range t.values {
			drawn = drawn || !math.IsNaN(v)
		}
	}
	if !drawn {
		c.Empty = "nothing was measured"
		return c
	}
	x := xAxis(0, float64(max(bins, 1)*bin), false)
	y := yAxis(widened(hi))
	c.XTicks, c.YTicks = x.ticks(6), y.ticks(4)
	for _, t := range traces {
		var p path
		for i, v := range t.values {
			at := x.at((float64(i) + .5) * float64(bin))
			if !t.bars {
				p.to(at, yOf(y, v))
				alone := (i == 0 || math.IsNaN(t.values[i-1])) && (i == len(t.values)-1 || math.IsNaN(t.values[i+1]))
				if alone && !math.IsNaN(v) {
					p.to(at+.1, yOf(y, v)) // a point of its own is seen by its round cap
				}
			} else if v > 0 {
				p.down = false
				p.to(at, y.at(0))
				p.to(at, y.at(v))
			}
		}
		l := line{p.b.String(), t.class, t.name}
		if l.Path == "" {
			continue
		}
		if t.bars {
			c.Bars = append(c.Bars, l)
		} else {
			c.Lines = append(c.Lines, l)
		}
	}
	if bins <= mostHits {
		c.Hits = hits(x, bins, bin, unit, traces)
	}
	return c
}

func yOf(y axis, v float64) float64 {
	if math.IsNaN(v) {
		return v
	}
	return y.at(v)
}

// hits tells the values of each bin.
func hits(x axis, bins, bin int, unit string, traces []trace) (out []hit) {
	for i := range bins {
		from, to := x.at(float64(i*bin)), x.at(float64((i+1)*bin))
		tip := fixed(float64(i*bin), 0) + " s"
		told := false
		for _, t := range traces {
			if i < len(t.values) && !math.IsNaN(t.values[i]) && (!t.bars || t.values[i] > 0) {
				tip += "\n" + t.name + ": " + plain(t.values[i], 3) + " " + unit
				told = true
			}
		}
		if told {
			out = append(out, hit{from, round(to - from), tip})
		}
	}
	return out
}
