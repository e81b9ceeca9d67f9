package dimension

import (
	"fmt"
	"hash/fnv"
	"math"
	"strings"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/stat"
	"github.com/assay-llm/assay/stat/compare"
	"github.com/assay-llm/assay/stat/diverge"
)

// driftRow is what is published of one variant and family: means over cases.
type driftRow struct {
	Variant string   `json:"variant"`
	Family  string   `json:"family"`
	Cases   int      `json:"cases"`
	Drift   float64  `json:"drift"` // of perturbed from clean
	Floor   float64  `json:"floor"` // of clean from clean
	Excess  float64  `json:"excess"`
	Low     *float64 `json:"excess_low"` // null: there is no bound
	High    *float64 `json:"excess_high"`
	P       float64  `json:"p"`  // of so great a drift if perturbing moves nothing, one-sided
	TV      float64  `json:"tv"` // total variation, and its floor
	FloorTV float64  `json:"tv_floor"`

	Composite      float64 `json:"cosine_kl"` // 1 − cosine + KL, and its floor
	FloorComposite float64 `json:"cosine_kl_floor"`

	Lined     int `json:"policy_cases"`
	Conflicts int `json:"conflicts"`
	// FloorConflicts are those of clean and clean again.
	FloorConflicts int `json:"conflicts_floor"`

	e stat.Estimate // of the excess
}

// report tells, of each variant and family, the drift beside its floor.
func (g *driftGrid) report() error {
	heat := check.Heat{Least: -0.25, Most: 1, Columns: g.families}
	var rows []driftRow
	for v, s := range g.p.Variants {
		cells := make([]check.Cell, len(g.families))
		for f, family := range g.families {
			r, err := g.row(v, family)
			if err != nil {
				return err
			}
			if r.Cases == 0 {
				continue
			}
			rows = append(rows, r)
			g.p.Report(g.finding(r))
			cells[f] = check.Cell{Value: &r.Excess, N: r.Cases, Text: "excess drift " + withBounds(r.e)}
		}
		heat.Rows, heat.Cells = append(heat.Rows, s.Name), append(heat.Cells, cells)
	}
	if len(rows) == 0 {
		return errNothingDrifts
	}
	g.p.Publish(rows)
	if !g.c.composite() {
		g.p.Draw(check.Figure{Title: "Excess drift", About: "How far the answers of each variant move in each family, beyond what clean answers differ from clean ones; 0 is no drift.", Heat: &heat})
	}
	return g.equality()
}

// row sums up one variant and family.
func (g *driftGrid) row(v int, family string) (driftRow, error) {
	r := driftRow{Variant: g.p.Variants[v].Name, Family: family, P: math.NaN()}
	var clean, perturbed [][]int
	byCluster, order := make(map[string][]float64), []string(nil)
	for i, k := range g.list {
		p, p2, q := g.whole(i, v, asIs), g.whole(i, v, again), g.whole(i, v, family)
		if p == nil || p2 == nil || q == nil {
			continue
		}
		d, floor := g.apart(p, q), g.apart(p, p2)
		x := g.score(d) - g.score(floor)
		r.Cases++
		r.Drift, r.Floor, r.Excess = r.Drift+g.score(d), r.Floor+g.score(floor), r.Excess+x
		r.TV, r.FloorTV = r.TV+d.TV, r.FloorTV+floor.TV
		r.Composite, r.FloorComposite = r.Composite+d.Composite(), r.FloorComposite+floor.Composite()
		if g.lined(k) {
			r.Lined++
			r.Conflicts += int(yes(g.crosses(k, p, q)))
			r.FloorConflicts += int(yes(g.crosses(k, p, p2)))
		}
		clean, perturbed = append(clean, p.counts), append(perturbed, q.counts)
		if byCluster[k.cluster] == nil {
			order = append(order, k.cluster)
		}
		byCluster[k.cluster] = append(byCluster[k.cluster], x)
	}
	if r.Cases == 0 {
		return r, nil
	}
	n := float64(r.Cases)
	for _, x := range []*float64{&r.Drift, &r.Floor, &r.Excess, &r.TV, &r.FloorTV, &r.Composite, &r.FloorComposite} {
		*x /= n
	}
	var clusters [][]float64
	for _, id := range order {
		clusters = append(clusters, byCluster[id])
	}
	r.e = compare.Mean(clusters, g.confidence())
	r.Low, r.High = finite(r.e.Lo), finite(r.e.Hi)
	if g.top > 0 {
		r.P = compare.Randomise(clusters, 0, g.p.Seed).Greater
		if math.IsNaN(r.P) {
			r.P = 1
		}
		return r, nil
	}
	e, err := diverge.Drift(clean, perturbed, g.score, g.p.Seed)
	r.P = e.P
	return r, err
}

