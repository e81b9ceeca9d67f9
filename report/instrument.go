package report

import (
	"bufio"
	_ "embed"
	"fmt"
	"io"
	"math"

	"github.com/assay-llm/assay/contract"
)

// Instrument is what a judge is worth, as a page shows it: figures with their
// intervals beside what is demanded of them.
type Instrument struct {
	Judge    string // who
	Assay    string // version
	About    []string
	Grade    contract.Grade
	Word     string // of the grade, as people say it of an instrument: fit
	Reason   string
	Panels   []Panel
	Findings []Demanded
	Notes    []string
}

// Panel is a picture of figures on one scale, one below the other.
type Panel struct {
	Title, About string
	Unit         string  // of the scale
	Least, Most  float64 // ends of the scale; an interval beyond is cut there
	Marks        []Mark
}

// Mark is one figure of a panel.
type Mark struct {
	Name          string
	Value, Lo, Hi *float64       // nil: not known
	N             int            // cases behind it; 0: not told
	Limits        []float64      // what is demanded
	Grade         contract.Grade // of the demand
	Plain         bool           // nothing is demanded
}

// Demanded is one demand, and what was found.
type Demanded struct {
	Name, Asks, Says, Next string
	Grade                  contract.Grade
	Supporting             bool // it can fail, and need not pass
}

//go:embed instrument.html
var instrumentText string

type instrumentView struct {
	*Instrument
	Panels []panelView
}

// panelView is a panel as the page draws it.
type panelView struct {
	Panel
	Width, Height float64
	Left, Right   float64 // of the plot
	Bottom        float64
	MidX          float64
	Ticks         []tick
	Lines         []markLine
	Table         [][]string
}

// markLine is a mark with its places.
type markLine struct {
	Name   string
	Y      float64
	From   float64 // of the interval; equal to To if there is none
	To     float64
	At     float64
	Has    bool
	Class  string
	Limits []float64
	Text   string // beside it
	Tip    string
}

// The size of a panel in its own units.
const (
	panelWidth = 760.0
	panelLeft  = 230.0
	panelRight = 190.0
	markHeight = 30.0
)

// InstrumentHTML writes the page. It makes no network request and runs no script.
func InstrumentHTML(w io.Writer, in *Instrument) error {
	in = scrub(in)
	v := instrumentView{Instrument: in}
	for i := range in.Panels {
		if p := &in.Panels[i]; len(p.Marks) > 0 && p.Least < p.Most {
			v.Panels = append(v.Panels, p.view())
		}
	}
	b := bufio.NewWriter(w)
	if err := htmlPage.ExecuteTemplate(b, "instrument", v); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return b.Flush()
}

func (p *Panel) view() panelView {
	v := panelView{Panel: *p, Width: panelWidth, Left: panelLeft, Right: panelWidth - panelRight}
	v.Bottom = markHeight*float64(len(p.Marks)) + 8
	v.Height = v.Bottom + 40
	v.MidX = (v.Left + v.Right) / 2
	x := axis{p.Least, p.Most, v.Left, v.Right, false}
	v.Ticks = x.ticks(5)
	place := func(f float64) float64 { return round(x.at(math.Min(math.Max(f, p.Least), p.Most))) }
	for i := range p.Marks {
		m := &p.Marks[i]
		l := markLine{Name: shorten(m.Name, 32), Y: round(markHeight*float64(i) + 20), Class: m.class(), Text: m.text()}
		l.Tip = m.Name + ": " + l.Text
		for _, limit := range m.Limits {
			l.Limits = append(l.Limits, place(limit))
		}
		if m.Value != nil {
			l.Has, l.At = true, place(*m.Value)
			l.From, l.To = l.At, l.At
			if m.Lo != nil && m.Hi != nil {
				l.From, l.To = place(*m.Lo), place(*m.Hi)
			}
		}
		v.Lines = append(v.Lines, l)
		v.Table = append(v.Table, []string{m.Name, l.Text, m.cases()})
	}
	return v
}

// class is the colour: of what is demanded its grade's.
func (m *Mark) class() string {
	switch {
	case m.Plain:
		return "d0"
	case m.Grade == contract.Pass:
		return "dp"
	case m.Grade == contract.Fail:
		return "df"
	}
	return "dd"
}

func (m *Mark) text() string {
	if m.Value == nil {
		return "not known"
	}
	s := fixed(*m.Value, 3)
	if m.Lo == nil || m.Hi == nil {
		return s + ", no interval"
	}
	return fmt.Sprintf("%s [%s, %s]", s, fixed(*m.Lo, 3), fixed(*m.Hi, 3))
}

func (m *Mark) cases() string {
	if m.N <= 0 {
		return ""
	}
	return fixed(float64(m.N), 0)
}
