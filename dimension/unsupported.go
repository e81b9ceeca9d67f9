package dimension

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/stat"
	"github.com/assay-llm/assay/stat/compare"
)

// write puts what is known of answers on the records of the first ones; further ones
// have, by definition, no numbers.
func (c *HallucinationConfig) write(p *check.Pass, inquiries []*passageCase) {
	values := hallucinationValues(c)
	how := "facts and names by rules"
	if !c.Judge.IsZero() {
		k := support()
		how = fmt.Sprintf("sentences judged by %s, instructions %s", c.Judge.Name(), k.Digest())
	}
	for _, v := range values {
		s := check.Signature{Value: v.Name, Estimator: how}
		if v.Name == "surprise" || v.Name == "selfcheck" {
			s.Estimator = fmt.Sprintf("the answer at temperature 0 beside %d at %g", c.Samples, temperature(c))
		}
		p.Sign(s)
	}
	for _, q := range inquiries {
		for r, t := range q.trials {
			for v := range p.Variants {
				switch {
				case t == nil:
				case r > 0:
					for _, value := range values {
						if !value.Whole {
							t.Exempt(v, value.Name)
						}
					}
				default:
					c.set(t, v, q)
				}
			}
		}
	}
}

func temperature(c *HallucinationConfig) float64 {
	if c.Temperature == nil {
		return 1
	}
	return *c.Temperature
}

// set writes the numbers of one answer.
func (c *HallucinationConfig) set(t *check.Trial, v int, q *passageCase) {
	if c.grounded() && !q.open {
		t.Exempt(v, "invented")
	}
	if !q.asks {
		t.Exempt(v, "wrong")
		t.Exempt(v, "abstained")
	}
	g := q.answers[v]
	if g == nil {
		return
	}
	if c.grounded() {
		c.setClaims(t, v, g)
		if q.open && g.is != unreadable {
			t.Set(v, "invented", yes(g.is == wrong))
		}
	}
	if q.asks {
		switch g.is {
		case abstains:
			t.Exempt(v, "wrong")
		case right, wrong:
			t.Set(v, "wrong", yes(g.is == wrong))
		}
		if !g.unjudged {
			t.Set(v, "abstained", yes(g.is == abstains))
		}
	}
	if c.Samples > 0 {
		t.Set(v, "surprise", g.surprise)
		if !c.Judge.IsZero() {
			t.Set(v, "selfcheck", g.selfcheck)
		}
	}
}

// setClaims writes what an answer claims. One without claims has no share of them,
// and is no faithful answer either.
func (c *HallucinationConfig) setClaims(t *check.Trial, v int, g *grounded) {
	switch {
	case g.unclear == 0 && g.claims == 0:
		t.Exempt(v, "unsupported")
		t.Exempt(v, "unsupported_share")
	case g.unclear == 0:
		t.Set(v, "unsupported", yes(g.unsupported > 0))
		t.Set(v, "unsupported_share", float64(g.unsupported)/float64(g.claims))
	case g.unsupported > 0:
		t.Set(v, "unsupported", 1)
	}
	if g.unclear == 0 {
		t.Set(v, "claims", float64(g.claims))
	}
}

// parts are the claims of each variant, by cluster in one order; missing counts the
// answers of which some are not known.
func parts(p *check.Pass, inquiries []*passageCase) (out [][]compare.Part, missing []int) {
	by := make(map[string][]compare.Part)
	missing = make([]int, len(p.Variants))
	for _, q := range inquiries {
		if q.trials[0] == nil {
			continue
		}
		cluster := cmp.Or(q.trials[0].Shot.Cluster, q.ID)
		if by[cluster] == nil {
			by[cluster] = make([]compare.Part, len(p.Variants))
		}
		for v, g := range q.answers {
			switch {
			case g == nil:
			case g.unclear > 0:
				missing[v]++
			default:
				by[cluster][v].Events += float64(g.unsupported)
				by[cluster][v].Of += float64(g.claims)
			}
		}
	}
	out = make([][]compare.Part, len(p.Variants))
	for _, cluster := range slices.Sorted(maps.Keys(by)) {
		for v := range out {
			out[v] = append(out[v], by[cluster][v])
		}
	}
	return out, missing
}

// estimate writes the ratio of unsupported claims to all.
func (c *HallucinationConfig) estimate(p *check.Pass, inquiries []*passageCase) {
	if !c.grounded() {
		return
	}
	all, missing := parts(p, inquiries)
	for v := range p.Variants {
		p.Estimate(check.Estimate{Value: "rate", Variant: v, Missing: missing[v], Of: func(confidence float64) stat.Estimate { return compare.Ratio(all[v], confidence) }})
		if v > 0 {
			p.Estimate(check.Estimate{Value: "rate", Variant: v, Change: record.Difference, Missing: missing[v] + missing[0], Of: func(confidence float64) stat.Estimate {
				return compare.RatioDifference(all[v], all[0], confidence)
			}})
		}
	}
}

// account is how many answers of one variant are what.
type account struct {
	claims, unsupported, without, capped, unclear int // claims; answers without; sentences not judged; answers not known
	asked, right, wrong, abstained, unread        int // of questions that are answered
	open, invented, declined                      int // of those that are not
	worst                                         *passageCase
}

