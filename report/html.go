package report

import (
	"bufio"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/record"
)

//go:embed page.html
var pageText string

//go:embed style.css
var styleText string

// htmlPage is parsed once. The only style is the page's own, allowed by its hash.
var htmlPage = template.Must(template.New("").Funcs(template.FuncMap{
	"sign":     func(g any) string { return sign(fmt.Sprint(g)) },
	"upper":    func(g any) string { return strings.ToUpper(fmt.Sprint(g)) },
	"sub":      func(a, b float64) float64 { return round(a - b) },
	"add":      func(a, b int) int { return a + b },
	"whole":    whole,
	"rate":     func(v float64) string { return scaleOf(contract.RequestsPerSecond).print(v) },
	"band":     bandText,
	"fit":      fitText,
	"arrived":  Arrivals.word,
	"outcomes": outcomes,
	"evidence": figureTip,
	"counted": func(w workloadView) bool {
		return w.Check == nil || slices.ContainsFunc(w.Counts, func(c contract.Counts) bool { return c.Failed > 0 })
	},
	"join": func(s []string) string { return strings.Join(s, " · ") },
}).Parse(styled(pageText+capacityText+calibrationText+instrumentText, strings.TrimSpace(styleText))))

func styled(page, style string) string {
	sum := sha256.Sum256([]byte(style))
	return strings.NewReplacer("STYLETEXT", style, "STYLEHASH", base64.StdEncoding.EncodeToString(sum[:])).Replace(page)
}

// view is the document as the page lays it out.
type view struct {
	Doc        *Document
	Name       string
	IDs        []string
	Clauses    []clauseView
	Fronts     []front
	Workloads  []workloadView
	BinText    string
	Legend     []legend
	TimeLegend []legend
	Time       []chart
	Client     []chart
	Ceilings   []string
	More       []string // reasons against the client that its line leaves out
	Facts      []fact
}

type fact struct{ Name, Text string }

type legend struct{ Name, Class string }

type clauseView struct {
	contract.Result
	Evidence []fact
	Members  []clauseView
}

type workloadView struct {
	*Workload
	About   string
	Charts  []chart
	Figures []figureView
}

// HTML writes the report as one self-contained page: it makes no network
// request, runs no script and holds all that the document has.
func HTML(w io.Writer, d *Document) error {
	v := view{Doc: d, Name: orElse(d.Run.Name, "run"), IDs: ids(d), More: moreReasons(d), Ceilings: ceilingLines(d, true), Facts: facts(d)}
	if d.Verdict != nil {
		v.Clauses, v.Fronts = clauseViews(d.Verdict.Clauses), documentFronts(d)
	}
	for i, variant := range d.Variants {
		v.Legend = append(v.Legend, legend{variant.Name, seriesClass(i)})
	}
	for i := range d.Workloads {
		v.Workloads = append(v.Workloads, workloadViewOf(d, &d.Workloads[i]))
	}
	if slices.ContainsFunc(d.Workloads, func(w Workload) bool { return w.Check == nil }) {
		v.Time, v.BinText = timeCharts(d) // checks measure no times
	}
	v.TimeLegend = v.Legend
	if slices.ContainsFunc(d.Series, func(s Series) bool { return slices.Max(s.Failed) > 0 }) {
		v.TimeLegend = append(slices.Clone(v.Legend), legend{"failed", "cf"})
	}
	v.Client = clientCharts(d.Client.Seconds)
	b := bufio.NewWriter(w)
	if err := htmlPage.ExecuteTemplate(b, "page", v); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return b.Flush()
}

// seriesClass is the colour of a variant by its place.
func seriesClass(i int) string { return fmt.Sprintf("c%d", i%6) }

func (d *Document) class(variant string) string {
	return seriesClass(max(0, slices.IndexFunc(d.Variants, func(v record.VariantInfo) bool { return v.Name == variant })))
}

func sign(grade string) string {
	switch grade {
	case contract.Pass.String():
		return "✓"
	case contract.Fail.String():
		return "✕"
	}
	return "?"
}

func whole(n any) string {
	switch n := n.(type) {
	case int:
		return fixed(float64(n), 0)
	case int64:
		return fixed(float64(n), 0)
	}
	return fmt.Sprint(n)
}

func outcomes(by map[record.Outcome]int64) string {
	var parts []string
	for _, o := range slices.Sorted(maps.Keys(by)) {
		parts = append(parts, fmt.Sprintf("%s %s", orElse(string(o), "not ended"), whole(by[o])))
	}
	return strings.Join(parts, ", ")
}

