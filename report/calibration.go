package report

import (
	"bufio"
	_ "embed"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/record"
)

// CalibrationSchema names the JSON form of a Calibration.
const CalibrationSchema = "assay.calibration/1"

// Calibration is how often a contract is right about candidates of which it is
// known what they are: identical to the baseline, or worse by a planted
// difference. Its JSON form is stable under [CalibrationSchema] and holds no NaN
// and no infinity.
type Calibration struct {
	Schema  string         `json:"schema"`
	Assay   string         `json:"assay"`
	Name    string         `json:"name"`           // of the suite, or of the run
	Source  string         `json:"source"`         // simulator or run
	Variant string         `json:"variant"`        // whose records are on both sides
	Unit    string         `json:"unit,omitempty"` // of a run: session or block, what the halves were drawn by
	Units   int            `json:"units,omitempty"`
	Repeats int            `json:"repeats"`
	Seed    uint64         `json:"seed"`
	Grade   contract.Grade `json:"grade"` // pass: the traffic supports every threshold; fail: not one of them; else too few repeats to say
	Reason  string         `json:"reason"`

	Allowed   float64        `json:"allowed"`   // share of identical candidates that the whole contract may fail
	Identical Outcomes       `json:"identical"` // of the whole contract
	Used      float64        `json:"used"`      // part of the planned requests that were sent, on average; below 1 where runs stop early
	Planted   []Planted      `json:"planted"`   // what the whole contract made of known differences
	Clauses   []Calibrated   `json:"clauses"`
	Skipped   []string       `json:"skipped,omitempty"` // clauses that were not calibrated, and why
	Alike     []SelfLikeness `json:"self_similarity"`   // values of checks, of a variant against itself
	Notes     []string       `json:"notes,omitempty"`
}

// Outcomes is what became of so many repeats.
type Outcomes struct {
	Repeats      int             `json:"repeats"`
	Pass         int             `json:"pass"`
	Fail         int             `json:"fail"`
	Inconclusive int             `json:"inconclusive"`
	PassShare    contract.Figure `json:"pass_share"` // with the exact 95 % interval
	FailShare    contract.Figure `json:"fail_share"`
}

// Planted is a difference that every request of the candidate got.
type Planted struct {
	What string `json:"what"` // "TPOT +5 %"
	Outcomes
}

// Calibrated is one clause on one workload; of a group that is no list of demands
// (any, not, count) the group as a whole.
type Calibrated struct {
	ID       string         `json:"id"`
	Need     string         `json:"need,omitempty"`
	Scope    string         `json:"scope,omitempty"`
	Grade    contract.Grade `json:"grade"` // pass: the traffic supports it; fail: it does not; else too few repeats to say
	Reason   string         `json:"reason"`
	Requests int64          `json:"requests"` // of each variant in a repeat, the median

	Allowed   float64  `json:"allowed"` // stated rate of wrong grades
	Identical Outcomes `json:"identical"`

	// What an effect is: a ratio to the baseline, a difference from it in Unit, or,
	// of a limit that is no baseline's, the level of the quantity itself in Unit.
	Scale  string       `json:"scale,omitempty"` // ratio, difference or level; "": nothing was planted
	Unit   record.Unit  `json:"unit,omitempty"`
	Same   float64      `json:"identical_at"`    // the effect of an identical candidate
	Limit  float64      `json:"limit_at"`        // the effect at the clause's limit
	Curve  []CurvePoint `json:"curve"`           // from the least effect to the greatest
	MDE    *float64     `json:"detects_at"`      // least effect that fails in 80 % of the repeats; null: none of the curve
	Needed *int64       `json:"needed_requests"` // of each variant, for identical candidates to pass in 80 %; null: unknown, or no number would do
}

// CurvePoint is what the clause made of candidates with one true effect.
type CurvePoint struct {
	Effect float64 `json:"effect"`
	Outcomes
}

