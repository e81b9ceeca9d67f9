package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/record"
)

// figureView is a figure of a check as renderers lay it out: as a drawing, and
// always as a table, which needs neither colours nor eyes.
type figureView struct {
	Title, About string
	Head         []string
	Rows         [][]string
	Chart        *chart // of curves
	Heat         *heatView
}

// heatView is a heat map with its places.
type heatView struct {
	Width, Height  float64
	X, Y           string // labels of the axes
	MidX, MidY     float64
	Columns, Lines []tick // labels, with their places
	Tiles          []tile
	Least, Most    string // what the ends of the scale stand for
	Scale          []tile
	ScaleX         float64 // where the text behind the scale begins
	ScaleY         float64
	Better         string
}

// tile is a cell of a heat map, or a step of its scale.
type tile struct {
	X, Y, W, H   float64
	MidX, MidY   float64
	Class        string // good or bad: which colour; void: there is no number
	Strength     string // opacity of the colour
	Value, Under string // printed in it
	Tip          string
}

func figureViews(d *Document, c *Checked) (out []figureView) {
	if c == nil {
		return nil
	}
	for i := range c.Figures {
		f := &c.Figures[i]
		// What was read from a file may be anything.
		if f.Validate() != nil {
			continue
		}
		v := figureView{Title: f.Title, About: f.About}
		if f.Heat != nil {
			v.Head, v.Rows = heatTable(f)
			v.Heat = heatDrawing(f)
		} else {
			v.Head, v.Rows = curveTable(f)
			v.Chart = curveDrawing(d, f)
		}
		out = append(out, v)
	}
	return out
}

// curveTable tells the points: a row for each place, a column for each curve.
func curveTable(f *check.Figure) (head []string, rows [][]string) {
	head = []string{f.X}
	for _, c := range f.Curves {
		head = append(head, c.Name)
	}
	for _, x := range curvePlaces(f) {
		row := []string{plain(x, 6)}
		for _, c := range f.Curves {
			text := missing
			if i := slices.IndexFunc(c.Points, func(p check.Point) bool { return p.X == x }); i >= 0 {
				text = pointText(c.Points[i])
			}
			row = append(row, text)
		}
		rows = append(rows, row)
	}
	return head, rows
}

// curvePlaces are all that some curve has a point at, in order.
func curvePlaces(f *check.Figure) (places []float64) {
	for _, c := range f.Curves {
		for _, p := range c.Points {
			places = append(places, p.X)
		}
	}
	slices.Sort(places)
	return slices.Compact(places)
}

// pointText is a value with its interval and its number of cases.
func pointText(p check.Point) string {
	s := plain(p.Y, 3)
	if p.Low != nil {
		s += fmt.Sprintf(" [%s, %s]", plain(*p.Low, 3), plain(*p.High, 3))
	}
	if p.N > 0 {
		s += ", n " + fixed(float64(p.N), 0)
	}
	return s
}

// heatTable tells the cells.
func heatTable(f *check.Figure) (head []string, rows [][]string) {
	corner := f.Y
	if f.X != "" {
		corner += " \\ " + f.X
	}
	head = append([]string{corner}, f.Heat.Columns...)
	for i, line := range f.Heat.Cells {
		row := []string{f.Heat.Rows[i]}
		for _, c := range line {
			text := missing
			if c.Value != nil {
				text = heatText(f.Heat, *c.Value) + ", n " + fixed(float64(c.N), 0)
				if c.Text != "" {
					text += ", " + c.Text
				}
			}
			row = append(row, text)
		}
		rows = append(rows, row)
	}
	return head, rows
}

func heatText(h *check.Heat, v float64) string {
	if h.Percent {
		return plain(100*v, 3) + " %"
	}
	return plain(v, 3)
}

// Places of a heat map, in its own units.
const (
	tileHeight = 40.0
	tileGap    = 2.0
	heatBottom = 74.0
	letter     = 7.2 // an average character of the labels
	leastTile  = 62.0
)

