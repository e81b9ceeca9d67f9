package dimension

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/stat"
	"github.com/assay-llm/assay/stat/compare"
)

// depths estimates how far back each variant reaches. The change against the baseline
// takes the two as independent, though they answer the same scenarios: its interval is
// rather too wide.
func depths(p *check.Pass, data dialogueData) {
	baseline := make(map[string]*dialogueVariant) // by replay
	for i := range data.Variants {
		d := &data.Variants[i]
		v := slices.IndexFunc(p.Variants, func(s *check.Subject) bool { return s.Name == d.Variant })
		p.Estimate(check.Estimate{Value: "depth_" + d.Replay, Variant: v, Of: d.Depth.Estimate})
		if v == 0 {
			baseline[d.Replay] = d
			continue
		}
		p.Estimate(check.Estimate{Value: "depth_" + d.Replay, Variant: v, Change: record.Difference, Of: func(confidence float64) stat.Estimate {
			return stat.Difference(d.Depth.Estimate(confidence), baseline[d.Replay].Depth.Estimate(confidence))
		}})
	}
}

// propagation compares live with scripted replay, turn by turn.
func propagation(p *check.Pass, all []*dialogue) (out []dialogueSpreading) {
	var ofBaseline map[string][]float64
	for v, s := range p.Variants {
		for _, value := range []string{"expected", "state"} {
			changes := spreads(all, value, v)
			clusters := listSpreads(changes)
			e := compare.Mean(clusters, .95)
			if value == "expected" {
				p.Estimate(check.Estimate{Value: "spread", Variant: v, Of: func(confidence float64) stat.Estimate { return compare.Mean(clusters, confidence) }})
				if v == 0 {
					ofBaseline = changes
				} else {
					between := listSpreads(spreadBetween(changes, ofBaseline))
					p.Estimate(check.Estimate{Value: "spread", Variant: v, Change: record.Difference, Of: func(confidence float64) stat.Estimate { return compare.Mean(between, confidence) }})
				}
			}
			if !e.Defined() {
				continue
			}
			d := dialogueSpreading{Variant: s.Name, Value: value, Change: e.Value, Low: finiteOrNil(e.Lo), High: finiteOrNil(e.Hi), N: e.N}
			out = append(out, d)
			span := "no interval"
			if d.Low != nil && d.High != nil {
				span = fmt.Sprintf("95 %% %+.3f to %+.3f", e.Lo, e.Hi)
			}
			p.Note("%s: %s changes by %+.3f when its own replies are sent back instead of the reference's (%s, %d turns of %d scenarios): what errors spread", s.Name, value, e.Value, span, e.N, len(clusters))
		}
	}
	return out
}

// spreads is live less scripted, turn by turn, by scenario. A turn that one of them
// lacks is NaN.
func spreads(all []*dialogue, value string, v int) map[string][]float64 {
	type place struct {
		id   string
		turn int
	}
	scripted, out := make(map[place]float64), make(map[string][]float64)
	for _, d := range all {
		for t, turn := range d.turns {
			x, ok := turn.number(value, v)
			if !ok {
				x = math.NaN()
			}
			if at := (place{d.s.ID, t}); d.replay == "scripted" {
				scripted[at] = x
			} else if y, has := scripted[at]; has {
				out[d.s.ID] = append(out[d.s.ID], x-y)
			}
		}
	}
	return out
}

// spreadBetween is a difference of two variants, turn by turn.
func spreadBetween(a, b map[string][]float64) map[string][]float64 {
	out := make(map[string][]float64)
	for id, x := range a {
		for i := range min(len(x), len(b[id])) {
			out[id] = append(out[id], x[i]-b[id][i])
		}
	}
	return out
}

// listSpreads leaves out what is missing, and lists the scenarios in their order.
func listSpreads(by map[string][]float64) (out [][]float64) {
	for _, id := range slices.Sorted(maps.Keys(by)) {
		if x := slices.DeleteFunc(slices.Clone(by[id]), math.IsNaN); len(x) > 0 {
			out = append(out, x)
		}
	}
	return out
}

func finiteOrNil(x float64) *float64 {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return nil
	}
	return &x
}