// SelfLikeness is how a check's value spreads when a variant is compared with
// itself, one answer at a time and by the mean of a batch.
type SelfLikeness struct {
	Metric  string  `json:"metric"`
	Variant string  `json:"variant"`
	N       int     `json:"n"`
	Mean    float64 `json:"mean"`
	P1      float64 `json:"p1"`
	P5      float64 `json:"p5"`
	P50     float64 `json:"p50"`
	Batch   int     `json:"batch"`    // answers of a batch
	BatchP1 float64 `json:"batch_p1"` // 1 % of the means of batches lie below it
	BatchP5 float64 `json:"batch_p5"`
}

// CalibrationJSON writes the document as one object on one line, with the schema
// assay.calibration/1.
func CalibrationJSON(w io.Writer, c *Calibration) error { return writeJSON(w, c) }

// CalibrationText writes the document for a terminal.
func CalibrationText(w io.Writer, c *Calibration, o TextOptions) error {
	c = scrub(c)
	p := newPage(w, o)
	p.text("", strings.ToUpper(c.Grade.String())+": "+c.Reason, boldPaint)
	p.text("  ", strings.Join(c.about(), " · "), dimPaint)
	p.line("")
	g := &grid{tail: 1}
	g.add(texts("clause", "requests", "false alarms", "passes", "inconclusive", "detects", "needs", ""))
	for i := range c.Clauses {
		k := &c.Clauses[i]
		r := k.row()
		g.add([]cell{{first: "  " + r.Name}, {first: r.Requests}, {first: r.Alarms}, {first: r.Passes}, {first: r.Open}, {first: r.Detects}, {first: r.Needs}, {first: r.Verdict, paint: gradePaint(k.Grade)}})
	}
	whole := c.wholeRow()
	g.add([]cell{{first: "  " + whole.Name}, {first: ""}, {first: whole.Alarms}, {first: whole.Passes}, {first: whole.Open}, {first: ""}, {first: ""}, {first: ""}})
	g.write(p)
	p.line("")
	for i := range c.Clauses {
		k := &c.Clauses[i]
		p.reason("  "+k.name()+": ", 4, k.Reason)
		for _, l := range k.textCurve() {
			p.line("    " + l)
		}
	}
	if len(c.Planted) > 0 {
		p.line("")
		p.line("Known differences, judged by the whole contract")
		g := &grid{}
		g.add(texts("  planted", "found", "passed", "inconclusive"))
		for _, d := range c.Planted {
			g.add(texts("  "+d.What, shareOf(d.FailShare), shareOf(d.PassShare), partOf(d.Inconclusive, d.Repeats)))
		}
		g.write(p)
	}
	c.textAlike(p)
	p.line("")
	for _, s := range append(append([]string{}, c.Skipped...), c.Notes...) {
		p.text("  ", s, dimPaint)
	}
	return p.w.Flush()
}

func (c *Calibration) textAlike(p *page) {
	if len(c.Alike) == 0 {
		return
	}
	p.line("")
	p.line("A variant against itself")
	g := &grid{}
	g.add(texts("  value", "answers", "mean", "p1", "p5", "median", "batch", "1 % of batches below", "5 % below"))
	for _, a := range c.Alike {
		g.add(texts("  "+a.Metric+" of "+a.Variant, plain(float64(a.N), 6), plain(a.Mean, 3), plain(a.P1, 3), plain(a.P5, 3), plain(a.P50, 3), fmt.Sprint(a.Batch), plain(a.BatchP1, 3), plain(a.BatchP5, 3)))
	}
	g.write(p)
}

// about says what was repeated.
func (c *Calibration) about() []string {
	out := []string{c.Name, fmt.Sprintf("%s against itself", c.Variant)}
	if c.Source == "run" {
		out = append(out, fmt.Sprintf("random halves of %s", count(c.Units, c.Unit)))
	} else {
		out = append(out, "simulated")
	}
	if c.Used > 0 && c.Used < 1 {
		out = append(out, fmt.Sprintf("runs that stop early, after %s of their requests on average", percent(c.Used)))
	}
	return append(out, count(c.Repeats, "repeat"), fmt.Sprintf("seed %d", c.Seed))
}