// heatDrawing lays a heat map out. Blue is the good end and orange the bad one, both
// fading to the middle, so that they part for every eye; each cell says its number,
// and one without is crossed out.
func heatDrawing(f *check.Figure) *heatView {
	h := f.Heat
	left := 12.0
	for _, r := range h.Rows {
		left = math.Max(left, 12+letter*float64(columns(shorten(r, 18))))
	}
	if f.Y != "" {
		left += 20
	}
	n := float64(max(1, len(h.Columns)))
	width := math.Max(leastTile, (chartWidth-left-8)/n)
	v := &heatView{
		Width: round(left + n*width + 8), Height: round(plotTop + tileHeight*float64(len(h.Rows)) + heatBottom), X: f.X, Y: f.Y,
		MidX: round(left + n*width/2), MidY: round(plotTop + tileHeight*float64(len(h.Rows))/2),
		Least: heatText(h, h.Least), Most: heatText(h, h.Most), Better: "smaller is better",
	}
	if h.Higher {
		v.Better = "larger is better"
	}
	for j, c := range h.Columns {
		v.Columns = append(v.Columns, tick{At: round(left + (float64(j)+.5)*width), Label: shorten(c, int(width/letter))})
	}
	for i, r := range h.Rows {
		y := plotTop + tileHeight*float64(i)
		v.Lines = append(v.Lines, tick{At: round(y + tileHeight/2 + 4), Label: shorten(r, 18), Drop: round(left - 8)})
		for j, c := range h.Cells[i] {
			v.Tiles = append(v.Tiles, heatTile(h, c, r+", "+h.Columns[j], left+width*float64(j), y, width-tileGap))
		}
	}
	v.ScaleY = round(v.Height - 12)
	at := left + letter*float64(columns(v.Least)) + 8
	for i := range 7 {
		t := tile{X: round(at + 18*float64(i)), Y: round(v.Height - 24), W: 17, H: 15}
		t.Class, t.Strength = heatColour(h, h.Least+(h.Most-h.Least)*float64(i)/6)
		v.Scale = append(v.Scale, t)
	}
	v.ScaleX = round(at + 18*7 + 6)
	return v
}

func heatTile(h *check.Heat, c check.Cell, place string, x, y, width float64) tile {
	t := tile{X: round(x), Y: round(y), W: round(width), H: tileHeight - tileGap, MidX: round(x + width/2), MidY: round(y + tileHeight/2 - 3)}
	if c.Value == nil {
		t.Class, t.Value, t.Tip = "void", missing, place+": not measured"
		if c.Text != "" {
			t.Tip += ", " + c.Text
		}
		return t
	}
	t.Class, t.Strength = heatColour(h, *c.Value)
	t.Value, t.Under = heatText(h, *c.Value), "n "+fixed(float64(c.N), 0)
	t.Tip = place + ": " + t.Value + ", " + t.Under
	if c.Text != "" {
		t.Tip += ", " + c.Text
	}
	return t
}

// heatColour is where a number stands between the bad end and the good one. The
// strongest colour still lets the text in front of it be read.
func heatColour(h *check.Heat, v float64) (class, strength string) {
	good := math.Min(1, math.Max(0, (v-h.Least)/(h.Most-h.Least)))
	if !h.Higher {
		good = 1 - good
	}
	class = "good"
	if good < .5 {
		class = "bad"
	}
	return class, plain(.5*math.Abs(2*good-1), 2)
}

// mostDots is up to how many points of a curve are marked.
const mostDots = 40

