package report

import (
	"fmt"
	"math"
	"slices"

	"github.com/assay-llm/assay/record"
)

// unexplained is by how much the share of the prompts that a prefix cache knew may be above
// what the plan itself repeats: templates are alike in all prompts.
const unexplained = 0.1

// alerts are what a reader must know before any number: that the prompts are no new ones,
// and that a prefix cache knew more of them than the plan explains.
func (b *builder) alerts(m *record.Manifest) (out []string) {
	for _, w := range m.Workloads {
		if w.Unsalted {
			out = append(out, unsalted(m, w.Name))
		}
	}
	for _, w := range m.Workloads {
		for _, v := range m.Variants {
			if text := b.warmCache(m, w, v.Name); text != "" {
				out = append(out, text)
			}
		}
	}
	return out
}

// unsalted says what prompts without a salt mean.
func unsalted(m *record.Manifest, workload string) string {
	s := fmt.Sprintf("SALTS ARE OFF for %s: its prompts are the same in every run of this seed, so a prefix cache that has seen an earlier run, or the other variant, makes this one look faster than it is", workload)
	cold := 0
	for _, p := range m.Caches {
		if p.Workload == workload && p.State == "cold" {
			cold++
		}
	}
	if cold > 0 && cold == len(m.Variants) {
		return s + "; the caches were proven cold before it"
	}
	return s + "; its latencies say nothing unless the caches were emptied before (reset_cache)"
}

// warmCache says that a prefix cache knew more of a variant's prompts than the plan
// explains; "" if it did not, or nobody can tell.
func (b *builder) warmCache(m *record.Manifest, w record.WorkloadInfo, variant string) string {
	if w.Repeats == nil {
		return ""
	}
	end := fmt.Sprintf("while the plan itself repeats %s: the cache knew prompts from before this run, and its latencies flatter", percent(*w.Repeats))
	if share, by, ok := b.cachedShare(m.Engines, w.Name, variant); ok {
		if share <= *w.Repeats+unexplained {
			return ""
		}
		return fmt.Sprintf("WARM CACHE: %s of the prompt tokens of %s on %s came from a prefix cache (by %s), %s", percent(share), variant, w.Name, by, end)
	}
	if *w.Repeats > unexplained {
		return ""
	}
	low, high, share, ok := twoGroups(b.ttfts(w.Name, variant))
	if !ok {
		return ""
	}
	s := scaleOf(record.Nanoseconds, low, high)
	return fmt.Sprintf("MAYBE A WARM CACHE: the TTFT of %s on %s falls into two groups, %s of the requests at about %s and the others at about %s, as where a prefix cache knew some prompts; neither usage nor metrics tell, and the plan itself repeats %s",
		variant, w.Name, percent(share), s.print(low), s.print(high), percent(*w.Repeats))
}

func percent(share float64) string { return scaleOf(record.Proportion, share).print(share) }

// leastTold is from how many requests on their usage speaks for all.
const leastTold = 20

// cachedShare is the share of the prompt tokens that came from a prefix cache, and who
// tells: the answers' usage, else the engine's counters.
func (b *builder) cachedShare(sides []record.EngineSide, workload, variant string) (share float64, by string, ok bool) {
	var cached, prompt, told, all int64
	for i := range b.records {
		r := &b.records[i]
		if r.Phase != record.Measured || r.Workload != workload || r.Variant != variant || !r.Success() {
			continue
		}
		all++
		c, said := r.Cached.N()
		if p, also := r.Prompt.N(); said && also {
			cached, prompt, told = cached+c, prompt+p, told+1
		}
	}
	if told >= leastTold && 2*told > all && prompt > 0 {
		return float64(cached) / float64(prompt), "usage", true
	}
	for _, s := range sides {
		if s.Variant != variant || s.Workload != workload {
			continue
		}
		for _, figure := range []string{"prefix_hit_ratio", "prompt_cached_ratio"} {
			if x, has := s.Values[figure]; has && !math.IsNaN(x) && !math.IsInf(x, 0) {
				return x, "the engine's metrics", true
			}
		}
	}
	return 0, "", false
}

func (b *builder) ttfts(workload, variant string) (values []float64) {
	m, _ := record.Find("ttft")
	for i := range b.records {
		r := &b.records[i]
		if r.Phase == record.Measured && r.Workload == workload && r.Variant == variant && r.Success() {
			values = m.Values(r, values)
		}
	}
	return values
}

// The bounds of twoGroups.
const (
	leastGrouped = 100 // values
	leastGroup   = 0.1 // share of the smaller group
	leastApart   = 2.0 // ratio across the emptiest place between them
)

// twoGroups finds out whether values fall into two groups with nothing between: no value
// for a factor of two, and a tenth of them at least on either side. It returns the
// medians of both and the share of the lower. Queues spread values, they leave no such hole.
func twoGroups(values []float64) (low, high, share float64, ok bool) {
	values = slices.DeleteFunc(slices.Clone(values), func(x float64) bool { return !(x > 0) || math.IsInf(x, 0) })
	n := len(values)
	if n < leastGrouped {
		return 0, 0, 0, false
	}
	slices.Sort(values)
	cut, widest := 0, 0.
	for i := int(math.Ceil(leastGroup * float64(n))); i <= n-int(math.Ceil(leastGroup*float64(n))); i++ {
		if ratio := values[i] / values[i-1]; ratio > widest {
			cut, widest = i, ratio
		}
	}
	if widest < leastApart {
		return 0, 0, 0, false
	}
	return values[cut/2], values[cut+(n-cut)/2], float64(cut) / float64(n), true
}