// Whole writes a number as reports do: 12,400.
func Whole(n int64) string { return fixed(float64(n), 0) }

// calibratedRow is a clause as tables show it.
type calibratedRow struct{ Name, Requests, Alarms, Passes, Open, Detects, Needs, Verdict string }

func (k *Calibrated) name() string {
	if k.Scope != "" {
		return k.ID + " (" + k.Scope + ")"
	}
	return k.ID
}

func (k *Calibrated) row() calibratedRow {
	r := calibratedRow{
		Name: k.name(), Requests: fixed(float64(k.Requests), 0), Alarms: shareOf(k.Identical.FailShare), Passes: shareOf(k.Identical.PassShare),
		Open: partOf(k.Identical.Inconclusive, k.Identical.Repeats), Detects: missing, Needs: missing,
		Verdict: map[contract.Grade]string{contract.Pass: "supported", contract.Fail: "NOT SUPPORTED", contract.Inconclusive: "too few repeats"}[k.Grade],
	}
	if k.Requests == 0 {
		r.Requests = missing
	}
	if k.MDE != nil {
		r.Detects = k.effect(*k.MDE)
	}
	if k.Needed != nil {
		r.Needs = fixed(float64(*k.Needed), 0)
	}
	return r
}

func (c *Calibration) wholeRow() calibratedRow {
	return calibratedRow{Name: "whole contract", Alarms: shareOf(c.Identical.FailShare), Passes: shareOf(c.Identical.PassShare), Open: partOf(c.Identical.Inconclusive, c.Identical.Repeats)}
}

// effect writes an effect on the clause's scale: "+5 %", "+0.5 pt", "840 ms".
func (k *Calibrated) effect(v float64) string {
	switch {
	case k.Scale == "ratio":
		return signedPlain((v-1)*100, 3) + " %"
	case k.Scale == "difference" && k.Unit == record.Proportion:
		return signedPlain(v*100, 3) + " pt"
	}
	s := scaleOf(k.Unit, v)
	if k.Scale == "difference" {
		return signedPlain(v*s.by, 3) + s.unit
	}
	return plain(v*s.by, 4) + s.unit
}

func signedPlain(v float64, figures int) string {
	if t := plain(v, figures); v > 0 && t != "0" {
		return "+" + t
	}
	return plain(v, figures)
}

// shareOf writes a share with its interval in per cent.
func shareOf(f contract.Figure) string {
	if !f.Defined() {
		return missing
	}
	return fmt.Sprintf("%s %% [%s, %s]", plain(f.Value*100, 3), plain(f.Lo*100, 2), plain(f.Hi*100, 2))
}

func partOf(k, n int) string {
	if n == 0 {
		return missing
	}
	return plain(100*float64(k)/float64(n), 3) + " %"
}

// barWidth is how many columns a bar of the text chart has.
const barWidth = 40

// textCurve draws the curve in characters: a line an effect, # for candidates that
// fail, . for undecided ones, = for those that pass.
func (k *Calibrated) textCurve() []string {
	if len(k.Curve) == 0 {
		return nil
	}
	width := 0
	for _, p := range k.Curve {
		width = max(width, columns(k.effect(p.Effect)))
	}
	var out []string
	for _, p := range k.Curve {
		n := float64(max(p.Repeats, 1))
		fail := int(math.Round(barWidth * float64(p.Fail) / n))
		pass := min(barWidth-fail, int(math.Round(barWidth*float64(p.Pass)/n)))
		mark := ""
		switch p.Effect {
		case k.Same:
			mark = "  identical"
		case k.Limit:
			mark = "  limit"
		}
		effect := k.effect(p.Effect)
		out = append(out, strings.Repeat(" ", width-columns(effect))+effect+" |"+strings.Repeat("#", fail)+strings.Repeat(".", barWidth-fail-pass)+strings.Repeat("=", pass)+
			fmt.Sprintf("| fails %s, passes %s%s", partOf(p.Fail, p.Repeats), partOf(p.Pass, p.Repeats), mark))
	}
	return out
}