// curveDrawing lays curves out. Each has its colour and its way of being dashed.
func curveDrawing(d *Document, f *check.Figure) *chart {
	c := &chart{Title: f.Title, About: f.About, XLabel: f.X, YLabel: f.Y}
	loX, hiX, loY, hiY := curveRanges(f)
	if loX > hiX {
		c.Empty = "nothing was measured"
		return c
	}
	if hiX <= loX {
		pad := math.Max(math.Abs(loX)*.1, 1)
		if f.LogX {
			loX, hiX = loX/1.5, hiX*1.5
		} else {
			loX, hiX = loX-pad, hiX+pad
		}
	}
	x := xAxis(loX, hiX, f.LogX)
	by := step(hiY-math.Min(loY, 0), 4)
	y := yAxis(math.Min(0, math.Floor(loY/by+1e-9)*by), math.Max(by, math.Ceil(hiY/by-1e-9)*by))
	if f.LogX {
		c.XLabel += ", logarithmic"
	}
	c.XTicks, c.YTicks = x.ticks(6), y.ticks(4)
	if places := curvePlaces(f); f.LogX && len(places) <= 8 {
		c.XTicks = nil
		for _, v := range places {
			c.XTicks = append(c.XTicks, tick{At: x.at(v), Label: plain(v, 4)})
		}
	}
	for i, cv := range f.Curves {
		class := figureClass(d, f, i)
		dash := fmt.Sprintf(" %s s%d", class, i%6)
		var p, band path
		for _, pt := range cv.Points {
			p.to(x.at(pt.X), y.at(pt.Y))
			if len(cv.Points) <= mostDots {
				c.Dots = append(c.Dots, dot{x.at(pt.X), y.at(pt.Y), "d" + class[1:], fmt.Sprintf("%s at %s: %s", cv.Name, plain(pt.X, 6), pointText(pt))})
			}
		}
		bounded(&band, cv.Points, x, y)
		if band.b.Len() > 0 {
			c.Bands = append(c.Bands, line{band.b.String(), "d" + class[1:], cv.Name + ": interval"})
		}
		if p.b.Len() > 0 {
			c.Lines = append(c.Lines, line{p.b.String(), strings.TrimSpace(dash), cv.Name})
		}
		c.Legend = append(c.Legend, legend{cv.Name, strings.TrimSpace(dash)})
	}
	return c
}

// bounded outlines the stretches of a curve that have intervals.
func bounded(b *path, points []check.Point, x, y axis) {
	for from := 0; from < len(points); {
		to := from
		for to < len(points) && points[to].Low != nil {
			to++
		}
		if to == from {
			from++
			continue
		}
		b.down = false
		for _, p := range points[from:to] {
			b.to(x.at(p.X), y.at(*p.High))
		}
		for _, p := range slices.Backward(points[from:to]) {
			b.to(x.at(p.X), y.at(*p.Low))
		}
		b.b.WriteString("Z")
		from = to
	}
}

// figureClass is the colour of a curve: that of its variant where all are of one,
// else by its place.
func figureClass(d *Document, f *check.Figure, i int) string {
	for _, c := range f.Curves {
		if !slices.ContainsFunc(d.Variants, func(v record.VariantInfo) bool { return v.Name == c.Name }) {
			return seriesClass(i)
		}
	}
	return d.class(f.Curves[i].Name)
}

func curveRanges(f *check.Figure) (loX, hiX, loY, hiY float64) {
	loX, loY, hiX, hiY = math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)
	for _, c := range f.Curves {
		for _, p := range c.Points {
			loX, hiX = math.Min(loX, p.X), math.Max(hiX, p.X)
			loY, hiY = math.Min(loY, p.Y), math.Max(hiY, p.Y)
			if p.Low != nil {
				loY, hiY = math.Min(loY, *p.Low), math.Max(hiY, *p.High)
			}
		}
	}
	return loX, hiX, loY, hiY
}

// figures writes the tables of the figures of a check.
func (p *page) figures(d *Document, c *Checked) {
	for _, f := range figureViews(d, c) {
		p.line("")
		p.text("  ", f.Title+" · "+f.About, noPaint)
		g := new(grid)
		for _, row := range append([][]string{f.Head}, f.Rows...) {
			row = slices.Clone(row)
			row[0] = "  " + row[0]
			g.add(texts(row...))
		}
		g.write(p)
	}
}

func markdownFigures(line func(string, ...any), d *Document, c *Checked) {
	for _, f := range figureViews(d, c) {
		line("\n%s: %s\n", escape(f.Title), escape(f.About))
		for i, row := range append([][]string{f.Head}, f.Rows...) {
			cells := make([]string, len(row))
			for k := range row {
				cells[k] = escape(row[k])
			}
			line("| %s |", strings.Join(cells, " | "))
			if i == 0 {
				line("|%s", strings.Repeat(" --- |", len(row)))
			}
		}
	}
}