func accounts(inquiries []*passageCase, v int) (a account) {
	for _, q := range inquiries {
		g := q.answers[v]
		if g == nil {
			continue
		}
		a.claims, a.unsupported, a.capped = a.claims+g.claims, a.unsupported+g.unsupported, a.capped+g.capped
		switch {
		case g.unclear > 0:
			a.unclear++
		case g.claims == 0:
			a.without++
		}
		if g.unsupported > 0 && (a.worst == nil || g.unsupported > a.worst.answers[v].unsupported) {
			a.worst = q
		}
		switch {
		case q.open:
			a.open++
			a.invented += int(yes(g.is == wrong))
			a.declined += int(yes(g.is == abstains))
		case q.asks:
			a.asked++
			a.right += int(yes(g.is == right))
			a.wrong += int(yes(g.is == wrong))
			a.abstained += int(yes(g.is == abstains))
			a.unread += int(yes(g.is == unreadable))
		}
	}
	return a
}

// report says what each variant makes up, with examples.
func (c *HallucinationConfig) report(p *check.Pass, inquiries []*passageCase) {
	all, _ := parts(p, inquiries)
	for v, s := range p.Variants {
		a := accounts(inquiries, v)
		if c.grounded() && a.claims > 0 {
			e := compare.Ratio(all[v], shown)
			f := check.Finding{Severity: check.Info, Code: "unsupported_claims", Variant: s.Name, Figures: figures("rate", e)}
			f.Text = fmt.Sprintf("of %d claims %d have no support in the source: %s", a.claims, a.unsupported, interval(e))
			if q := a.worst; q != nil {
				f.Case, f.Bodies = q.ID, []string{p.Keep(q.answers[v].text)}
				f.Text += fmt.Sprintf("; most in case %s, such as %q", q.ID, head(q.answers[v].invention))
				f.Hint = "look at the answer, and whether the source has it in other words"
			}
			p.Report(f)
		}
		if a.asked > 0 {
			p.Report(standings(s.Name, a))
		}
		if a.open > 0 {
			e := stat.ExactShare(a.invented, a.invented+a.declined, shown)
			f := check.Finding{Severity: check.Info, Code: "invented", Variant: s.Name, Figures: figures("invented", e)}
			f.Text = fmt.Sprintf("of %d questions that the source does not answer %d were answered all the same, %d declined, %d answers could not be read", a.open, a.invented, a.declined, a.open-a.invented-a.declined)
			p.Report(f)
		}
		c.notes(p, s.Name, a)
		c.rank(p, v, inquiries)
	}
}

// standings tells right, wrong and abstaining apart.
func standings(variant string, a account) check.Finding {
	w, abst := stat.ExactShare(a.wrong, a.wrong+a.right, shown), stat.ExactShare(a.abstained, a.asked, shown)
	f := check.Finding{Severity: check.Info, Code: "answers", Variant: variant, Figures: figures("wrong", w)}
	maps.Copy(f.Figures, figures("abstained", abst))
	f.Text = fmt.Sprintf("of %d questions %d were answered rightly and %d wrongly (%s), %d not answered (%s), and %d answers could not be read", a.asked, a.right, a.wrong, interval(w), a.abstained, interval(abst), a.unread)
	if a.abstained > 0 {
		f.Hint = "let clauses judge share(hallucination.wrong) and share(hallucination.abstained) both: else refusing wins"
	}
	return f
}

func (c *HallucinationConfig) notes(p *check.Pass, variant string, a account) {
	if c.grounded() && a.without > 0 {
		p.Note("%s: %d answers make no claim that can be checked; they are left out of the shares of claims", variant, a.without)
	}
	if a.capped > 0 {
		p.Note("%s: %d sentences beyond the first %d of an answer were not judged", variant, a.capped, cmp.Or(c.MaxClaims, 12))
	}
	if a.unclear > 0 {
		p.Note("%s: of %d answers the judge had no verdict on some sentence; they are missing where that matters", variant, a.unclear)
	}
}

// listed is how many answers a ranking names.
const listed = 5

// rank names the answers that further ones bear out least, for people to label.
func (c *HallucinationConfig) rank(p *check.Pass, v int, inquiries []*passageCase) {
	if c.Samples == 0 {
		return
	}
	score, name := func(g *grounded) float64 { return g.surprise }, "surprise"
	if !c.Judge.IsZero() {
		score, name = func(g *grounded) float64 { return g.selfcheck }, "selfcheck"
	}
	var known []*passageCase
	for _, q := range inquiries {
		if g := q.answers[v]; g != nil && !math.IsNaN(score(g)) {
			known = append(known, q)
		}
	}
	if len(known) == 0 {
		return
	}
	slices.SortStableFunc(known, func(a, b *passageCase) int { return cmp.Compare(score(b.answers[v]), score(a.answers[v])) })
	f := check.Finding{
		Severity: check.Info, Code: "screen", Variant: p.Variants[v].Name, Case: known[0].ID, Figures: map[string]float64{name: score(known[0].answers[v])},
		Hint: "label these first: the score orders answers, and is no probability",
	}
	var names []string
	for _, q := range known[:min(listed, len(known))] {
		names = append(names, fmt.Sprintf("%s (%.2f)", q.ID, score(q.answers[v])))
		f.Bodies = append(f.Bodies, p.Keep(q.answers[v].text))
	}
	f.Text = fmt.Sprintf("of %d answers these are borne out least by %d further ones: %s", len(known), c.Samples, strings.Join(names, ", "))
	p.Report(f)
}

// head is the beginning of a text, for a sentence about it.
func head(s string) string {
	if r := []rune(s); len(r) > 80 {
		return string(r[:80]) + "…"
	}
	return s
}