//go:embed calibration.html
var calibrationText string

// calibrationView is the document as its page lays it out.
type calibrationView struct {
	*Calibration
	About   []string
	Rows    []calibratedRow
	Whole   calibratedRow
	Found   []calibratedRow // planted differences: Alarms holds the share found
	Charts  []chart
	Reasons []fact
	More    []string
}

// CalibrationHTML writes the document as one self-contained page.
func CalibrationHTML(w io.Writer, c *Calibration) error {
	c = scrub(c)
	v := calibrationView{Calibration: c, About: c.about(), Whole: c.wholeRow(), More: append(append([]string{}, c.Skipped...), c.Notes...)}
	for i := range c.Clauses {
		k := &c.Clauses[i]
		v.Rows = append(v.Rows, k.row())
		v.Reasons = append(v.Reasons, fact{k.name() + ": " + k.Need, k.Reason})
		if len(k.Curve) > 0 {
			v.Charts = append(v.Charts, k.chart())
		}
	}
	for _, d := range c.Planted {
		v.Found = append(v.Found, calibratedRow{Name: d.What, Alarms: shareOf(d.FailShare), Passes: shareOf(d.PassShare), Open: partOf(d.Inconclusive, d.Repeats)})
	}
	b := bufio.NewWriter(w)
	if err := htmlPage.ExecuteTemplate(b, "calibration", v); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return b.Flush()
}

// chart draws the shares that fail and that pass over the true effect.
func (k *Calibrated) chart() chart {
	c := chart{
		Title: k.name() + ": " + k.Need, XLabel: "true effect", YLabel: "% of repeats",
		About: "share of candidates that fail and that pass, by their true effect",
	}
	shown := func(v float64) float64 { // as the axis counts
		switch {
		case k.Scale == "ratio":
			return (v - 1) * 100
		case k.Unit == record.Proportion:
			return v * 100
		}
		return v * scaleOf(k.Unit, k.Limit, k.Curve[len(k.Curve)-1].Effect).by
	}
	switch {
	case k.Scale == "ratio":
		c.XLabel += ", % against the baseline"
	case k.Unit == record.Proportion && k.Scale == "difference":
		c.XLabel += ", points against the baseline"
	default:
		c.XLabel += strings.TrimRight(","+scaleOf(k.Unit, k.Limit).unit, ",")
	}
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, p := range k.Curve {
		lo, hi = math.Min(lo, shown(p.Effect)), math.Max(hi, shown(p.Effect))
	}
	x, y := xAxis(lo, hi, false), yAxis(0, 100)
	c.XTicks, c.YTicks = x.ticks(6), y.ticks(5)
	c.Guides = []tick{{At: y.at(80), Label: "80 %"}}
	c.Shades = []hit{{X: round(x.at(shown(k.Limit)) - 1), Width: 2, Tip: "limit: " + k.effect(k.Limit)}}
	for i, part := range []struct {
		name string
		of   func(o Outcomes) contract.Figure
	}{{"fails", func(o Outcomes) contract.Figure { return o.FailShare }}, {"passes", func(o Outcomes) contract.Figure { return o.PassShare }}} {
		var spots []spot
		for _, p := range k.Curve {
			f := part.of(p.Outcomes)
			spots = append(spots, spot{shown(p.Effect), 100 * f.Value, 100 * f.Lo, 100 * f.Hi, Measured, fmt.Sprintf("%s: %s %s", k.effect(p.Effect), part.name, shareOf(f))})
		}
		c.draw(x, y, part.name, i, spots)
	}
	return c
}