// figureTip is how a figure was found, for the curious.
func figureTip(f contract.Figure) string {
	s := fmt.Sprintf("n %s", whole(f.N))
	if f.Over > 0 {
		s += fmt.Sprintf(", of which %s failed", whole(f.Over))
	}
	if !math.IsNaN(f.Effective) && !math.IsInf(f.Effective, 0) && f.Effective > 0 && f.Effective < float64(f.N) {
		s += fmt.Sprintf(", worth %s independent ones", fixed(math.Floor(f.Effective), 0))
	}
	if f.Method != "" {
		s += "; " + f.Method
	}
	for _, w := range f.Warnings {
		s += "; " + w.Text
	}
	return s
}

func ids(d *Document) []string {
	var out []string
	if d.Run.ID != "" {
		out = append(out, d.Run.ID)
	}
	if !d.Run.Start.IsZero() {
		out = append(out, d.Run.Start.UTC().Format("2 January 2006, 15:04 UTC"))
	}
	out = append(out, fmt.Sprintf("seed %d", d.Run.Seed))
	for _, v := range d.Variants {
		s := v.Name
		if v.Model != "" {
			s += ": " + v.Model
		}
		out = append(out, s)
	}
	return out
}

func facts(d *Document) []fact {
	r := d.Run
	var out []fact
	add := func(name, text string) {
		if text != "" {
			out = append(out, fact{name, text})
		}
	}
	add("run", r.ID)
	add("state", r.State)
	if !r.Start.IsZero() {
		add("started", r.Start.UTC().Format("2006-01-02 15:04:05 UTC"))
	}
	if r.Elapsed > 0 {
		add("took", span(r.Elapsed))
	}
	add("seed", fmt.Sprint(r.Seed))
	add("salt", orElse(r.Salt, "none: prompts unsalted"))
	add("suite", r.SuiteFile)
	add("suite digest", r.Digest)
	if l := r.Lock; l != nil {
		add("depends on", l.Digest)
		add("held to", l.Held)
		add("not known", strings.Join(l.Unknown, ", "))
	}
	add("assay", r.Assay)
	return out
}

func clauseViews(results []contract.Result) []clauseView {
	var out []clauseView
	for _, r := range results {
		v := clauseView{Result: r, Members: clauseViews(r.Results)}
		var values []float64
		for _, f := range []*contract.Figure{r.Baseline, r.Candidate} {
			if f != nil {
				values = append(values, f.Value)
			}
		}
		s := scaleOf(r.Unit, values...)
		put := func(name string, f *contract.Figure) {
			if f != nil {
				value, interval := s.figure(f.Estimate)
				v.Evidence = append(v.Evidence, fact{name, strings.TrimSpace(value + " " + interval)})
			}
		}
		put("baseline", r.Baseline)
		put("candidate", r.Candidate)
		if r.Change != nil {
			value, interval := changeText(r.ChangeIs, r.Unit, r.Change.Estimate)
			v.Evidence = append(v.Evidence, fact{"change", strings.TrimSpace(value + " " + interval)})
		}
		for _, c := range r.Counts {
			v.Evidence = append(v.Evidence, fact{"requests of " + c.Variant, whole(c.Completed+c.Failed) + ", " + whole(c.Failed) + " failed, " + whole(c.Dropped) + " dropped"})
		}
		out = append(out, v)
	}
	return out
}

func workloadViewOf(d *Document, w *Workload) workloadView {
	v := workloadView{Workload: w, About: w.WorkloadInfo.Arrivals, Figures: figureViews(d, w.Check)}
	if w.WarmUp > 0 {
		v.About += fmt.Sprintf("; %s for each variant", count(w.WarmUp, "warm-up request"))
	}
	for _, name := range drawn {
		curves := slices.DeleteFunc(slices.Clone(w.Curves), func(c Curve) bool { return c.Metric != name || len(c.Points) == 0 })
		if len(curves) > 0 {
			v.Charts = append(v.Charts, cumulative(curves, d.class, w.quantiles))
		}
	}
	return v
}

// quantiles are the points of a curve that the table quotes.
func (w *Workload) quantiles(c Curve) (out []quoted) {
	for _, r := range w.Rows {
		if r.Quantity.Stat != "quantile" || r.Quantity.Metric != c.Metric || r.Scope != "" {
			continue
		}
		for _, cell := range r.Cells {
			if cell.Variant == c.Variant && cell.Figure.Defined() && !math.IsInf(cell.Figure.Value, 0) {
				out = append(out, quoted{r.Quantity.P, cell.Figure.Value, strings.TrimSpace(cell.Shown.Value + " " + cell.Shown.Interval)})
			}
		}
	}
	return out
}