// confidence of each family's interval, so that all of a variant's hold together in
// 95 %.
func (g *driftGrid) confidence() float64 { return 1 - 0.05/float64(len(g.families)) }

// finding says how far a family moves a variant. It warns where the drift is beyond
// chance and exceeds its floor by more than is tolerated, and where answers provably
// cross the policy line more often than clean ones do.
func (g *driftGrid) finding(r driftRow) check.Finding {
	f := check.Finding{
		Severity: check.Info, Code: "floor", Variant: r.Variant,
		Text: fmt.Sprintf("%s: drift %.3f over a floor of %.3f, excess %s, p %.4f (%d cases); 1 − cosine + KL %.3f over %.3f; the policy line is crossed in %d of %d cases, by clean answers in %d",
			r.Family, r.Drift, r.Floor, withBounds(r.e), r.P, r.Cases, r.Composite, r.FloorComposite, r.Conflicts, r.Lined, r.FloorConflicts),
		Figures: map[string]float64{"drift": r.Drift, "floor": r.Floor, "excess": r.Excess, "p": r.P, "cases": float64(r.Cases), "cosine_kl": r.Composite, "cosine_kl_floor": r.FloorComposite, "tv": r.TV, "tv_floor": r.FloorTV, "conflicts": float64(r.Conflicts), "policy_cases": float64(r.Lined)},
	}
	alpha := 1 - g.confidence()
	conflict := r.Lined > 0 && stat.ExactShare(r.Conflicts, r.Lined, g.confidence()).Lo > g.c.Tolerated+float64(r.FloorConflicts)/float64(max(r.Lined, 1))
	switch {
	case conflict:
		f.Severity, f.Code, f.Hint = check.Alarm, "value_conflict", "read the perturbed texts of the cases with drift.conflict 1 (assay perturb prints them) and decide which answer the policy wants"
	case r.P <= alpha && r.Excess > g.c.Tolerated:
		f.Severity, f.Code, f.Hint = check.Warning, "drift", "read the perturbed texts of the cases with the greatest drift.excess (assay perturb prints them), and let a clause judge mean(drift.excess)"
	case r.P <= alpha:
		f.Code, f.Hint = "small_drift", fmt.Sprintf("it is beyond chance, and within the %.2f that is tolerated", g.c.Tolerated)
	}
	return f
}

// equality tests whether the clean answers of each variant could be the baseline's.
func (g *driftGrid) equality() error {
	for v := 1; v < len(g.p.Variants) && g.top == 0; v++ {
		var x, y [][][]int
		for i := range g.list {
			a, b := g.both(i, 0), g.both(i, v)
			if len(a) >= 2 && len(b) >= 2 {
				x, y = append(x, a), append(y, b)
			}
		}
		if len(x) == 0 {
			continue
		}
		e, err := diverge.Hamming(x, y, g.p.Seed)
		if err != nil {
			return err
		}
		f := check.Finding{
			Severity: check.Info, Code: "same_model", Variant: g.p.Variants[v].Name,
			Text:    fmt.Sprintf("clean answers of %s and %s: squared MMD with a Hamming kernel %.4f, p %.4f (%d cases): nothing tells them apart", g.p.Variants[0].Name, g.p.Variants[v].Name, e.Observed, e.P, len(x)),
			Figures: map[string]float64{"mmd": e.Observed, "p": e.P, "cases": float64(len(x))},
		}
		if e.P <= 0.05 {
			f.Code, f.Text = "other_model", strings.Replace(f.Text, "nothing tells them apart", "they are not of one distribution", 1)
			f.Hint = "of two variants that should be the same model, find out why; else this says that something changed, and not whether for the worse"
		}
		g.p.Report(f)
	}
	return nil
}

// both are all clean answers of a variant to a case.
func (g *driftGrid) both(i, v int) (out [][]int) {
	for _, manner := range []string{asIs, again} {
		if c := g.cells[driftPlace{i, v, manner}]; c != nil {
			out = append(out, c.words...)
		}
	}
	return out
}

// wordsOf numbers the words of an answer, each Chinese character as one.
func wordsOf(text string) (out []int) {
	var word strings.Builder
	flush := func() {
		if word.Len() > 0 {
			h := fnv.New32a()
			_, _ = h.Write([]byte(word.String()))
			out = append(out, int(h.Sum32()))
			word.Reset()
		}
	}
	for _, r := range text {
		switch {
		case r == ' ' || r == '\n' || r == '\t':
			flush()
		case r >= 0x2e80:
			flush()
			word.WriteRune(r)
			flush()
		default:
			word.WriteRune(r)
		}
	}
	flush()
	return out
}
