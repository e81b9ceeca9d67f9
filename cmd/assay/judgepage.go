package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strings"

	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/judge"
	"github.com/assay-llm/assay/report"
)

// draw writes the page of a report, if it is to.
func (f *calibrating) draw(r *judge.Instrument) error {
	if f.page == "" {
		return nil
	}
	file, err := os.Create(f.page)
	if err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return errors.Join(report.InstrumentHTML(file, f.pictured(r)), file.Close())
}

// pictured lays a report on a judge out.
func (f *calibrating) pictured(r *judge.Instrument) *report.Instrument {
	_, reason, _ := strings.Cut(r.Reason, ": ")
	p := &report.Instrument{
		Judge: r.Judge, Assay: r.Assay, Grade: r.Grade, Word: fitness(r.Grade), Reason: reason, Notes: r.Warnings,
		About: []string{r.Labels, fmt.Sprintf("%d cases in %d clusters", r.Cases, r.Clusters), fmt.Sprintf("%d with people's label", r.Labelled), "yes is " + strings.Join(r.Positive, ", ")},
	}
	if r.Criterion != "" {
		p.About = append(p.About, "criterion "+r.Criterion)
	}
	shares := report.Panel{Title: "Errors", Unit: "share", Most: 1, About: "Shares of cases, with 95 % intervals. The dashed line is what is demanded: of sensitivity and specificity at least, of the others at most. Green is proven to be met, red proven not to be, brown open."}
	bias := report.Panel{Title: "Bias", Unit: "bias", About: "How far the judge's verdict moves with what should not matter, with 95 % intervals: 0 is not at all. Between the dashed lines it is tolerable."}
	for i := range r.Findings {
		k := &r.Findings[i]
		p.Findings = append(p.Findings, report.Demanded{Name: k.Name, Asks: k.Asks, Says: k.Says, Next: k.Next, Grade: k.Grade, Supporting: k.Supporting})
		if k.Figure == nil {
			continue
		}
		m := report.Mark{Name: k.Name, Value: k.Figure.Value, Lo: k.Figure.Lo, Hi: k.Figure.Hi, N: k.Figure.N, Grade: k.Grade}
		switch limit, share := f.limit(k.Name); {
		case share:
			m.Limits = []float64{limit}
			shares.Marks = append(shares.Marks, m)
		default:
			m.Limits = []float64{-limit, limit}
			bias.Marks = append(bias.Marks, m)
		}
	}
	bias.Most = widest(bias.Marks)
	bias.Least = -bias.Most
	p.Panels = []report.Panel{shares, reliability(r), bias, byPart(r), corrections(r)}
	return p
}

func fitness(g contract.Grade) string {
	switch g {
	case contract.Pass:
		return "fit"
	case contract.Fail:
		return "unfit"
	}
	return "inconclusive"
}

// limit is what is demanded of a finding, and whether that is a share.
func (f *calibrating) limit(name string) (limit float64, share bool) {
	or := func(x, usual float64) float64 {
		if x == 0 {
			return usual
		}
		return x
	}
	switch name {
	case "sensitivity", "specificity":
		return or(f.demands.Least, 0.8), true
	case "answers":
		return judge.MostErrors, true
	case "attacks":
		return or(f.demands.Vulnerable, 0.05), true
	case "repeats":
		return or(f.demands.Margin, 0.1), true
	}
	return or(f.demands.Margin, 0.1), false
}

// widest is how far a scale around 0 has to reach, in tenths.
func widest(marks []report.Mark) float64 {
	far := 0.2
	for _, m := range marks {
		for _, x := range []*float64{m.Value, m.Lo, m.Hi} {
			if x != nil {
				far = math.Max(far, math.Abs(*x))
			}
		}
	}
	return math.Ceil(10*math.Min(far, 2)-1e-9) / 10
}

func shown(name string, k *judge.Figure) (m report.Mark, ok bool) {
	if k == nil {
		return m, false
	}
	return report.Mark{Name: name, Value: k.Value, Lo: k.Lo, Hi: k.Hi, N: k.N, Plain: true}, true
}

func panel(p report.Panel, names []string, figures []*judge.Figure) report.Panel {
	for i, k := range figures {
		if m, ok := shown(names[i], k); ok {
			p.Marks = append(p.Marks, m)
		}
	}
	return p
}

// reliability is how far the judge agrees with people, and people with each other.
func reliability(r *judge.Instrument) report.Panel {
	a := r.Agreement
	p := report.Panel{Title: "Agreement", Unit: "agreement", Most: 1, About: "How far the judge agrees with people, and people among themselves: 1 is always. Kappa and alpha are 0 as by chance."}
	p = panel(p, []string{"equal labels", "kappa, whole menu", "kappa, yes and no", "people, kappa", "people, alpha"}, []*judge.Figure{a.Raw, a.Kappa, a.Binary, a.Ceiling, a.People})
	for _, m := range p.Marks {
		if m.Lo != nil && *m.Lo < p.Least {
			p.Least = math.Max(-1, math.Floor(10**m.Lo)/10)
		}
	}
	return p
}

// byPart is how sensitive and specific the judge is on each part of the cases.
func byPart(r *judge.Instrument) report.Panel {
	p := report.Panel{Title: "By part", Unit: "share", Most: 1, About: "Sensitivity and specificity on the cases of each variant, language or other column, with 95 % intervals."}
	for i := range r.Slices {
		s := &r.Slices[i]
		p = panel(p, []string{s.Column + " " + s.Value + ", sensitivity", s.Column + " " + s.Value + ", specificity"}, []*judge.Figure{s.Sensitivity, s.Specificity})
	}
	return p
}

// corrections are the shares of yes as people say, as the judge says, and corrected.
func corrections(r *judge.Instrument) report.Panel {
	p := report.Panel{Title: "Share of yes", Unit: "share", Most: 1, About: "As people say of the labelled cases, as the judge says of all, and the judge's corrected by the labels (PPI++), with 95 % intervals."}
	add := func(of string, e *judge.Estimates) {
		p = panel(p, []string{of + ", people", of + ", judge alone", of + ", corrected"}, []*judge.Figure{e.Human, e.Alone, e.Corrected})
	}
	add("all", &r.Estimates)
	for i := range r.Slices {
		add(r.Slices[i].Column+" "+r.Slices[i].Value, &r.Slices[i].Estimates)
	}
	return p
}
